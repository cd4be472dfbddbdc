"""Oracle of similar copies: how similar each is to its keeper, measured again on both texts, and what copies were kept.

A copy of copyleft text has a keeper that is dropped itself, and is compared with the file of that. Documents in languages with
other comments than C are not judged, and of many copies those with larger ids.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from pipeline.build.oracles.audited_changes import file_of, is_change
from pipeline.build.oracles.audited_files import is_code
from pipeline.build.oracles.drops.token_runs import jaccard_of, runs_of, tokens_of, without_include_directives
from pipeline.contracts.part import Tables
from pipeline.core.table_names import DOCUMENTS, DROPPED, FILES
from pipeline.stages.stages import kinds_with

MAX_BYTES_COMPARED = 1 << 22
"""Bytes of copies that are compared with their keepers."""
_NUM_TOKENS = 5
_CLOSE = 0.1
"""Largest difference to what the stage measured: of 405 real copies the largest is 0.03."""
_MANY_LINES = 0.6
"""Share of lines that a text has in common with copyleft ones, comments among them, before it is compared."""
_SIMILAR = frozenset({"near_duplicate", "contained", "container", "copyleft_copy"})
_FOR_LICENSES = frozenset({"license_refused", "license_quarantined"})
_COPYLEFT, _OF_OTHERS = "GPL", ("REUSE.toml", "dep5")
_Name = tuple[str, str]


def dissimilar_copies(
    copies: Sequence[Mapping[str, Any]], before: Iterable[Tables], after: Iterable[Tables], like_c: Collection[str]
) -> Iterator[_Name]:
    """Yield source and path of the copies that are not as similar to their keepers as was measured, or are called copies of
    copyleft text where what they copy was not dropped for its license. `like_c`: suffixes of languages with the comments of C.
    """
    cleaned = [part for part in after if part.kind in kinds_with(DOCUMENTS)]
    similar = sorted((row for row in copies if row["reason"] in _SIMILAR), key=lambda row: str(row["document_id"]))
    refused = _refused(cleaned) if any(row["reason"] == "copyleft_copy" for row in similar) else {}
    sizes = accumulate(row["num_bytes"] for row in similar)
    compared = [row for row, size in zip(similar, sizes, strict=True) if size - row["num_bytes"] < MAX_BYTES_COMPARED]
    keepers = {_name(row, "keeper_") for row in compared if row["reason"] == "copyleft_copy"}
    texts = _texts({_name(row) for row in compared}, {row["keeper_id"] for row in compared}, cleaned)
    texts |= {name: content for name, content in _contents(keepers, before).items() if name not in texts}
    for row in similar:
        if row["reason"] == "copyleft_copy" and _name(row, "keeper_") not in refused:
            yield _name(row)
    lost = {_name(row): row for row in copies}
    for row in compared:
        if is_change(row["path"]) and not is_change(row["keeper_path"]):  # it goes with its file
            of_file = lost.get((row["source"], file_of(row["path"])), row)
            if any(of_file[name] != row[name] for name in ("keeper_id", "jaccard")):
                yield _name(row)
            continue
        first, second = (texts.get(_name(row, prefix)) for prefix in ("", "keeper_"))
        if first is None or second is None or not is_code(row["path"], like_c):
            continue
        if not _is_as_similar(row, tokens_of(first), tokens_of(second)):
            yield _name(row)


def _name(row: Mapping[str, Any], prefix: str = "") -> _Name:
    return row[f"{prefix}source"], row[f"{prefix}path"]


def _refused(cleaned: Iterable[Tables]) -> dict[_Name, Mapping[str, Any]]:
    """Return the drops for their licenses, by name."""
    columns = ["source", "path", "reason", "license", "detail", "text_sha256"]
    rows = (row for part in cleaned for row in part.table(DROPPED, columns).to_pylist())
    return {_name(row): row for row in rows if row["reason"] in _FOR_LICENSES}


def _texts(names: Collection[_Name], ids: Collection[str], cleaned: Iterable[Tables]) -> dict[_Name, bytes]:
    """Return the texts of the documents of some names, and of those of some ids."""
    found: dict[_Name, bytes] = {}
    for part in cleaned if names else ():
        table = part.table(DOCUMENTS, ["source", "path", "document_id", "text"])
        keys = zip(*(table[name].to_pylist() for name in ("source", "path", "document_id")), strict=True)
        for (source, path, name), text in zip(keys, table["text"], strict=True):
            if (source, path) in names or name in ids:
                found[source, path] = text.as_py().encode()
    return found


def _contents(names: Collection[_Name], before: Iterable[Tables]) -> dict[_Name, bytes]:
    """Return the contents of the collected files of some names."""
    found: dict[_Name, bytes] = {}
    for part in before if names else ():
        if part.kind in kinds_with(FILES):
            table = part.table(FILES, ["source", "path", "content"])
            keys = zip(table["source"].to_pylist(), table["path"].to_pylist(), strict=True)
            found |= {key: each.as_py() for key, each in zip(keys, table["content"], strict=True) if key in names}
    return found


def _is_as_similar(row: Mapping[str, Any], copy: tuple[bytes, ...], keeper: tuple[bytes, ...]) -> bool:
    """Return whether two texts are about as similar as a copy says; of a container that its keeper has its share of it."""
    if row["reason"] in ("near_duplicate", "copyleft_copy"):
        found = jaccard_of(runs_of(copy, _NUM_TOKENS), runs_of(keeper, _NUM_TOKENS))
        return copy == keeper or abs(found - row["jaccard"]) <= _CLOSE
    own, other = (runs_of(without_include_directives(each), _NUM_TOKENS) for each in (copy, keeper))
    share = len(own & other) / max(1, len(own))
    if row["reason"] == "container":
        return bool(share * row["num_keepers"] >= row["jaccard"] - _CLOSE)
    return bool(abs(share - row["jaccard"]) <= _CLOSE)


def kept_copies_of_copyleft(
    kept_ids: Collection[str], after: Iterable[Tables], before: Iterable[Tables], limit: float
) -> Iterator[_Name]:
    """Yield source and path of the documents that were kept although another file states copyleft for their text, or for one of
    which more than a share of `limit` is the same, by lines first, then by runs of tokens.
    """
    cleaned = [part for part in after if part.kind in kinds_with(DOCUMENTS)]
    stating = {name: row for name, row in _refused(cleaned).items() if _states_copyleft(row)}
    digests = {row["text_sha256"] for row in stating.values()}
    contents = _contents(stating, before) if stating else {}
    of_line: dict[bytes, list[_Name]] = {}
    for name, content in sorted(contents.items()):
        for line in _lines(content):
            of_line.setdefault(line, []).append(name)
    for part in cleaned if stating else ():
        table = part.table(DOCUMENTS, ["source", "path", "document_id", "text_sha256", "commit_hash", "text"])
        for row in table.filter(table["commit_hash"].is_null()).to_pylist():
            if row["document_id"] in kept_ids and (
                row["text_sha256"] in digests or _copies(row["text"].encode(), of_line, contents, limit)
            ):
                yield _name(row)


def _states_copyleft(row: Mapping[str, Any]) -> bool:
    """Return whether a drop is of a file, and no change, for which copyleft is stated: in it, beside it, or by what names it."""
    stated_in = (f"{row['path']}:", f"{row['path']}.license:")
    lines = row["detail"].split("\n")[1:]
    is_own = any(line.startswith(stated_in) or line.partition(":")[0].endswith(_OF_OTHERS) for line in lines)
    return (
        is_own
        and not is_change(row["path"])
        and row["reason"] == "license_refused"
        and _COPYLEFT in (row["license"] or "")
    )


def _lines(content: bytes) -> set[bytes]:
    return {line for line in map(bytes.strip, content.split(b"\n")) if len(line) > 2 * _NUM_TOKENS}


def _copies(
    text: bytes, of_line: Mapping[bytes, Sequence[_Name]], contents: Mapping[_Name, bytes], limit: float
) -> bool:
    """Return whether a text is nearly that of one of some contents: of the one that has most of its first lines."""
    lines = _lines(text)
    shared = [of_line[line] for line in lines if line in of_line]
    if len(shared) <= _MANY_LINES * len(lines):
        return False
    votes: dict[_Name, int] = {}
    for name in (name for names in shared if len(names) < 2 * _NUM_TOKENS for name in names):
        votes[name] = votes.get(name, 0) + 1
    if not votes:
        return False
    best = max(sorted(votes), key=votes.__getitem__)
    own, other = (runs_of(tokens_of(each), _NUM_TOKENS) for each in (text, contents[best]))
    return jaccard_of(own, other) > min(limit + _CLOSE / 2, 1 - _CLOSE / 4)
