"""Names of files whose paths are withheld, as an audit finds them: by the digests of the collected paths."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.build.oracles.audited_changes import commit_and_file

_WITHHELD = "withheld-path-sha256:"


def stands_for_another(path: str) -> bool:
    """Return whether a path is the digest of one that is not stored."""
    return commit_and_file(path)[1].startswith(_WITHHELD)


def rows_as_collected(rows: Iterable[Mapping[str, Any]], paths: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return rows with the collected paths that the withheld ones stand for; one that stands for none keeps its own."""
    rows = list(rows)
    if not any(stands_for_another(row["path"]) for row in rows):
        return rows
    collected = {_digest_of(path): path for path in paths}
    return [{**row, "path": collected.get(row["path"], row["path"])} for row in rows]


def names_as_collected(
    names: Counter[tuple[str, str]], collected: Iterable[tuple[str, str]]
) -> Counter[tuple[str, str]]:
    """Return how often each source and path is named, by the collected paths that the withheld ones stand for."""
    if not any(stands_for_another(path) for _, path in names):
        return names
    known = {(source, _digest_of(path)): (source, path) for source, path in collected}
    found: Counter[tuple[str, str]] = Counter()
    for name, number in names.items():
        found[known.get(name, name)] += number
    return found


def _digest_of(path: str) -> str:
    commit, file = commit_and_file(path)
    digest = hashlib.sha256(file.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{commit}:{_WITHHELD}{digest}" if commit else _WITHHELD + digest
