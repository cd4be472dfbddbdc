"""Oracle of the rule of what is held out: the split of a file, decided again from the words of the request.

It shares no code with the rule: globs are matched folder by folder, and a hash is compared as a fraction.
"""

import hashlib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from pipeline.build.oracles.audited_changes import file_of
from pipeline.contracts.part import Tables
from pipeline.core.records import Split
from pipeline.core.table_names import PACKED, TOKENS, TRAINING_ROWS

_ALL_HASHES = 1 << 64


def split_of_file(rule: Mapping[str, Any], source: str, path: str) -> Split:
    """Return the split that a rule, as JSON, gives a file, and all its changes."""
    name = f"{source}/{file_of(path)}"
    hashed = {"file": name, "repository": source}[rule["hash_of"]]
    is_held_out = (
        source in rule["sources"]
        or any(_matches(glob.split("/"), name.split("/")) for glob in rule["globs"])
        or (rule["hash_fraction"] is not None and _place(rule["hash_salt"], hashed) < Fraction(rule["hash_fraction"]))
    )
    return Split.HELD_OUT if is_held_out else Split.TRAIN


def held_out_sources(rule: Mapping[str, Any], sources: Iterable[str]) -> set[str]:
    """Return the sources that a rule holds out as a whole, by their names."""
    by_name = {**rule, "globs": [], "hash_fraction": rule["hash_fraction"] if rule["hash_of"] == "repository" else None}
    return {name for name in sources if split_of_file(by_name, name, "") == Split.HELD_OUT}


def is_of_sources(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule judges sources alone, whatever their files are called."""
    return not rule["globs"] and (rule["hash_fraction"] is None or rule["hash_of"] == "repository")


def num_in_another_split(source: str, stored: Tables, rule: Mapping[str, Any]) -> int:
    """Count documents that are labeled, or rows that are stored, as of another split than that of their source and path.

    Where documents are of both splits, a packed row counts with a piece of another one, a mapped row beyond the packed ones.
    """
    documents = stored.table(TOKENS, ["document_id", "path", "split"]).to_pylist()
    splits = {row["document_id"]: split_of_file(rule, source, row["path"]) for row in documents}
    number: int = sum(row["split"] != splits[row["document_id"]] for row in documents)
    of_names = {split_of_file(rule, source, "")} if is_of_sources(rule) else set(splits.values())
    for split in Split:
        packed = stored.table(PACKED[split], ["source_doc_ids"])
        mapped = int(stored.table(TRAINING_ROWS[split], ["lengths"]).num_rows)
        if split not in of_names:
            number += int(packed.num_rows) + mapped
        elif len(of_names) > 1:
            rows = packed["source_doc_ids"].to_pylist()
            number += sum(any(splits.get(name, split) != split for name in row) for row in rows)
            number += max(0, mapped - len(rows))
    return number


def _place(salt: str, name: str) -> Fraction:
    """Return where the hash of a name lies between 0 and 1."""
    content = b"\0".join(text.encode("utf-8", "surrogateescape") for text in (salt, name))
    found = hashlib.blake2b(content, digest_size=8, person=b"sluice/held-out").hexdigest()
    return Fraction(int(found, 16), _ALL_HASHES)


def _matches(glob: list[str], name: list[str]) -> bool:
    """Return whether the folders of a glob match those of a name: after each of the glob, the places that may be next."""
    places = {0}
    for number, folder in enumerate(glob):
        is_last = number == len(glob) - 1
        if folder == "**":
            first = min(places, default=len(name) + 1)
            places = {len(name)} if is_last and first < len(name) else set(range(first, len(name)))
        else:
            places = {place + 1 for place in places if place < len(name) and _fits(folder, name[place])}
    return len(name) in places


def _fits(folder: str, word: str) -> bool:
    """Return whether a folder of a glob matches a word, by the lengths of the beginnings that match."""
    lengths = {0}
    for character in folder:
        if character == "*":
            lengths = set(range(min(lengths, default=len(word) + 1), len(word) + 1))
        else:
            lengths = {each + 1 for each in lengths if each < len(word) and character in ("?", word[each])}
    return len(word) in lengths
