"""The collect stage: pins become source files. Each source is one part, and the failure of one does not stop another."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote_from_bytes

from pipeline.contracts.part import LISTING_SUFFIX, Part, PartJob, PartOutput, StageOutput
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.errors import SourceError
from pipeline.core.params import Params
from pipeline.core.records import DroppedRecord, FileModification, ListedFile, SourceFile, TreeFile
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DROPPED, FILES, HISTORY, LISTED, TREE
from pipeline.lexing.languages import is_source, suffixes_by_language
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selection, Selector, Selectors
from pipeline.stages.collect.contents import ReadFile, ReadOptions, SkippedFile, SourceContents
from pipeline.stages.collect.kinds.source_kind import CollectContext, Fetcher
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.refusals import naming_source, num_bytes_of, refuse_empty

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
    )


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
    read = [_source_file(job.name, revision, file) for file in contents.files]
    selectors = Selectors(Selector(text) for text in job.identity.get("withdrawn", ()))
    files, withdrawn = _withdraw(read, selectors)
    drops = [_dropped(job.name, skipped) for skipped in sorted((*contents.skipped, *withdrawn), key=lambda s: s.path)]
    tables = {FILES: table_of_records(SourceFile, files), DROPPED: table_of_records(DroppedRecord, drops)}
    if job.identity.get("build") is not None:
        tables[TREE] = table_of_records(TreeFile, _tree_files(job.name, contents.skipped, selectors))
    if contents.history is not None:
        removed = {skipped.path for skipped in withdrawn}
        history = [change for change in contents.history if change.path not in removed]
        tables[HISTORY] = table_of_records(FileModification, history)
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
    return Part(
        name=pin.name,
        function="source",
        params=context.params,
        identity=pin.identity() | languages | ({"withdrawn": withdrawn} if withdrawn else {}),
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


def _withdraw(files: list[SourceFile], selectors: Selectors) -> tuple[list[SourceFile], list[SkippedFile]]:
    matches = [(file, selectors.matching(file.source, file.path, file.blob_sha256)) for file in files]
    removed = [SkippedFile(file.path, file.num_bytes, "withdrawn", f"by {by[0].text}") for file, by in matches if by]
    return [file for file, by in matches if not by], removed


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
