"""The collect stage: pins become source files. Each source is one part, and the failure of one does not stop another."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote_from_bytes

from pipeline.contracts.part import LISTING_SUFFIX, Part, PartJob, PartOutput, StageOutput
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.change_text import CHANGES, change_path, changed_file
from pipeline.core.errors import SourceError
from pipeline.core.params import Params
from pipeline.core.records import (
    CommitEvidence,
    DroppedRecord,
    FileModification,
    ListedFile,
    SourceFile,
    TreeFile,
)
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import COMMIT_EVIDENCE, DROPPED, FILES, HISTORY, LISTED, TREE, VERSIONS
from pipeline.lexing.languages import is_source, suffixes_by_language
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selection, Selector, Selectors
from pipeline.stages.collect.contents import (
    ReadChanges,
    ReadFile,
    ReadOptions,
    ReadVersion,
    SkippedFile,
    SourceContents,
)
from pipeline.stages.collect.kinds.source_kind import CollectContext, Fetcher
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.refusals import naming_source, num_bytes_of, refuse_empty

_NO_HISTORY = (
    '`collect.with_changes` has no effect: no pin has a history. Write `history = true` in a pin of `kind = "git"`.'
)
LISTING_VERSION = 3
"""Raised when a listing changes."""


def run(context: CollectContext, retry: RetryPolicy | None = None) -> StageOutput:
    """Fetch every pinned source into the store, then make one part for each. Sources that fail are listed in `failures`."""
    fetcher = Fetcher(context, retry or RetryPolicy())
    parts: list[Part] = []
    failures: dict[str, SourceError] = {}
    for pin in context.pins:
        try:
            with naming_source(pin.name):
                path = SOURCE_KINDS[pin.kind].path_of(pin, fetcher)
            parts.append(_part(pin, path, context))
        except SourceError as error:
            failures[pin.name] = error
    made, failed = context.make(parts)
    failures.update(failed)
    listings, unlisted = context.make(
        _listings((part, made[part.name].object_id) for part in parts if part.name in made)
    )
    refused = {name.removesuffix(LISTING_SUFFIX): error for name, error in unlisted.items()}
    failures.update(refused)
    made = {name: part for name, part in made.items() if name not in refused}
    # The empty report comes first: if every source failed, the gates still find their measures, at zero.
    report = total([_report([], []), *(part.report for part in made.values())])
    measures = {
        "num_sources": len(context.pins),
        "num_failed_sources": len(failures),
        "num_pins_without_license_metadata": sum(not pin.declared_license for pin in context.pins),
    }
    return StageOutput(
        parts={name: part.object_id for name, part in made.items()},
        report=replace(report, measures={**report.measures, **measures}),
        failures=failures,
        evidence={name: part.object_id for name, part in listings.items()},
        warnings=(_NO_HISTORY,) if context.params.with_changes and not any(map(_has_history, context.pins)) else (),
    )


def _has_history(pin: SourcePin) -> bool:
    return bool(pin.identity().get("history"))


def _listings(parts: Iterable[tuple[Part, str]]) -> list[Part]:
    """Return the parts that list each source again, once it was read into the object of that id."""
    return [
        Part(
            f"{part.name}{LISTING_SUFFIX}",
            "list",
            Params(),
            inputs={"read": object_id},
            identity={**part.identity, "listing": LISTING_VERSION},
            places=part.places,
        )
        for part, object_id in parts
        if SOURCE_KINDS[part.identity["kind"]].listing is not None
    ]


def list_source(job: PartJob) -> PartOutput:
    """Return the names in one source's bytes, as a part, percent-encoded; the audit compares them with what was read."""
    (path,), source, read = job.places.values(), job.name.removesuffix(LISTING_SUFFIX), job.inputs["read"]
    with naming_source(source):
        found = SOURCE_KINDS[job.identity["kind"]].names_in(job.identity, path, num_bytes_of(read))
    files = [
        ListedFile(
            source,
            quote_from_bytes(listed.name),
            listed.other_path,
            listed.is_optional,
            listed.git_blob_id,
            listed.num_bytes,
        )
        for listed in found
    ]
    return PartOutput({LISTED: table_of_records(ListedFile, files)}, StageReport(len(files), len(files)))


def collect_source(job: PartJob) -> PartOutput:
    """Read one source's files and drops from its verified bytes, and its history if the pin has it. Raises SourceError."""
    with naming_source(job.name):
        contents = _read_source(job)
    refuse_empty(job.name, contents)
    revision: str = job.identity["revision"]
    changes = contents.changes or ReadChanges((), (), (), ())
    read = [_source_file(job.name, revision, file) for file in sorted((*contents.files, *changes.files), key=_path)]
    selectors = Selectors(Selector(text) for text in job.identity.get("withdrawn", ()))
    gone = _withdrawn_versions(job.name, changes.versions, selectors)
    files, withdrawn = _withdraw(read, selectors, _changes_from_or_to(gone, contents.history or ()))
    skipped = sorted((*contents.skipped, *changes.skipped, *withdrawn), key=_path)
    drops = [_dropped(job.name, each) for each in skipped]
    tables = {FILES: table_of_records(SourceFile, files), DROPPED: table_of_records(DroppedRecord, drops)}
    if job.identity.get("build") is not None:
        tables[TREE] = table_of_records(TreeFile, _tree_files(job.name, contents.skipped, selectors))
    if contents.history is not None:
        removed = {skipped.path for skipped in withdrawn}
        history = [change for change in contents.history if change.path not in removed]
        tables[HISTORY] = table_of_records(FileModification, history)
    if contents.changes is not None:
        left = [each for each in changes.versions if each.path not in removed and _blob(each) not in gone]
        evidence = [replace(each, git_blob_id=None) if _blob(each) in gone else each for each in changes.evidence]
        tables[VERSIONS] = table_of_records(SourceFile, [_version(job.name, revision, each) for each in left])
        tables[COMMIT_EVIDENCE] = table_of_records(CommitEvidence, evidence)
    return PartOutput(tables)


def measure_source(job: PartJob, output: PartOutput) -> StageReport:
    """Return the report of one source, counted from its tables."""
    files = output.tables[FILES].select(["revision", "num_bytes", "is_evidence"]).to_pylist()
    dropped = output.tables[DROPPED].select(["num_bytes", "reason"]).to_pylist()
    report = _report(files, dropped)
    if HISTORY not in output.tables:
        return report
    return replace(report, measures={**report.measures, "num_modifications": output.tables[HISTORY].num_rows})


def _read_source(job: PartJob) -> SourceContents:
    (path,) = job.places.values()
    identity, limits = job.identity, cast(CollectParams, job.params)
    selection = Selection(identity["include"], identity["exclude"])
    options = ReadOptions(job.name, selection, limits, keeps_tree=identity.get("build") is not None)
    return SOURCE_KINDS[identity["kind"]].contents_of(job, path, options)


def _tree_files(source: str, skipped: Iterable[SkippedFile], selectors: Selectors) -> list[TreeFile]:
    """Return the files in other languages that a build needs: those that kept their bytes and are not withdrawn."""
    kept = [TreeFile(file.path, file.content) for file in skipped if file.content is not None]
    digests = [hashlib.sha256(file.content).hexdigest() if selectors.has_digests else None for file in kept]
    return [
        file for file, sha256 in zip(kept, digests, strict=True) if not selectors.matching(source, file.path, sha256)
    ]


def _part(pin: SourcePin, path: Path, context: CollectContext) -> Part:
    # A withdrawal enters only the identities of the sources that it may change: the others keep their ids.
    withdrawn = [selector.text for selector in context.withdrawn if selector.concerns(pin.name)]
    languages = {"languages": suffixes_by_language()}
    identity = pin.identity()
    changes = {CHANGES: True} if context.params.with_changes and _has_history(pin) else {}
    return Part(
        name=pin.name,
        function="source",
        params=context.params,
        identity=identity | languages | changes | ({"withdrawn": withdrawn} if withdrawn else {}),
        places={"source": path},
    )


def _source_file(source: str, revision: str, file: ReadFile) -> SourceFile:
    header = f"blob {len(file.content)}\0".encode()
    return SourceFile(
        source=source,
        revision=revision,
        path=file.path,
        blob_sha256=hashlib.sha256(file.content).hexdigest(),
        git_blob_id=hashlib.sha1(header + file.content, usedforsecurity=False).hexdigest(),
        num_bytes=len(file.content),
        is_evidence=not is_source(file.path),
        content=file.content,
    )


def _version(source: str, revision: str, version: ReadVersion) -> SourceFile:
    """Return the row of a version, named by its own id: that of a file is of the other hash in a repository of SHA-256."""
    file = _source_file(source, revision, ReadFile(version.path, version.content))
    return replace(file, git_blob_id=version.git_blob_id)


def _path(file: ReadFile | SkippedFile) -> str:
    return file.path


def _blob(version: ReadVersion | CommitEvidence) -> tuple[str, str | None]:
    return version.path, version.git_blob_id


def _withdrawn_versions(
    source: str, versions: Iterable[ReadVersion], selectors: Selectors
) -> dict[tuple[str, str | None], Selector]:
    """Return the path and the id of each version that is withdrawn, with what withdraws it."""
    digests = [(each, hashlib.sha256(each.content).hexdigest()) for each in (versions if selectors.all else ())]
    found = {_blob(each): selectors.matching(source, each.path, sha256) for each, sha256 in digests}
    return {blob: by[0] for blob, by in found.items() if by}


def _changes_from_or_to(
    gone: Mapping[tuple[str, str | None], Selector], history: Iterable[FileModification]
) -> dict[str, Selector]:
    """Return the paths of the changes of which a version is gone, with what withdraws it."""
    ends = [((row.path, blob_id), row) for row in history for blob_id in (row.old_blob_id, row.new_blob_id)]
    return {change_path(row.commit_hash, row.path): gone[blob] for blob, row in ends if blob in gone}


def _withdraw(
    files: list[SourceFile], selectors: Selectors, changes: Mapping[str, Selector]
) -> tuple[list[SourceFile], list[SkippedFile]]:
    """Return the files that no selector matches, and the others.

    What is withdrawn by its bytes goes with all of its changes, and a version with the changes from and to it.
    """
    found = {file.path: selectors.matching(file.source, file.path, file.blob_sha256) for file in files}
    every = {**changes, **{path: by[0] for path, by in found.items() if by}}
    matches = [(file, every.get(file.path) or every.get(changed_file(file.path))) for file in files]
    removed = [SkippedFile(file.path, file.num_bytes, "withdrawn", f"by {by.text}") for file, by in matches if by]
    return [file for file, by in matches if by is None], removed


def _dropped(source: str, skipped: SkippedFile) -> DroppedRecord:
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


def _report(files: list[dict[str, Any]], dropped: list[dict[str, Any]]) -> StageReport:
    num_bytes = sum(file["num_bytes"] for file in files)
    num_evidence_files = sum(file["is_evidence"] for file in files)
    return StageReport(
        rows_in=len(files) + len(dropped),
        rows_out=len(files),
        dropped=dict(sorted(Counter(row["reason"] for row in dropped).items())),
        num_bytes_in=num_bytes + sum(row["num_bytes"] for row in dropped),
        num_bytes_out=num_bytes,
        measures={
            "num_source_files": len(files) - num_evidence_files,
            "num_evidence_files": num_evidence_files,
            "source_bytes": sum(file["num_bytes"] for file in files if not file["is_evidence"]),
        },
    )
