"""Changes: what commits did to the files of a pin, each a document, or dropped with its reason.

Every commit without a second parent counts, and every file of source code that the pinned commit has, with the path that it has
there. What a merge does itself is in no document: what it merges is in those of its commits.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pipeline.core.change_text import MARK, Hunk, change_path, compose_change, is_change_path
from pipeline.core.errors import ArchiveError
from pipeline.core.records import CommitEvidence
from pipeline.lexing.languages import is_source
from pipeline.pins.selection import Selection, is_license_evidence
from pipeline.stages.collect.contents import (
    ReadChanges,
    ReadFile,
    ReadOptions,
    ReadVersion,
    SkippedFile,
    SourceContents,
    over_limit,
)
from pipeline.stages.collect.repositories.command import stream_git
from pipeline.stages.collect.repositories.history import (
    Change,
    CommitHistory,
    CommitRecord,
    nul_separated,
    printable_name,
)
from pipeline.stages.collect.repositories.pack_objects import PackObjects, tree_files

_LINE_END = re.compile(rb"\r\n|\r|\n")
"""Ends of lines, all of which normalize writes as one."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def read_changes(
    objects: PackObjects, commit: str, history: CommitHistory, contents: SourceContents, options: ReadOptions
) -> ReadChanges:
    """Return the documents of the changes of a pin's files, those that are none, and what their licenses depend on.

    Raises ArchiveError for a file whose name is that of a document of change.
    """
    for file in contents.files:
        if is_change_path(file.path):
            found = "has a name of the form COMMIT:PATH, by which a change is called"
            remedy = "The source is not used; name it in the pin's `exclude`, or leave history out."
            raise ArchiveError(
                options.source, found, "another name where history is read", remedy, member=file.path[:200]
            )
    judged = list(_judged(objects, commit, history, contents, options))
    files = [file for file in judged if isinstance(file, ReadFile)]
    options.refuse_clashes([file.path for file in (*contents.files, *contents.skipped, *judged)])
    kept = {file.path for file in files}
    links = [
        (record, change)
        for record in history.commits
        for change in history.changes[record.commit_hash]
        if change_path(record.commit_hash, change.path) in kept
    ]
    evidence = _evidence(objects, options, commit, list(dict.fromkeys(record.commit_hash for record, _ in links)))
    wanted = {(change.path, blob_id) for _, change in links for blob_id in (change.old_blob_id, change.new_blob_id)}
    wanted |= {(each.path, each.git_blob_id) for each in evidence if each.git_blob_id is not None}
    versions = tuple(ReadVersion(path, blob_id, objects.read(blob_id, "blob")) for path, blob_id in sorted(wanted))
    skipped = [file for file in judged if isinstance(file, SkippedFile)]
    return ReadChanges(tuple(files), tuple(skipped), versions, tuple(evidence))


def _judged(
    objects: PackObjects, commit: str, history: CommitHistory, contents: SourceContents, options: ReadOptions
) -> Iterator[ReadFile | SkippedFile]:
    """Yield each change of each file of source code that is regular at the pinned commit, as a document or as what it is not."""
    not_read = {file.path: file for file in contents.skipped if is_source(file.path)}
    regular = {entry.path for entry in tree_files(objects, commit, options) if entry.is_file}
    not_read = {path: file for path, file in not_read.items() if path in regular}
    paths = {file.path for file in contents.files if is_source(file.path)}
    every = [
        (record, change, path)
        for record in history.commits
        for path, change in _by_path(history.changes[record.commit_hash]).items()
        if path in paths or path in not_read
    ]
    excluded = Selection(exclude=options.selection.exclude)
    modified = [change for _, change, path in every if path in paths and change.is_modification]
    sizes, limit = _sizes(objects, modified, options), options.limits.max_file_bytes
    for record, change, path in every:
        name = change_path(record.commit_hash, path)
        if path in not_read:
            yield SkippedFile(name, not_read[path].num_bytes, not_read[path].reason, "as its file")
        elif not excluded.accepts(name):
            yield SkippedFile(name, 0, "excluded")
        elif (largest := max(sizes.get(change.old_blob_id, 0), sizes.get(change.new_blob_id, 0))) > limit:
            yield SkippedFile(name, largest, "too_large", "a version of its file")
        else:
            yield _document(name, record, change, history)


def _by_path(changes: Sequence[Change]) -> dict[str, Change]:
    """Return what a commit did to each path; of one that is gone, to where."""
    return {change.old_path: change for change in changes if change.old_path} | {each.path: each for each in changes}


def _sizes(objects: PackObjects, modified: Iterable[Change], options: ReadOptions) -> dict[str, int]:
    """Return the bytes of each version. Raises ArchiveError if all of them together are more than a source may have."""
    sizes = objects.sizes({each for change in modified for each in (change.old_blob_id, change.new_blob_id)})
    total, limit = sum(sizes.values()), options.limits.max_total_bytes
    if total > limit:
        raise over_limit(options.source, f"the versions of its files have {total} bytes", f"{limit} bytes in all")
    return sizes


def _document(name: str, record: CommitRecord, change: Change, history: CommitHistory) -> ReadFile | SkippedFile:
    rejected = history.rejection(record, change)
    diff = history.diff(record, change)
    if rejected:
        return SkippedFile(name, diff.num_chars, *rejected)
    content = compose_change(record.subject, change.path, diff.hunks)
    flaw = _flaw(record.subject, diff.hunks)
    return SkippedFile(name, len(content), *flaw) if flaw else ReadFile(name, content)


def _flaw(subject: str, hunks: Sequence[Hunk]) -> tuple[str, str] | None:
    """Return the reason, and what was found, for which the text of a change is no document."""
    if _REPLACED in subject:
        return "undecodable_change", "its subject is not in the encoding that the commit names"
    if "\r" in subject:
        return "marked_change", "its subject has a carriage return, after which another line begins"
    sides = [[_LINE_END.split(side) for side in hunk] for hunk in hunks]
    if all(before == after for before, after in sides):
        return "line_end_change", "its hunks differ in line ends alone, which normalizing writes as one"
    lines = [line for hunk in sides for side in hunk for line in side]
    try:
        b"\n".join(lines).decode()
    except UnicodeDecodeError as error:
        return "undecodable_change", f"its hunks are not UTF-8 (byte {error.start})"
    if any(line.startswith(MARK.encode()) for line in lines):
        return "marked_change", f"a line of its hunks begins with `{MARK.strip()}`, which marks hunks"
    return None


def _evidence(objects: PackObjects, options: ReadOptions, commit: str, commits: Sequence[str]) -> list[CommitEvidence]:
    """Return the files of license evidence that differ between a commit and the pinned one; too large ones count as absent."""
    found = list(_differing_evidence(objects, options, commit, commits))
    sizes = objects.sizes(each.git_blob_id for each in found if each.git_blob_id is not None)
    large = {blob_id for blob_id, num_bytes in sizes.items() if num_bytes > options.limits.max_file_bytes}
    return [replace(each, git_blob_id=None) if each.git_blob_id in large else each for each in found]


def _differing_evidence(
    objects: PackObjects, options: ReadOptions, commit: str, commits: Sequence[str]
) -> Iterator[CommitEvidence]:
    """Yield the files of license evidence that differ between a commit and the pinned one, in the order of the commits."""
    arguments = ["diff-tree", "--stdin", "-r", "--raw", "-z", "--no-abbrev", "--no-renames", "--root"]
    at = ""
    with stream_git(objects.folder, arguments, [f"{each} {commit}" for each in commits if each != commit]) as output:
        tokens = nul_separated(output)
        for token in tokens:
            if not token.startswith(b":"):
                at = token.decode().strip()
                continue
            _, mode, _, blob_id, _ = token[1:].decode().split(" ")
            path = printable_name(next(tokens))
            if is_license_evidence(path) and options.selection.accepts(path):
                yield CommitEvidence(options.source, at, path, blob_id if mode.startswith("100") else None)
