"""Rows of changes: versions of files that commits made, and what withdrawing one of them takes with it."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote_from_bytes

from pipeline.core.change_text import change_path
from pipeline.core.digests import text_sha256
from pipeline.core.records import CommitEvidence, FileModification, ListedChange, ListedCommitFile, SourceFile
from pipeline.core.table_names import LISTED_CHANGES, LISTED_EVIDENCE
from pipeline.pins.selection import Selector, Selectors
from pipeline.stages.collect.contents import ReadFile, ReadVersion
from pipeline.stages.collect.repositories.listed_history import CommitChange, CommitFile
from pipeline.stages.collect.source_rows import source_file

Place = tuple[str, str | None]
"""A path and the id of a blob."""


def version_row(source: str, revision: str, version: ReadVersion) -> SourceFile:
    """Return the row of a version, named by its own id: that of a file is of the other hash in a repository of SHA-256."""
    file = source_file(source, revision, ReadFile(version.path, version.content))
    return replace(file, git_blob_id=version.git_blob_id)


def history_rows(
    source: str, listed: Iterable[CommitChange | CommitFile]
) -> Iterator[tuple[str, type, list[ListedChange] | list[ListedCommitFile]]]:
    """Yield the tables of a listed history: name, record and rows, these sorted by path and commit."""
    rows = sorted(listed, key=lambda each: (each.name, each.commit))
    changes = [each._asdict() for each in rows if isinstance(each, CommitChange)]
    files = [each._asdict() for each in rows if isinstance(each, CommitFile)]
    yield LISTED_CHANGES, ListedChange, [ListedChange(**_place(source, each)) for each in changes]
    yield LISTED_EVIDENCE, ListedCommitFile, [ListedCommitFile(**_place(source, each)) for each in files]


def _place(source: str, listed: dict[str, Any]) -> dict[str, Any]:
    renamed = {"source": source, "commit_hash": listed.pop("commit"), "path": quote_from_bytes(listed.pop("name"))}
    return renamed | ({"parent_hashes": listed.pop("parents")} if "parents" in listed else {}) | listed


def version_place(version: ReadVersion | CommitEvidence) -> Place:
    """Return the path and the id of a version."""
    return version.path, version.git_blob_id


def withdrawn_versions(source: str, versions: Iterable[ReadVersion], selectors: Selectors) -> dict[Place, Selector]:
    """Return the path and the id of each version that is withdrawn, with what withdraws it."""
    digests = [(each, hashlib.sha256(each.content).hexdigest()) for each in (versions if selectors.all else ())]
    found = {version_place(each): selectors.matching(source, each.path, sha256) for each, sha256 in digests}
    return {place: by[0] for place, by in found.items() if by}


def changes_from_or_to(gone: Mapping[Place, Selector], history: Iterable[FileModification]) -> dict[str, Selector]:
    """Return the paths of the changes of which a version is gone, with what withdraws it."""
    ends = [((row.path, blob_id), row) for row in history for blob_id in (row.old_blob_id, row.new_blob_id)]
    return {change_path(row.commit_hash, row.path): gone[blob] for blob, row in ends if blob in gone}


def is_withdrawn(change: FileModification, removed: Collection[str], selectors: Selectors) -> bool:
    """Return whether the document of a change is among removed ones, or the subject of its commit is withdrawn."""
    path = change_path(change.commit_hash, change.path)
    return path in removed or bool(
        selectors.all and selectors.matching(change.source, path, text_sha256(change.subject))
    )
