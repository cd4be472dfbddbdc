"""The collect stage: pins become source files. Each source is one part, and the failure of one does not stop another."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote_from_bytes

from pipeline.contracts.joined_parts import join_part, source_of
from pipeline.contracts.part import (
    EVIDENCE_LABEL,
    LISTING_SUFFIX,
    SCRATCH,
    MadePart,
    Part,
    PartJob,
    PartOutput,
    StageOutput,
)
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.change_text import CHANGES
from pipeline.core.errors import LargeSourceError, SourceError
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
from pipeline.lexing.languages import suffixes_by_language
from pipeline.pins.local_tree import tree_entries
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selector, Selectors
from pipeline.stages.collect.change_rows import (
    changes_from_or_to,
    history_rows,
    is_withdrawn,
    version_place,
    version_row,
    withdrawn_versions,
)
from pipeline.stages.collect.contents import ReadChanges, SkippedFile
from pipeline.stages.collect.kinds.source_kind import CollectContext, Fetcher
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.read_shards import READ, shards_of
from pipeline.stages.collect.refusals import naming_source, num_bytes_of, refuse_empty, refuse_large
from pipeline.stages.collect.source_rows import (
    dropped_record,
    read_contents,
    source_file,
    without_withdrawn,
    without_words,
)

_NO_HISTORY = (
    '`collect.with_changes` has no effect: no pin has a history. Write `history = true` in a pin of `kind = "git"`.'
)
LISTING_VERSION = 6
"""Raised when a listing changes."""


def run(context: CollectContext, retry: RetryPolicy | None = None) -> StageOutput:
    """Fetch every pinned source into the store, then make one part for each. Sources that fail are listed in `failures`.

    Raises StageError for a rule of what is held out that holds out no file, or all of them.
    """
    fetcher = Fetcher(context, retry or RetryPolicy())
    parts: list[Part] = []
    failures: dict[str, SourceError] = {}
    for pin in context.pins:
        try:
            with naming_source(pin.name):
                parts.append(_fetched(pin, fetcher))
        except SourceError as error:
            failures[pin.name] = error
    made, failed, read = _make(context, parts)
    failures.update(failed)
    listings, unlisted = context.make(
        _listings((part, made[part.name].object_id) for part in parts if part.name in made)
    )
    refused = {name.removesuffix(LISTING_SUFFIX): error for name, error in unlisted.items()}
    failures.update(refused)
    made = {name: part for name, part in made.items() if name not in refused}
    has_idle_changes = context.params.with_changes and not any(map(_has_history, context.pins))
    warnings: tuple[str, ...] = (_NO_HISTORY,) if has_idle_changes else ()
    if not failures:  # before the stage has an output, and a ref names it
        names = {name: part.object_id for name, part in made.items()}
        warnings += context.held_out.refuse_idle_parts(names, context.read, context.withdrawn)
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
        evidence={**{name: part.object_id for name, part in listings.items()}, **read},
        warnings=warnings,
    )


def _has_history(pin: SourcePin) -> bool:
    return bool(pin.identity().get("history"))


def _make(
    context: CollectContext, parts: Sequence[Part]
) -> tuple[dict[str, MadePart], dict[str, SourceError], dict[str, str]]:
    """Make the part of each source; return those made, the sources that failed, and what stands beside sources in shards, by name.

    Such a source becomes a part that lists its shards, and its evidence; as it was read it is kept too, to be recognized.
    """
    made, failed = context.make(parts)
    large = [_in_shards(part, context) for part in parts if isinstance(failed.get(part.name), LargeSourceError)]
    if large:
        again, flawed = context.make(large)
        made = {**made, **again}
        failed = {name: error for name, error in failed.items() if name not in again} | dict(flawed)
        parts = [*(part for part in parts if part.name not in again), *large]
    read = {part.name: part for part in parts if part.function == READ and part.name in made}
    whole = {name: part for name, part in made.items() if name not in read}
    if not read:
        return whole, dict(failed), {}
    shards = {name: shards_of(name, context.read(made[name].object_id)) for name in read}
    stored, flawed = context.make([shard for some in shards.values() for shard in some])
    failures = dict(failed) | {source_of(name): error for name, error in flawed.items()}
    ids, joins = {name: part.object_id for name, part in stored.items()}, []
    for name, (*some, evidence) in shards.items():
        if name not in failures:
            part = join_part(name, some, ids, read[name].identity)
            inputs = {**part.inputs, EVIDENCE_LABEL: ids[evidence.name]}
            joins.append(replace(part, params=context.params, inputs=inputs))
    joined, _ = context.make(joins)
    objects = {f"{part.name}.{READ}": made[part.name].object_id for part in joins}
    objects |= {f"{part.name}.{EVIDENCE_LABEL}": part.inputs[EVIDENCE_LABEL] for part in joins}
    return dict(sorted({**whole, **joined}.items())), failures, objects


def _fetched(pin: SourcePin, fetcher: Fetcher) -> Part:
    """Return the part of a source with its bytes. Those that were erased are not fetched for a part that is only recognized."""
    context = fetcher.context
    part = _part(pin, Path(), context)
    for each in (part, _in_shards(part, context)) if pin.revision in context.erased else ():
        known = context.known(each)
        if known is not None and all(context.known(listing) is not None for listing in _listings([(each, known)])):
            return each
    path = SOURCE_KINDS[pin.kind].path_of(pin, fetcher)
    part = replace(part, places={"source": path})
    if _is_whole(part.identity):
        return part
    in_shards = _in_shards(part, context)
    is_large = _is_large(pin, path, context.params) or context.known(in_shards) is not None
    return in_shards if is_large else part


def _listings(parts: Iterable[tuple[Part, str]]) -> list[Part]:
    """Return the parts that list each source again, once it was read into the object of that id."""
    return [
        Part(
            f"{part.name}{LISTING_SUFFIX}",
            "list",
            Params(),
            inputs={"read": object_id},
            identity={**part.identity, "listing": LISTING_VERSION},
            places={"source": part.places["source"]},
        )
        for part, object_id in parts
        if SOURCE_KINDS[part.identity["kind"]].listing is not None
    ]


def list_source(job: PartJob) -> PartOutput:
    """Return the names in one source's bytes, as a part, percent-encoded; the audit compares them with what was read."""
    path, source, read = job.places["source"], job.name.removesuffix(LISTING_SUFFIX), job.inputs["read"]
    with naming_source(source):
        found = SOURCE_KINDS[job.identity["kind"]].names_in(job.identity, path, num_bytes_of(read))
    files = [
        ListedFile(
            source,
            quote_from_bytes(listed.name),
            listed.other_path,
            None if listed.member is None else quote_from_bytes(listed.member),
            listed.is_optional,
            listed.git_blob_id,
            listed.num_bytes,
        )
        for listed in found
        if listed.of_commit is None
    ]
    tables = {LISTED: table_of_records(ListedFile, files)}
    if job.identity.get("history"):
        of_commits = [each.of_commit for each in found if each.of_commit is not None]
        tables |= {name: table_of_records(record, rows) for name, record, rows in history_rows(source, of_commits)}
    return PartOutput(tables, StageReport(len(files), len(files)))


def collect_source(job: PartJob) -> PartOutput:
    """Read one source's files and drops from its verified bytes, and its history if the pin has it. Raises SourceError."""
    with naming_source(job.name):
        contents = read_contents(job)
    refuse_empty(job.name, contents)
    if not _is_whole(job.identity):
        refuse_large(job.name, contents, cast(CollectParams, job.params).max_shard_bytes)
    revision: str = job.identity["revision"]
    changes = contents.changes or ReadChanges((), (), (), ())
    selectors = Selectors(Selector(text) for text in job.identity.get("withdrawn", ()))
    gone = withdrawn_versions(job.name, changes.versions, selectors)
    read = sorted((*contents.files, *changes.files), key=lambda each: each.path)
    gone_changes = changes_from_or_to(gone, contents.history or ())
    kept, withdrawn = without_withdrawn(job.name, read, selectors, gone_changes)
    files = [source_file(job.name, revision, file) for file in kept]
    others = without_words(job.name, (*contents.skipped, *changes.skipped), selectors, gone_changes)
    skipped = sorted((*others, *withdrawn), key=lambda each: each.path)
    drops = [dropped_record(job.name, each) for each in skipped]
    tables = {FILES: table_of_records(SourceFile, files), DROPPED: table_of_records(DroppedRecord, drops)}
    if job.identity.get("build") is not None:
        tables[TREE] = table_of_records(TreeFile, _tree_files(job.name, contents.skipped, selectors))
    if contents.history is not None:
        removed = {skipped.path for skipped in withdrawn}
        history = [
            replace(change, subject="") if is_withdrawn(change, removed, selectors) else change
            for change in contents.history
            if change.path not in removed
        ]
        tables[HISTORY] = table_of_records(FileModification, history)
    if contents.changes is not None:
        left = [each for each in changes.versions if each.path not in removed and version_place(each) not in gone]
        evidence = [
            replace(each, git_blob_id=None) if version_place(each) in gone else each for each in changes.evidence
        ]
        tables[VERSIONS] = table_of_records(SourceFile, [version_row(job.name, revision, each) for each in left])
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


def _tree_files(source: str, skipped: Iterable[SkippedFile], selectors: Selectors) -> list[TreeFile]:
    """Return the files in other languages that a build needs: those that kept their bytes and are not withdrawn."""
    kept = [TreeFile(file.path, file.content) for file in skipped if file.content is not None]
    digests = [hashlib.sha256(file.content).hexdigest() if selectors.has_digests else None for file in kept]
    return [
        file for file, sha256 in zip(kept, digests, strict=True) if not selectors.matching(source, file.path, sha256)
    ]


def _part(pin: SourcePin, path: Path, context: CollectContext) -> Part:
    """Return the part of a source as one."""
    # A withdrawal enters only the identities of the sources that it may change: the others keep their ids.
    withdrawn = [selector.text for selector in context.withdrawn if selector.concerns(pin.name)]
    languages = {"languages": suffixes_by_language()}
    changes = {CHANGES: True} if context.params.with_changes and _has_history(pin) else {}
    return Part(
        name=pin.name,
        function="source",
        params=context.params,
        identity=pin.identity() | languages | changes | ({"withdrawn": withdrawn} if withdrawn else {}),
        places={"source": path},
    )


def _in_shards(part: Part, context: CollectContext) -> Part:
    """Return the part that reads the same source in shards."""
    return replace(part, function=READ, places={**part.places, SCRATCH: context.store_root / "tmp"})


def _is_whole(identity: Mapping[str, Any]) -> bool:
    """Return whether a source stays one part: what a compiler reads, and a history, is of all of it."""
    return identity.get("build") is not None or bool(identity.get("history"))


def _is_large(pin: SourcePin, path: Path, limits: CollectParams) -> bool:
    """Return whether the bytes of a source may be more than a shard's, as far as is known before they are read."""
    entries = tree_entries(path, pin.selection()) if path.is_dir() else ()
    num_bytes = sum(entry.num_bytes for entry in entries) if path.is_dir() else path.stat().st_size
    return num_bytes * SOURCE_KINDS[pin.kind].max_expansion > limits.min_shard_bytes


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
