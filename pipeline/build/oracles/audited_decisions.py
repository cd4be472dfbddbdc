"""Oracle of decisions and evaluation items: whether a source's rules had those that the build was given.

It shares no code with the stage, which may decide nothing by itself: a decision that is not in the request is invented.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pipeline.contracts.part import Tables
from pipeline.core.table_names import DOCUMENTS

DECIDED = "decision"
"""The evidence of a license that a person decided."""
ITEMS = "evaluation items"
"""Name of what is no file, but lacks in a source."""
_COLUMNS = ("path", "blob_sha256", "license", "license_evidence")
_SAID_ONLY = ("reason", "person", "date")


def undecided_files(source: str, stored: Tables, request: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents that no decision of the request covers, and of decisions that a part was made by
    and that are not in the request, or the other way round.
    """
    decisions = [each for each in request if each["source"] == source]
    for row in stored.table(DOCUMENTS, _COLUMNS).to_pylist():
        if row["license_evidence"] == DECIDED and not any(_decides(each, row) for each in decisions):
            yield source, row["path"]
    made, given = (Counter(map(_text, each)) for each in (decisions, stored.identity.get("decisions", ())))
    yield from ((source, json.loads(text)["path"]) for text in sorted(((made - given) + (given - made)).elements()))


def uncompared_items(source: str, stored: Tables, sha256: str) -> Iterator[tuple[str, str]]:
    """Yield the name of a source's evaluation items if its rules had others than those that the build was given."""
    if stored.identity.get("evaluation_sha256") != sha256:
        yield source, ITEMS


def _decides(decision: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether a decision gives a document its license, or keeps it in spite of doubts about it."""
    if decision.get("sha256", row["blob_sha256"]) != row["blob_sha256"] or not covers(decision["path"], row["path"]):
        return False
    if "license" in decision:
        return bool(decision["license"] == row["license"])
    return any(reason.startswith("license") for reason in decision.get("release", ()))


def covers(glob: str, path: str) -> bool:
    """Return whether a glob of decisions covers a path: `**` is any number of folders, a star or question mark none."""
    return _covers(glob.split("/"), path.split("/"))


def _covers(globs: list[str], names: list[str]) -> bool:
    """Compare from the end of reachable places: `reached` holds how many names the globs so far may have taken."""
    reached = {0}
    for number, glob in enumerate(globs):
        if glob == "**" and number == len(globs) - 1:
            return any(taken < len(names) for taken in reached)
        if glob == "**":
            reached = set(range(min(reached), len(names))) if reached else set()
        else:
            reached = {taken + 1 for taken in reached if taken < len(names) and _is_name(glob, names[taken])}
    return len(names) in reached


def _is_name(glob: str, name: str) -> bool:
    return glob == name or fnmatchcase(name, glob.replace("[", "[[]"))


def _text(decision: Mapping[str, Any]) -> str:
    return json.dumps({name: decision[name] for name in sorted(decision) if name not in _SAID_ONLY})
