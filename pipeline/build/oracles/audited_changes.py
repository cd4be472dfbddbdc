"""Oracle of changes: whether documents of change hold what their commits did, in the order of their chains, and copy others.

It shares no code with what makes them: hunks are found here line by line and laid into the version before, which must become the
one after. A license at a commit is not judged: that needs the rule itself.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.contracts.part import Tables
from pipeline.core.records import CHRONOLOGY, Split
from pipeline.core.table_names import DOCUMENTS, FILES, HISTORY, VERSIONS
from pipeline.stages.stages import kinds_with

OF_HISTORY = ("repo_stable_id", *CHRONOLOGY, "commit_hash")
"""Columns of a document of change that are those of its link of the chain."""
_CALLED = re.compile(r"([0-9a-f]{40}(?:[0-9a-f]{24})?):(.+)", re.DOTALL)
_BEFORE, _AFTER = b"//@@ before", b"//@@ after"
_MAX_PLACES = 16
_SMALLEST, _LARGEST = 50, 50_000
"""Characters of the hunks of a link."""
_OF_COMMITS = frozenset({"not_modified", "large_commit", "routine_commit", "binary_change"})
OF_TEXTS = frozenset({"undecodable_change", "marked_change", "line_end_change"})


def is_change(path: str) -> bool:
    """Return whether a path is that of a document of change, as far as its form shows."""
    return _CALLED.fullmatch(path) is not None


def file_of(path: str) -> str:
    """Return the path of the file that a document of change is about; that of another document is its own."""
    return commit_and_file(path)[1]


def commit_and_file(path: str) -> tuple[str, str]:
    """Return the commit and the path of the file of a document of change; of another document no commit, and its own path."""
    found = _CALLED.fullmatch(path)
    return (found[1], found[2]) if found else ("", path)


def may_be_no_link(row: Mapping[str, Any], pin: Mapping[str, Any]) -> bool:
    """Return whether a change may be dropped for its reason, as far as that shows without its commit; False for other reasons."""
    if not (is_change(row["path"]) and pin.get("history")):
        return False
    if row["reason"] == "small_change":
        return bool(row["num_bytes"] < _SMALLEST)
    if row["reason"] == "large_change":
        return bool(row["num_bytes"] > _LARGEST)
    return row["reason"] in _OF_COMMITS | OF_TEXTS


def mischanged_files(source: str, stored: Tables, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield source and path of the changes that are no link of a chain, or are not what leads from one version to the next; and of
    versions with other ids than theirs, and of links in another order than that of their commits; and the changes of a source if
    the build did not ask for them, or has not got what it asked for.
    """
    is_asked = request.get("changes") and request["pins"].get(source, {}).get("history")
    if bool(stored.identity.get("changes")) != bool(is_asked):
        yield source, "its changes"
    if not stored.identity.get("changes"):
        return
    history = stored.table(HISTORY).to_pylist()
    yield from ((source, path) for path in _misordered(history))
    rows = stored.table(VERSIONS, ["path", "git_blob_id", "content"]).to_pylist()
    versions = {(row["path"], row["git_blob_id"]): row["content"] for row in rows}
    yield from ((source, path) for (path, name), content in versions.items() if _git_id(content, name) != name)
    links = {f"{row['commit_hash']}:{row['path']}": row for row in history}
    files = stored.table(FILES, ["path", "content"])
    for path, content in zip(files["path"].to_pylist(), files["content"], strict=True):
        if is_change(path) and not (path in links and _leads_on(links[path], content.as_py(), versions)):
            yield source, path


def misdated_documents(documents: Any, known: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents whose place in a chain is not that of the link of their path; others have none."""
    for row in documents.to_pylist():
        place = known.get(row["path"], {})
        if any(row[name] != place.get(name) for name in OF_HISTORY):
            yield row["source"], row["path"]


def redated_documents(stored: Tables, before: Tables | None) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents of a cleaned source that have another place in a chain than the files before."""
    if before is not None and before.kind in kinds_with(FILES):
        columns = ["source", "path", *OF_HISTORY]
        yield from misdated_documents(stored.table(DOCUMENTS, columns), links_of(before))


def links_of(stored: Tables) -> dict[str, dict[str, Any]]:
    """Return the links of the chains of a collected source by the paths of their documents; none where it has no changes."""
    rows = stored.table(HISTORY).to_pylist() if stored.identity.get("changes") else []
    return {f"{row['commit_hash']}:{row['path']}": row for row in rows}


def miscompared_changes(
    duplicates: Iterable[Mapping[str, Any]], parts: Iterable[Tables], documents: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the copies that are compared with what they may not be: a file with a change, or a version of a
    source with another one of it, unless their hunks are equal; and a change that goes with a file that did not go.

    `documents` have sources, paths and splits by document id.
    """
    rows = list(duplicates)
    lost = {(row["source"], row["path"]) for row in rows}
    texts = _changed_texts(rows, parts)
    for row in rows:
        change, keeper = _CALLED.fullmatch(row["path"]), is_change(row["keeper_path"])
        if not change:
            is_sound = not keeper
        elif keeper:
            is_next_version = row["source"] == row["keeper_source"]
            is_sound = not is_next_version or texts.get(row["document_id"]) == texts.get(row["keeper_id"])
        else:
            splits = [documents.get(row[name], {}).get("split") for name in ("document_id", "keeper_id")]
            is_reason = row["reason"] == "copyleft_copy" or splits == [Split.TRAIN, Split.HELD_OUT]
            is_sound = is_reason and (row["source"], change[2]) in lost
        if not is_sound:
            yield row["source"], row["path"]


def _changed_texts(rows: Iterable[Mapping[str, Any]], parts: Iterable[Tables]) -> dict[str, str]:
    """Return the lines below the header of the changes of one source that are called copies of each other, by document id."""
    named = [row for row in rows if row["source"] == row["keeper_source"] and is_change(row["keeper_path"])]
    wanted = {row[name] for row in named for name in ("document_id", "keeper_id")}
    cleaned = (stored for stored in parts if wanted and stored.kind in kinds_with(DOCUMENTS))
    found = (stored.table(DOCUMENTS, ["document_id", "text"]) for stored in cleaned)
    return {row["document_id"]: row["text"].split("\n", 2)[2] for table in found for row in _only(table, wanted)}


def _only(table: Any, wanted: set[str]) -> Iterator[dict[str, Any]]:
    for name, text in zip(table["document_id"].to_pylist(), table["text"], strict=True):
        if name in wanted:
            yield {"document_id": name, "text": text.as_py()}


def _misordered(history: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the paths with a link whose number is not above that of the one before, or whose commit is a parent of an earlier."""
    last: dict[str, int] = {}
    parents: dict[str, set[str]] = {}
    for row in history:
        path, index = row["path"], row["file_local_commit_index"]
        above = parents.setdefault(path, set())
        if index <= last.get(path, -1) or row["commit_hash"] in above:
            yield path
        last[path] = index
        above.update(row["parent_hashes"])


def _leads_on(link: Mapping[str, Any], content: bytes, versions: Mapping[tuple[str, str], bytes]) -> bool:
    """Return whether a change names its commit's subject and its file, and its hunks make of one version the next."""
    commit, path, *lines = content.split(b"\n")
    named = [f"{name}: {link[column]}".encode() for name, column in (("// commit", "subject"), ("// path", "path"))]
    before, after = (versions.get((link["path"], link[name])) for name in ("old_blob_id", "new_blob_id"))
    if before is None or after is None or [commit, path] != named or lines[:1] != [_BEFORE] or lines.pop():
        return False
    hunks: list[tuple[list[bytes], list[bytes]]] = []
    side = 0
    for line in lines:
        if line == _BEFORE:
            hunks.append(([], []))
        elif line != _AFTER:
            hunks[-1][side].append(line)
        side = int(line == _AFTER or (side and line != _BEFORE))
    return _are_laid(hunks, _lines(before), _lines(after))


def _are_laid(
    hunks: Iterable[tuple[list[bytes], list[bytes]]], before: Sequence[bytes], after: Sequence[bytes]
) -> bool:
    """Return whether the lines around the hunks, in their order, are those of both versions.

    Where lines repeat, a hunk may lie in several places. One that may lie in many is not judged.
    """
    places, shift = {0}, 0
    for old, new in hunks:
        reached = set()
        for place in places:
            while True:
                is_here = before[place : place + len(old)] == old
                if is_here and after[place + shift : place + shift + len(new)] == new:
                    reached.add(place + len(old))
                if place >= len(before) or before[place : place + 1] != after[place + shift : place + shift + 1]:
                    break
                place += 1
        if len(reached) > _MAX_PLACES:
            return True
        places, shift = reached, shift + len(new) - len(old)
    return any(before[place:] == after[place + shift :] for place in places)


def _lines(content: bytes) -> list[bytes]:
    """Return the lines of a version. The last one counts as ended."""
    return content.removesuffix(b"\n").split(b"\n") if content else []


def _git_id(content: bytes, like: str) -> str:
    """Return the id of a content as git computes it in a repository with ids like that one."""
    algorithm = "sha1" if len(like) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()
