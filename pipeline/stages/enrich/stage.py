"""Enrich: structure beside the text of every document that won against its duplicates. Each source is a part.

A source's part depends on its own documents and on which of them lost, never on other sources: a new source leaves it
alone unless one of its documents lost against it. Only a source whose pin has a `build` block depends on the compiler index: on
that block, on the tree that was collected, and on the versions of the tools, those that are absent included.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.part import DUPLICATES_PART, Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.params import canonical_json
from pipeline.core.records import CHRONOLOGY, PROVENANCE_CODES, EnrichedDocument, Provenance
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DOCUMENTS, ENRICHED, FILES, KEPT, TREE
from pipeline.pins.build_block import BuildBlock
from pipeline.stages.enrich.compiler.compiler_index import CompilerIndex, IndexRequest, index_source
from pipeline.stages.enrich.compiler.tools import tool_versions
from pipeline.stages.enrich.document import ParsedDocument, parse_document, record_of
from pipeline.stages.enrich.include_order import order_documents
from pipeline.stages.enrich.params import BuiltParams, EnrichParams, SyntaxParams

COMPILER_RECORD = "compiler.json"
"""File of a built source's part: the tools, the counts, what went wrong, and each unit that failed with its reason."""
COMPILER_VERSION = 4
"""Raised when the compiler index changes: parts of sources without a `build` block do not depend on it."""

_READ = ["document_id", "source", "path", "split", "text", "text_sha256", *CHRONOLOGY]


def run(context: StageContext[EnrichParams]) -> StageOutput:
    """Make one part a source, from its documents and the list of those that lost as duplicates."""
    kept = context.read(context.inputs[DUPLICATES_PART]).table(KEPT, ["document_id"])["document_id"]
    blocks = {pin.name: pin.build for pin in context.pins}
    names = [name for name in context.inputs if name != DUPLICATES_PART]
    made, failures = context.make([_part(name, context, kept, blocks.get(name)) for name in names])
    report = total([_report([], []), *(part.report for part in made.values())])
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
    """Return the same for a source with a `build` block, with what the compiler index has on each document."""
    params = cast(BuiltParams, job.params)
    documents = _kept_documents(job)
    block = BuildBlock.model_validate_json(canonical_json(job.identity["build"]))
    files = {
        row["path"]: row["content"]
        for table in (FILES, TREE)
        for row in job.inputs["collected"].table(table, ["path", "content"]).to_pylist()
    }
    texts = {row["path"]: row["text"].encode() for row in documents.to_pylist()}
    versions, cache = dict(job.identity["tools"]), job.places.get("cache")
    index = index_source(IndexRequest(job.name, files, texts, block, params.compiler, versions, cache))
    output = _enriched(documents, params.syntax, index)
    outside = _outside_of_band(output.report, block)
    coverage = {"num_sources_built": 1, "num_sources_out_of_band": int(bool(outside))}
    if outside:
        index.notes.append(f"The compiler index of {job.name}: {outside}.")
    record = {
        "tools": versions,
        "counts": {**dict(sorted(index.counts.items())), **coverage},
        "notes": index.notes,
        "failed": index.failures,
        "failed_with_bodies": index.failures_with_bodies,
    }
    report = replace(output.report, measures={**output.report.measures, **index.counts, **coverage})
    return PartOutput(output.tables, report, {COMPILER_RECORD: canonical_json(record)})


def _enriched(documents: pa.Table, params: SyntaxParams, index: CompilerIndex | None) -> PartOutput:
    parsed = [
        parse_document(row, params, None if index is None else index.file(row["path"])) for row in documents.to_pylist()
    ]
    ordered = order_documents({document.row["path"]: document.syntax.includes for document in parsed})
    position = {path: order_in_source for order_in_source, path in enumerate(ordered)}
    parsed.sort(key=lambda document: position[document.row["path"]])
    records = [record_of(document, order_in_source) for order_in_source, document in enumerate(parsed)]
    return PartOutput({ENRICHED: table_of_records(EnrichedDocument, records)}, _report(parsed, records))


def _kept_documents(job: PartJob) -> pa.Table:
    documents = job.inputs["documents"].table(DOCUMENTS, _READ)
    dropped = pa.array(job.identity["dropped"], type=documents.schema.field("document_id").type)
    return documents.filter(pc.invert(pc.is_in(documents["document_id"], value_set=dropped)))


def _part(name: str, context: StageContext[EnrichParams], kept: pa.ChunkedArray, block: BuildBlock | None) -> Part:
    """Return the part of a source. With a `build` block it depends on the collected tree and on the tools too."""
    documents = context.inputs[name]
    ids = context.read(documents).table(DOCUMENTS, ["document_id"])["document_id"]
    part = Part(
        name=name,
        function="source",
        params=context.params.syntax,
        inputs={"documents": documents},
        identity={"dropped": sorted(ids.filter(pc.invert(pc.is_in(ids, value_set=kept))).to_pylist())},
    )
    if block is None:
        return part
    tools = {"tools": tool_versions(block.cmake), "compiler": COMPILER_VERSION}
    return replace(
        part,
        function="built_source",
        params=BuiltParams(syntax=context.params.syntax, compiler=context.params.compiler),
        inputs={**part.inputs, "collected": context.upstream("collect")[name]},
        identity={**part.identity, "build": block.model_dump(mode="json"), **tools},
        places={"cache": context.store_root / "units"},
    )


def _report(parsed: Sequence[ParsedDocument], records: Sequence[EnrichedDocument]) -> StageReport:
    num_bytes = sum(len(document.syntax.content) for document in parsed)
    provenances = Counter(document.provenance for document in parsed)
    num_bytes_by_provenance = _num_bytes_by_provenance(parsed, records)
    files = [document.index for document in parsed if document.index is not None]
    measures = {f"num_documents_{provenance.value}": provenances[provenance] for provenance in Provenance}
    measures |= {
        "num_documents_without_provenance": len(parsed) - provenances.total(),
        "num_chunks": sum(len(document.chunks) for document in parsed),
        "num_bytes_changed": sum(document.num_bytes_changed for document in parsed),
        "num_error_bytes": sum(document.syntax.num_error_bytes for document in parsed),
        "num_documents_with_errors": sum(document.syntax.num_error_bytes > 0 for document in parsed),
        "num_error_bytes_unblanked": sum(document.syntax.num_error_bytes_unblanked for document in parsed),
        "num_documents_with_blanked_branches": sum(bool(document.syntax.blanked) for document in parsed),
        **{f"num_bytes_{provenance.value}": num_bytes_by_provenance[provenance] for provenance in Provenance},
        "num_bytes_without_provenance": num_bytes - num_bytes_by_provenance.total(),
        "num_files_matched": sum(file.context is not None for file in files),
        "num_files_indexed": sum(file.is_indexed for file in files),
        "num_files_partial": sum(file.is_indexed and file.detail.startswith("partial") for file in files),
        "num_files_fallen_back": sum(not file.is_indexed for file in files),
        "num_documents_tool_failed": sum(document.provenance_detail.startswith("tool_failed") for document in parsed),
        "num_sources_built": 0,
        "num_sources_out_of_band": 0,
        "num_local_paths_in_context": 0,
    }
    return StageReport(len(parsed), len(parsed), {}, num_bytes, num_bytes, measures)


def _num_bytes_by_provenance(
    parsed: Sequence[ParsedDocument], records: Sequence[EnrichedDocument]
) -> Counter[Provenance]:
    """Count the bytes by the provenance of their structure; those without one are not counted."""
    provenances = {code: provenance for provenance, code in PROVENANCE_CODES.items()}
    counts: Counter[Provenance] = Counter()
    for document, record in zip(parsed, records, strict=True):
        starts, codes = record.provenance_starts or (), record.provenance_codes or ()
        for start, end, code in zip(starts, (*starts[1:], len(document.syntax.content)), codes, strict=False):
            if code in provenances:
                counts[provenances[code]] += end - start
    return counts


def _outside_of_band(report: StageReport, block: BuildBlock) -> str:
    """Return how the shares of a built source's documents leave the band of its pin; nothing if they do not."""
    num_indexed, num_failed = report.measures["num_documents_build_aware"], report.measures["num_documents_tool_failed"]
    num_documents = max(1, report.rows_out)
    is_indexed = num_indexed / num_documents >= block.min_build_aware_fraction
    if is_indexed and num_failed / num_documents <= block.max_failed_fraction:
        return ""
    return (
        f"{num_indexed:g} of {report.rows_out} documents are build_aware, expected is a share of "
        f"{block.min_build_aware_fraction:g}; the tools failed on {num_failed:g}, allowed is a "
        f"share of {block.max_failed_fraction:g}"
    )


def _shares(report: StageReport) -> dict[str, float]:
    """Return shares of the documents by provenance and without a parse, and the share of the bytes inside syntax errors."""
    num_documents, num_bytes = max(1, report.rows_out), max(1, report.num_bytes_out)
    shares = {
        f"{provenance.value}_fraction": report.measures[f"num_documents_{provenance.value}"] / num_documents
        for provenance in Provenance
    }
    num_failed = report.measures["num_documents_tool_failed"]
    shares["broken_fraction"] = shares[f"{Provenance.DEGRADED.value}_fraction"] - num_failed / num_documents
    return {**shares, "error_byte_fraction": report.measures["num_error_bytes"] / num_bytes}
