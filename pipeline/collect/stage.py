"""Collect: from pins to source files. Each source is a part of its own, and the failure of one never stops another."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import cast

from pipeline.collect.download import Patience, download, file_blocks, open_session
from pipeline.collect.local import TreeEntry, digest_of, file_sha256, read_file, tree_digest, tree_entries
from pipeline.collect.params import CollectParams
from pipeline.collect.pins import ArchivePin, LocalPin, SdistPin, SourcePin
from pipeline.collect.sdist import PackageIndex, pip_configuration
from pipeline.collect.selection import Selection
from pipeline.collect.unpack import Contents, ReadFile, SkippedFile, reason_to_skip, unpack
from pipeline.durable import held
from pipeline.errors import ArchiveError, DigestError, FetchError, SourceError
from pipeline.languages import is_source
from pipeline.outcome import StageReport, total
from pipeline.part import Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.records import DroppedRecord, SourceFile
from pipeline.schema import table_of_records

Context = StageContext[CollectParams]


def run(context: Context, patience: Patience | None = None) -> StageOutput:
    """Have every pinned archive in the store, then make one part a source. Those that fail are listed in `failures`."""
    network = _Network(patience or Patience())
    parts: list[Part] = []
    failures: dict[str, SourceError] = {}
    for pin in context.pins:
        try:
            parts.append(_part(pin, _places(pin, context, network), context.params))
        except SourceError as error:
            failures[pin.name] = error
    made, failed = context.make(parts)
    failures.update(failed)
    # The empty report first: where every source failed, the gates still find their measures, at zero.
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
    )


def collect_source(job: PartJob) -> PartOutput:
    """One source's files and drops, from the archive or tree at its place. Raises a SourceError."""
    params = cast(CollectParams, job.params)
    selection = Selection(job.identity["include"], job.identity["exclude"])
    revision: str = job.identity["revision"]
    if "tree" in job.places:
        contents = _read_tree(job.name, job.places["tree"], revision, selection, params)
    else:
        contents = unpack(job.places["archive"], selection, params, job.name)
    files = [_source_file(job.name, revision, file) for file in contents.files]
    drops = [_dropped(job.name, skipped) for skipped in contents.skipped]
    tables = {
        "files.parquet": table_of_records(SourceFile, files),
        "dropped.parquet": table_of_records(DroppedRecord, drops),
    }
    return PartOutput(tables, _report(files, drops))


class _Network:
    """The package index, asked for only when an archive is missing."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience

    @cached_property
    def index(self) -> PackageIndex:
        return PackageIndex(pip_configuration(), self._patience)

    def fetch_sdist(self, pin: SdistPin, partial: Path) -> None:
        self.index.fetch(pin, partial)

    def fetch_url(self, pin: ArchivePin, partial: Path) -> None:
        with open_session(self._patience) as session:
            download(session, str(pin.url), partial, pin.sha256, self._patience)


def _part(pin: SourcePin, places: Mapping[str, Path], params: CollectParams) -> Part:
    return Part(
        name=pin.name,
        kind="collect/part",
        function="pipeline.collect.stage:collect_source",
        params=params,
        identity=pin.identity(),
        places=places,
    )


def _places(pin: SourcePin, context: Context, network: _Network) -> dict[str, Path]:
    """Where the verified bytes of a pin lie. What each kind does stands in `_PLACES_OF`."""
    places_of = _PLACES_OF.get(type(pin))
    if places_of is None:
        kinds = "sdist, archive and local"
        remedy = "Take this pin out of the recipe, or pin an archive of the same tree."
        raise SourceError(pin.name, f"is of kind {pin.kind}", f"{kinds}, which is what this version collects", remedy)
    return places_of(pin, context, network)


def _places_of_sdist(pin: SourcePin, context: Context, network: _Network) -> dict[str, Path]:
    pin = cast(SdistPin, pin)
    return {"archive": _blob(pin, pin.file_name, context, partial(network.fetch_sdist, pin))}


def _places_of_archive(pin: SourcePin, context: Context, network: _Network) -> dict[str, Path]:
    pin = cast(ArchivePin, pin)
    if pin.path is None:
        return {"archive": _blob(pin, str(pin.url), context, partial(network.fetch_url, pin))}
    stored = context.blob(pin.sha256)
    if stored is None and not pin.path.is_file():
        raise SourceError(pin.name, f"{pin.path} is not a file", "the archive", "Correct the pin's `path`.")
    return {"archive": stored or context.put_blob(file_blocks(pin.path), pin.sha256, pin.name)}


def _places_of_tree(pin: SourcePin, context: Context, network: _Network) -> dict[str, Path]:
    """A tree can change under a pin, so its digest is taken in every run, not only when its part is made."""
    pin = cast(LocalPin, pin)
    _check_tree(pin.name, tree_digest(pin.path, pin.selection()), pin.digest)
    return {"tree": pin.path}


_PLACES_OF: dict[type[SourcePin], Callable[[SourcePin, Context, _Network], dict[str, Path]]] = {
    SdistPin: _places_of_sdist,
    ArchivePin: _places_of_archive,
    LocalPin: _places_of_tree,
}


def _blob(pin: SdistPin | ArchivePin, file_name: str, context: Context, fetch: Callable[[Path], None]) -> Path:
    stored = context.blob(pin.sha256)
    if stored is not None:
        return stored
    if context.offline:
        found = f"{file_name} (sha256 {pin.sha256}) is not in the store, or not sound there, and the network is not to be used"
        remedy = "Build once with the network, or copy the archive into the store's blobs."
        raise FetchError(pin.name, found, "every archive to be there", remedy)
    arriving = context.partial_blob(pin.sha256)
    arriving.parent.mkdir(parents=True, exist_ok=True)
    with held(arriving.with_suffix(".lock")):  # two builds never write one file that arrives
        stored = context.blob(pin.sha256)
        if stored is not None:
            return stored
        fetch(arriving)
        try:
            return context.put_blob(file_blocks(arriving), pin.sha256, pin.name)
        finally:
            arriving.unlink(missing_ok=True)


def _check_tree(source: str, found: str, pinned: str) -> None:
    if found != pinned:
        remedy = f'Review what changed, then write digest = "{found}" into the pin.'
        raise DigestError(source, f"its tree has the digest {found}", pinned, remedy)


def _read_tree(source: str, root: Path, revision: str, selection: Selection, params: CollectParams) -> Contents:
    """The files of a tree. The digest is taken again over the bytes that are used, so that no later change slips in."""
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
        skipped.append(SkippedFile(entry.path, entry.num_bytes, reason))
        if not not_ours:
            lines.append((entry, file_sha256(entry)))
    _check_tree(source, digest_of(lines), revision)
    return Contents(tuple(files), tuple(skipped))


def _check_extent(source: str, entries: list[TreeEntry], params: CollectParams) -> None:
    total_bytes = sum(entry.num_bytes for entry in entries)
    if len(entries) > params.max_members or total_bytes > params.max_total_bytes:
        found = f"its tree has {len(entries)} entries and {total_bytes} bytes"
        limit = f"at most {params.max_members} and {params.max_total_bytes}"
        raise ArchiveError(source, found, limit, "Exclude what is not source, or raise the limit.")


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


def _dropped(source: str, skipped: SkippedFile) -> DroppedRecord:
    return DroppedRecord(
        source=source,
        path=skipped.path,
        record_id=f"{source}/{skipped.path}",
        num_bytes=skipped.num_bytes,
        reason=skipped.reason,
        detail=skipped.detail,
        licence=None,
        text_sha256=None,
    )


def _report(files: list[SourceFile], drops: list[DroppedRecord]) -> StageReport:
    num_bytes = sum(file.num_bytes for file in files)
    num_evidence_files = sum(file.is_evidence for file in files)
    return StageReport(
        rows_in=len(files) + len(drops),
        rows_out=len(files),
        dropped=dict(sorted(Counter(drop.reason for drop in drops).items())),
        num_bytes_in=num_bytes + sum(drop.num_bytes for drop in drops),
        num_bytes_out=num_bytes,
        measures={
            "num_source_files": len(files) - num_evidence_files,
            "num_evidence_files": num_evidence_files,
            "num_files_without_revision": sum(not file.revision for file in files),
            "source_bytes": sum(file.num_bytes for file in files if not file.is_evidence),
        },
    )
