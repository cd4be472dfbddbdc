"""Reading a source from where its verified bytes lie. The label of the place says how; nothing is fetched here."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from pipeline.collect.archives.unpack import Contents, ReadFile, SkippedFile, keeps_content, reason_to_skip, unpack
from pipeline.collect.git.history import modifications
from pipeline.collect.git.objects import Wanted, commit_contents, opened_pack
from pipeline.collect.jsonl import Fields, read_lines
from pipeline.collect.params import CollectParams
from pipeline.contracts.part import PartJob
from pipeline.core.errors import ArchiveError
from pipeline.core.records import FileModification
from pipeline.pins.local_tree import TreeEntry, check_tree, digest_of, entry_sha256, read_file, tree_entries
from pipeline.pins.selection import Selection

Reading = tuple[Contents, list[FileModification] | None]


def read_source(job: PartJob) -> Reading:
    """What the source holds, and the chains of its files where the pin wants them. Raises a SourceError."""
    ((label, place),) = job.places.items()
    return _READERS[label](job, place, cast(CollectParams, job.params))


def _read_archive(job: PartJob, place: Path, params: CollectParams) -> Reading:
    return unpack(place, _selection(job), params, job.name, _keeps_tree(job)), None


def _read_local(job: PartJob, place: Path, params: CollectParams) -> Reading:
    return _read_tree(job, place, params), None


def _read_pack(job: PartJob, place: Path, params: CollectParams) -> Reading:
    commit: str = job.identity["revision"]
    with opened_pack(place, commit, job.name) as objects:
        wanted = Wanted(_selection(job), _keeps_tree(job))
        contents = commit_contents(objects, commit, wanted, params, job.name)
        if not job.identity["history"]:
            return contents, None
        paths = [file.path for file in contents.files]
        return contents, modifications(objects, commit, paths, job.name)


def _read_lines(job: PartJob, place: Path, params: CollectParams) -> Reading:
    fields = Fields(job.identity["text_field"], job.identity["path_field"], job.identity["license_field"])
    return read_lines(place, fields, _selection(job), params, job.name), None


_READERS: Mapping[str, Callable[[PartJob, Path, CollectParams], Reading]] = {
    "archive": _read_archive,
    "tree": _read_local,
    "pack": _read_pack,
    "lines": _read_lines,
}


def _selection(job: PartJob) -> Selection:
    return Selection(job.identity["include"], job.identity["exclude"])


def _keeps_tree(job: PartJob) -> bool:
    """Whether files in other languages are wanted too: a source that is to be built needs them."""
    return job.identity.get("build") is not None


def _read_tree(job: PartJob, root: Path, params: CollectParams) -> Contents:
    """The files of a tree. The digest is taken again over the bytes that are used, so that no later change slips in."""
    source, selection, keeps_tree = job.name, _selection(job), _keeps_tree(job)
    entries = tree_entries(root, Selection())
    _check_extent(source, entries, params)
    files: list[ReadFile] = []
    skipped: list[SkippedFile] = []
    lines: list[tuple[TreeEntry, str]] = []
    for entry in entries:
        not_ours = entry.skipped if selection.accepts(entry.path) else "excluded"
        reason = not_ours or reason_to_skip(entry.path, entry.num_bytes, params)
        if not reason:
            files.append(ReadFile(entry.path, read_file(entry)))
            lines.append((entry, hashlib.sha256(files[-1].content).hexdigest()))
            continue
        kept = read_file(entry) if keeps_tree and keeps_content(reason, entry.num_bytes, params) else None
        skipped.append(SkippedFile(entry.path, entry.num_bytes, reason, content=kept))
        if not not_ours:
            lines.append((entry, entry_sha256(entry) if kept is None else hashlib.sha256(kept).hexdigest()))
    check_tree(source, digest_of(lines), job.identity["revision"])
    return Contents(tuple(files), tuple(skipped))


def _check_extent(source: str, entries: list[TreeEntry], params: CollectParams) -> None:
    total_bytes = sum(entry.num_bytes for entry in entries)
    if len(entries) > params.max_members or total_bytes > params.max_total_bytes:
        found = f"its tree has {len(entries)} entries and {total_bytes} bytes"
        limit = f"at most {params.max_members} and {params.max_total_bytes}"
        raise ArchiveError(source, found, limit, "Exclude what is not source, or raise the limit.")
