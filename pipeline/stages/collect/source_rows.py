"""Rows of a source that is read: its files, and what was skipped or withdrawn, as records."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from pipeline.contracts.part import PartJob
from pipeline.core.change_text import changed_file
from pipeline.core.records import DroppedRecord, SourceFile
from pipeline.lexing.languages import is_source
from pipeline.pins.selection import Selection, Selector, Selectors
from pipeline.stages.collect.contents import ReadFile, ReadOptions, SkippedFile, SourceContents, Spill
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import CollectParams

_LINE = re.compile(r"line [1-9][0-9]*(?=:|$)")
"""Start of the detail of what was skipped of a file of JSON lines."""


def read_contents(job: PartJob, spill: Spill | None = None) -> SourceContents:
    """Read the files of a pin, from its verified bytes. Their bytes stay in memory unless there is a place for them."""
    path = job.places["source"]
    identity, limits = job.identity, cast(CollectParams, job.params)
    selection = Selection(identity["include"], identity["exclude"])
    options = ReadOptions(job.name, selection, limits, identity.get("build") is not None, spill)
    return SOURCE_KINDS[identity["kind"]].contents_of(job, path, options)


def source_file(source: str, revision: str, file: ReadFile) -> SourceFile:
    """Return the row of a file."""
    content = file.content
    header = f"blob {len(content)}\0".encode()
    return SourceFile(
        source=source,
        revision=revision,
        path=file.path,
        blob_sha256=hashlib.sha256(content).hexdigest(),
        git_blob_id=hashlib.sha1(header + content, usedforsecurity=False).hexdigest(),
        num_bytes=len(content),
        is_evidence=not is_source(file.path),
        content=content,
    )


def dropped_record(source: str, skipped: SkippedFile) -> DroppedRecord:
    """Return the row of a file that was not read."""
    return DroppedRecord(
        source=source,
        path=skipped.path,
        record_id=f"{source}/{skipped.path}",
        num_bytes=skipped.num_bytes,
        reason=skipped.reason,
        detail=skipped.detail,
        license=None,
        text_sha256=None,
    )


def without_withdrawn(
    source: str, files: Sequence[ReadFile], selectors: Selectors, changes: Mapping[str, Selector] = MappingProxyType({})
) -> tuple[list[ReadFile], list[SkippedFile]]:
    """Return the files that no selector withdraws, and the others as skipped.

    A file that is withdrawn goes with all of its changes, and `changes` names more of them, with what withdraws each.
    """
    if not selectors.all:
        return list(files), []
    found = {file.path: selectors.matching(source, file.path, _sha256(file, selectors)) for file in files}
    every = {**changes, **{path: by[0] for path, by in found.items() if by}}
    matches = [(file, every.get(file.path) or every.get(changed_file(file.path))) for file in files]
    removed = [SkippedFile(file.path, file.num_bytes, "withdrawn", f"by {by.text}") for file, by in matches if by]
    return [file for file, by in matches if by is None], removed


def without_words(
    source: str,
    skipped: Iterable[SkippedFile],
    selectors: Selectors,
    changes: Mapping[str, Selector] = MappingProxyType({}),
) -> list[SkippedFile]:
    """Return skipped files, as withdrawn those that are by name, and `changes`: why one was skipped may quote it."""
    if not selectors.all:
        return list(skipped)
    found = []
    for file in skipped:
        by = [*selectors.matching(source, file.path), *(changes[path] for path in (file.path,) if path in changes)]
        if by:
            line = _LINE.match(file.detail)  # which tells it from a file of that name
            file = SkippedFile(
                file.path, file.num_bytes, "withdrawn", f"{line[0] + ': ' if line else ''}by {by[0].text}"
            )
        found.append(file)
    return found


def _sha256(file: ReadFile, selectors: Selectors) -> str | None:
    return hashlib.sha256(file.content).hexdigest() if selectors.has_digests else None
