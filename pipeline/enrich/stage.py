"""Enrich: structure beside the text of every document that won against its duplicates. Each source is a part.

A source's part depends on its own documents and on which of them lost, never on other sources: a new source leaves it
alone unless one of its documents lost against it. Only a source whose pin has a `build` block depends on the compiler index: on
that block, on the tree that was collected, and on the versions of the tools, those that are absent included.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.part import Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.params import canonical_json
from pipeline.core.records import PROVENANCE_CODES, EnrichedDocument, Provenance
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DOCUMENTS, ENRICHED, FILES, KEPT, TREE
from pipeline.enrich.compiler.compiler_index import CompilerIndex, SourceTree, index_source
from pipeline.enrich.compiler.tools import tool_versions
from pipeline.enrich.document import ParsedDocument, provenance_columns, read_document, record_of
from pipeline.enrich.include_order import order_documents
from pipeline.enrich.params import BuiltParams, EnrichParams, SyntaxParams
from pipeline.pins.build_block import BuildBlock

DUPLICATES = "duplicates"
COMPILER_RECORD = "compiler.json"
"""File of a built source's part: the tools, the counts, what went wrong, and each unit that failed with its reason."""
COMPILER_VERSION = 3
"""Raised when the compiler index changes: parts of sources without a `build` block do not depend on it."""

_CHRONOLOGY = ("filepath_stable_id", "file_local_commit_index")
_READ = ["document_id", "source", "path", "split", "text", "text_sha256", *_CHRONOLOGY]

EnrichContext = StageContext[EnrichParams]


def run(context: EnrichContext) -> StageOutput:
    """Make one part a source, from its documents and the list of those that lost as duplicates."""
    rules = {name: object_id for name, object_id in context.inputs.items() if name != DUPLICATES}
    kept = context.read(context.inputs[DUPLICATES]).table(KEPT, ["document_id"])["document_id"]
    blocks = {pin.name: pin.build for pin in context.pins}
    parts = []
    for name in rules:
        part = _part(name, rules[name], _dropped(context, rules[name], kept), context.params)
        block = blocks.get(name)
        parts.append(part if block is None else _built_part(part, block, context))
    made, failures = context.make(parts)
    report = total([_report([]), *(part.report for part in made.values())])
    built = [made[name].object_id for name, block in sorted(blocks.items()) if block is not None and name in made]
    return StageOutput(
        parts={name: part.object_id for name, part in made.items()},
        report=replace(report, measures={**report.measures, **_shares(report)}),
        failures=failures,
        notes=tuple(note for object_id in built for note in context.read(object_id).json(COMPILER_RECORD)["notes"]),
    )


def enrich_source(job: PartJob) -> PartOutput:
    """Return the enriched documents of one source, in include order, and the counts."""
    return _enriched(_kept_documents(job), cast(SyntaxParams, job.params), None)


def enrich_built_source(job: PartJob) -> PartOutput:
    """Return the same for a source with a `build` block, with what the compiler index holds of each document."""
    params = cast(BuiltParams, job.params)
    documents = _kept_documents(job)
    block = BuildBlock.model_validate_json(canonical_json(job.identity["build"]))
    collected = job.inputs["collected"]
    files = {
        row["path"]: row["content"]
        for table in (FILES, TREE)
        for row in collected.table(table, ["path", "content"]).to_pylist()
    }
    texts = {row["path"]: row["text"].encode() for row in documents.to_pylist()}
    source = SourceTree(job.name, files, texts)
    versions = dict(job.identity["tools"])
    index = index_source(source, block, params.compiler, versions, job.places.get("cache"))
    output = _enriched(documents, params.syntax, index)
    coverage = _coverage(output.report, block)
    if coverage["num_sources_out_of_band"]:
        index.notes.append(f"The compiler index of {job.name}: {_sentence(output.report, block)}.")
    record = {
        "tools": versions,
        "counts": {**dict(sorted(index.counts.items())), **coverage},
        "notes": index.notes,
        "failed": index.failures,
        "failed_with_bodies": index.failures_with_bodies,
    }
    measures = {**output.report.measures, **index.counts, **coverage}
    return PartOutput(
        output.tables, replace(output.report, measures=measures), {COMPILER_RECORD: canonical_json(record)}
    )


def _enriched(documents: pa.Table, params: SyntaxParams, index: CompilerIndex | None) -> PartOutput:
    parsed = [
        read_document(row, params, None if index is None else index.view(row["path"])) for row in documents.to_pylist()
    ]
    position = {path: index for index, path in enumerate(order_documents(_includes(parsed)))}
    records = [record_of(document, position[document.row["path"]]) for document in parsed]
    records.sort(key=lambda record: record.order_in_source)
    return PartOutput({ENRICHED: table_of_records(EnrichedDocument, records)}, _report(parsed))


def _kept_documents(job: PartJob) -> pa.Table:
    documents = job.inputs["documents"].table(DOCUMENTS, _READ)
    dropped = pa.array(job.identity["dropped"], type=documents.schema.field("document_id").type)
    return documents.filter(pc.invert(pc.is_in(documents["document_id"], value_set=dropped)))


def _part(name: str, documents: str, dropped: Sequence[str], params: EnrichParams) -> Part:
    return Part(
        name=name,
        kind="enrich/part",
        function="source",
        params=params.syntax,
        inputs={"documents": documents},
        identity={"dropped": dropped},
    )


def _built_part(part: Part, block: BuildBlock, context: EnrichContext) -> Part:
    """Return the part of a source with a `build` block: it depends on the collected tree and on the tools too."""
    return replace(
        part,
        function="built_source",
        params=BuiltParams(syntax=context.params.syntax, compiler=context.params.compiler),
        inputs={**part.inputs, "collected": context.upstream("collect")[part.name]},
        identity={
            **part.identity,
            "build": block.model_dump(mode="json"),
            "tools": tool_versions(block.cmake),
            "compiler": COMPILER_VERSION,
        },
        places=_cache(context),
    )


def _cache(context: EnrichContext) -> dict[str, Path]:
    """Return the cache folder of compiled units, beside the store's objects. It may be deleted at any time."""
    return {"cache": context.store_root / "units"}


def _dropped(context: EnrichContext, documents: str, kept: pa.ChunkedArray) -> list[str]:
    """Return the ids of a source's documents that lost as duplicates, sorted."""
    ids = context.read(documents).table(DOCUMENTS, ["document_id"])["document_id"]
    return sorted(ids.filter(pc.invert(pc.is_in(ids, value_set=kept))).to_pylist())


def _includes(parsed: Sequence[ParsedDocument]) -> dict[str, tuple[str, ...]]:
    return {document.row["path"]: document.syntax.includes for document in parsed}


def _report(parsed: Sequence[ParsedDocument]) -> StageReport:
    num_bytes = sum(len(document.syntax.content) for document in parsed)
    provenances = Counter(document.provenance for document in parsed)
    codes = _bytes_by_provenance(parsed)
    measures = {f"num_documents_{provenance.value}": provenances[provenance] for provenance in Provenance}
    measures |= {
        "num_documents_without_provenance": len(parsed) - provenances.total(),
        "num_chunks": sum(len(document.chunks) for document in parsed),
        "num_bytes_changed": sum(document.num_bytes_changed for document in parsed),
        "num_error_bytes": sum(document.syntax.num_error_bytes for document in parsed),
        "num_documents_with_errors": sum(document.syntax.num_error_bytes > 0 for document in parsed),
        "num_error_bytes_unblanked": sum(document.syntax.num_error_bytes_unblanked for document in parsed),
        "num_documents_with_blanked_branches": sum(bool(document.syntax.blanked) for document in parsed),
        **{f"num_bytes_{provenance.value}": codes[provenance] for provenance in Provenance},
        "num_bytes_without_provenance": num_bytes - codes.total(),
        "num_files_matched": sum(document.view is not None and _is_matched(document) for document in parsed),
        "num_files_indexed": sum(document.view is not None and document.view.is_seen for document in parsed),
        "num_files_partial": sum(document.view is not None and _is_partial(document) for document in parsed),
        "num_files_fallen_back": sum(document.view is not None and not document.view.is_seen for document in parsed),
        "num_documents_tool_failed": sum(document.provenance_detail.startswith("tool_failed") for document in parsed),
        "num_sources_built": 0,
        "num_sources_out_of_band": 0,
        "num_local_paths_in_context": 0,
    }
    return StageReport(len(parsed), len(parsed), {}, num_bytes, num_bytes, measures)


def _is_matched(document: ParsedDocument) -> bool:
    """Return whether a unit of the database is this file or reads it, compiled or not."""
    return document.view is not None and document.view.context is not None


def _is_partial(document: ParsedDocument) -> bool:
    return document.view is not None and document.view.is_seen and document.view.detail.startswith("partial")


def _bytes_by_provenance(parsed: Sequence[ParsedDocument]) -> Counter[Provenance]:
    """Bytes by the provenance of their structure; those without any are in none."""
    names = {code: provenance for provenance, code in PROVENANCE_CODES.items()}
    counts: Counter[Provenance] = Counter()
    for document in parsed:
        columns = provenance_columns(document)
        ends = [*columns["provenance_starts"][1:], len(document.syntax.content)]
        for start, end, code in zip(columns["provenance_starts"], ends, columns["provenance_codes"], strict=True):
            if int(code) in names:
                counts[names[int(code)]] += int(end) - int(start)
    return counts


def _coverage(report: StageReport, block: BuildBlock) -> dict[str, float]:
    """Return whether the shares of a built source's documents keep to the band of its pin."""
    num_documents = max(1, report.rows_out)
    seen = report.measures["num_documents_build_aware"] / num_documents
    failed = report.measures["num_documents_tool_failed"] / num_documents
    is_out = seen < block.min_build_aware_fraction or failed > block.max_failed_fraction
    return {"num_sources_built": 1, "num_sources_out_of_band": int(is_out)}


def _sentence(report: StageReport, block: BuildBlock) -> str:
    measures = report.measures
    return (
        f"{measures['num_documents_build_aware']:g} of {report.rows_out} documents are build_aware, wanted is a share of "
        f"{block.min_build_aware_fraction:g}; the tools failed on {measures['num_documents_tool_failed']:g}, allowed is a "
        f"share of {block.max_failed_fraction:g}"
    )


def _shares(report: StageReport) -> dict[str, float]:
    """Shares of the documents by provenance, of those that did not parse, and of the bytes inside syntax errors."""
    num_documents, num_bytes = max(1, report.rows_out), max(1, report.num_bytes_out)
    shares = {
        f"{provenance.value}_fraction": report.measures.get(f"num_documents_{provenance.value}", 0) / num_documents
        for provenance in Provenance
    }
    num_failed = report.measures.get("num_documents_tool_failed", 0)
    shares["broken_fraction"] = shares[f"{Provenance.DEGRADED.value}_fraction"] - num_failed / num_documents
    return {**shares, "error_byte_fraction": report.measures.get("num_error_bytes", 0) / num_bytes}
