"""Enrich: structure beside the text of every document that won against its duplicates. Each source is a part.

A source's part depends on its own documents and on which of them lost, never on other sources: a new source leaves it
alone unless one of its documents lost against it. Only a source whose pin has a `build` block depends on the compiler index: on
that block, on the tree that was collected, and on the versions of the tools, those that are absent included.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.joined_parts import make_joined, shard_parts
from pipeline.contracts.part import DUPLICATES_PART, Note, Part, PartJob, PartOutput, StageContext, StageOutput, Tables
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.change_text import changed_file
from pipeline.core.params import canonical_json
from pipeline.core.records import CHRONOLOGY, PROVENANCE_CODES, EnrichedDocument, Provenance
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import COMPILER_RECORD, DOCUMENTS, ENRICHED, FILES, KEPT, TREE
from pipeline.pins.build_block import BuildBlock
from pipeline.stages.enrich.compiler.local_paths import count_local
from pipeline.stages.enrich.compiler.tools import tool_versions
from pipeline.stages.enrich.document import ParsedDocument, has_chronology, parse_document, record_of
from pipeline.stages.enrich.include_order import order_documents
from pipeline.stages.enrich.params import BuiltParams, EnrichParams, SyntaxParams

if TYPE_CHECKING:
    from pipeline.stages.enrich.compiler.compiler_index import CompilerIndex

COMPILER_VERSION = 8
"""Raised when the compiler index changes: parts of sources without a `build` block do not depend on it."""

_MEASURED = (
    "document_id",
    "text",
    "provenance",
    "chunk_starts",
    "chunk_ends",
    "provenance_starts",
    "provenance_codes",
    "build_context",
)
_MAX_FILES = 10
_READ = ["document_id", "source", "path", "split", "text", "text_sha256", "license", "license_class", *CHRONOLOGY]


def run(context: StageContext[EnrichParams]) -> StageOutput:
    """Make one part a source, from its documents and the list of those that lost as duplicates."""
    kept = context.read(context.inputs[DUPLICATES_PART]).table(KEPT, ["document_id"])["document_id"]
    blocks = {pin.name: pin.build for pin in context.pins}
    names = [name for name in context.inputs if name != DUPLICATES_PART]
    made, failures = make_joined(context, {name: _parts(name, context, kept, blocks.get(name)) for name in names})
    report = total([_EMPTY, *(part.report for part in made.values())])
    report = replace(report, measures={**report.measures, **_shares(report)})
    parts = {name: part.object_id for name, part in made.items()}
    built = [made[name].object_id for name, block in sorted(blocks.items()) if block is not None and name in made]
    notes = [Note(text) for object_id in built for text in context.read(object_id).json(COMPILER_RECORD)["notes"]]
    if report.measures["broken_fraction"] > context.params.max_degraded_fraction:
        notes.append(_broken(context, parts))
    return StageOutput(parts, report, failures, notes=tuple(notes))


def _broken(context: StageContext[EnrichParams], parts: Mapping[str, str]) -> Note:
    """Return a note on the documents that could not be parsed, those with the largest share of syntax errors first."""
    columns = ["source", "path", "provenance", "error_fraction"]
    rows = [row for part in parts.values() for row in context.read(part).table(ENRICHED, columns).to_pylist()]
    broken = [row for row in rows if row["provenance"] == Provenance.DEGRADED]
    broken.sort(key=lambda row: (-row["error_fraction"], row["source"], row["path"]))
    files = tuple((row["source"], row["path"]) for row in broken[:_MAX_FILES])
    return Note(f"Not parsed as a whole: {', '.join(map('/'.join, files))}.", files)


def enrich_source(job: PartJob) -> PartOutput:
    """Return the enriched documents of one source, in include order, and the counts."""
    return _enriched(_kept_documents(job), cast(SyntaxParams, job.params), None)


def enrich_built_source(job: PartJob) -> PartOutput:
    """Return the same for a source with a `build` block, with what the compiler index has on each document."""
    from pipeline.stages.enrich.compiler.compiler_index import IndexRequest, index_source  # most sources need none
    from pipeline.stages.enrich.compiler.shown_index import scrub_index

    params = cast(BuiltParams, job.params)
    documents = _kept_documents(job)
    block = BuildBlock.model_validate_json(canonical_json(job.identity["build"]))
    files = {
        row["path"]: row["content"]
        for table in (FILES, TREE)
        for row in job.inputs["collected"].table(table, ["path", "content"]).to_pylist()
        if changed_file(row["path"]) == row["path"]
    }
    texts = {row["path"]: row["text"].encode() for row in documents.to_pylist() if not has_chronology(row)}
    versions, cache = dict(job.identity["tools"]), job.places.get("cache")
    index = index_source(IndexRequest(job.name, files, texts, block, params.compiler, versions, cache))
    scrub_index(index)
    output = _enriched(documents, params.syntax, index)
    outside = _outside_of_band(output.tables[ENRICHED], block)
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
    report = replace(output.report, measures={**output.report.measures, **index.counts})
    return PartOutput(output.tables, report, {COMPILER_RECORD: canonical_json(record)})


def measure_enriched(job: PartJob, output: PartOutput) -> StageReport:
    """Return the report of one source, counted from its table and from the texts that it was made of."""
    found = job.inputs["documents"].table(DOCUMENTS, ["document_id", "text"])
    texts = dict(zip(found["document_id"].to_pylist(), found["text"].to_pylist(), strict=True))
    block = job.identity.get("build")
    built = None if block is None else BuildBlock.model_validate_json(canonical_json(block))
    return _measured(output.tables[ENRICHED], texts, built, output.report)


def _measured(table: pa.Table, texts: Mapping[str, str], block: BuildBlock | None, counted: StageReport) -> StageReport:
    rows = table.select(list(_MEASURED)).to_pylist()
    num_bytes = sum(len(row["text"].encode()) for row in rows)
    num_bytes_by_provenance = _num_bytes_by_provenance(rows)
    contexts = sorted({row["build_context"] for row in rows} - {None})
    measures = {
        **counted.measures,
        **_counts_by_provenance(table),
        "num_chunks": sum(len(row["chunk_starts"]) for row in rows),
        "num_bytes_changed": sum(_num_bytes_changed(row, texts.get(row["document_id"], "")) for row in rows),
        **{f"num_bytes_{provenance.value}": num_bytes_by_provenance[provenance] for provenance in _counted(table)},
        "num_bytes_without_provenance": num_bytes - num_bytes_by_provenance.total(),
        "num_sources_built": int(block is not None),
        "num_sources_out_of_band": int(block is not None and bool(_outside_of_band(table, block))),
        # The compiler index also looks for the users that the compile database names, which nothing stores.
        "num_local_paths_in_context": max(
            count_local(contexts, ()), counted.measures.get("num_local_paths_in_context", 0)
        ),
    }
    return StageReport(len(rows), len(rows), {}, num_bytes, num_bytes, measures)


def _enriched(documents: pa.Table, params: SyntaxParams, index: "CompilerIndex | None") -> PartOutput:
    records: dict[str, EnrichedDocument] = {}
    counts: Counter[str] = Counter()
    rows = documents.to_pylist()
    for row in rows:
        parsed = parse_document(row, params, None if index is None or has_chronology(row) else index.file(row["path"]))
        records[row["path"]] = record_of(parsed)  # its tree, many times the text, is gone before the next is made
        counts.update({name: count(parsed) for name, count in _COUNTS.items()})
    files = {row["path"]: records[row["path"]].includes for row in rows if not has_chronology(row)}
    # Changes come after all files, chain by chain.
    chains = sorted(filter(has_chronology, rows), key=lambda row: [row[name] for name in CHRONOLOGY])
    ordered = [*order_documents(files), *(row["path"] for row in chains)]
    placed = [replace(records[path], order_in_source=place) for place, path in enumerate(ordered)]
    return PartOutput({ENRICHED: table_of_records(EnrichedDocument, placed)}, _report(counts))


def _kept_documents(job: PartJob) -> pa.Table:
    documents = job.inputs["documents"].table(DOCUMENTS, _READ)
    dropped = pa.array(job.identity["dropped"], type=documents.schema.field("document_id").type)
    return documents.filter(pc.invert(pc.is_in(documents["document_id"], value_set=dropped)))


def _parts(
    source: str, context: StageContext[EnrichParams], kept: pa.ChunkedArray, block: BuildBlock | None
) -> list[Part]:
    """Return the parts of a source, one a shard. With a `build` block it has one, which depends on the collected tree and on the
    tools too.
    """

    def part_of(name: str, documents: Tables) -> Part:
        ids = documents.table(DOCUMENTS, ["document_id"])["document_id"]
        return Part(
            name=name,
            function="source",
            params=context.params.syntax,
            inputs={"documents": documents.object_id},
            identity={"dropped": sorted(ids.filter(pc.invert(pc.is_in(ids, value_set=kept))).to_pylist())},
        )

    stored = context.read(context.inputs[source])
    if block is None:
        return shard_parts(source, stored, part_of)
    part, tools = part_of(source, stored), {"tools": tool_versions(block.cmake), "compiler": COMPILER_VERSION}
    built = replace(
        part,
        function="built_source",
        params=BuiltParams(syntax=context.params.syntax, compiler=context.params.compiler),
        inputs={**part.inputs, "collected": context.upstream("collect")[source]},
        identity={**part.identity, "build": block.model_dump(mode="json"), **tools},
        places={"cache": context.store_root / "units"},
    )
    return [built]


_COUNTS: Mapping[str, Callable[[ParsedDocument], int]] = {
    "num_error_bytes": lambda document: document.syntax.num_error_bytes,
    "num_documents_with_errors": lambda document: document.syntax.num_error_bytes > 0,
    "num_error_bytes_unblanked": lambda document: document.syntax.num_error_bytes_unblanked,
    "num_documents_with_blanked_branches": lambda document: bool(document.syntax.blanked),
    "num_files_matched": lambda document: document.index is not None and document.index.context is not None,
    "num_files_indexed": lambda document: document.index is not None and document.index.is_indexed,
    "num_files_partial": lambda document: (
        document.index is not None and document.index.is_indexed and document.index.detail.startswith("partial")
    ),
    "num_files_fallen_back": lambda document: document.index is not None and not document.index.is_indexed,
}
"""Counts that the table does not hold: of syntax errors, and of the files that a compiler read."""


def _report(counts: Mapping[str, int]) -> StageReport:
    """Return the counts of documents, at zero for none."""
    return StageReport(0, 0, measures={name: counts.get(name, 0) for name in _COUNTS})


def _counts_by_provenance(table: pa.Table) -> dict[str, float]:
    """Count the documents by provenance, and those that are degraded because the tools failed on them."""
    counts = Counter(table["provenance"].to_pylist())
    details = zip(table["provenance"].to_pylist(), table["provenance_detail"].to_pylist(), strict=True)
    num_failed = sum(found == Provenance.DEGRADED and detail.startswith("tool_failed") for found, detail in details)
    by_provenance = {f"num_documents_{provenance.value}": counts[provenance.value] for provenance in _counted(table)}
    return {**by_provenance, "num_documents_tool_failed": num_failed}


def _counted(table: pa.Table) -> list[Provenance]:
    """Return the provenances that a report counts: of changes where there are any."""
    has_changes = table["file_local_commit_index"].null_count < table.num_rows
    return [each for each in Provenance if has_changes or each is not Provenance.CHANGE]


def _num_bytes_by_provenance(rows: Sequence[Mapping[str, Any]]) -> Counter[Provenance]:
    """Count the bytes by the provenance of their structure; those without one are not counted."""
    provenances = {code: provenance for provenance, code in PROVENANCE_CODES.items()}
    counts: Counter[Provenance] = Counter()
    for row in rows:
        starts, codes = row["provenance_starts"] or (), row["provenance_codes"] or ()
        for start, end, code in zip(starts, (*starts[1:], len(row["text"].encode())), codes, strict=False):
            if code in provenances:
                counts[provenances[code]] += end - start
    return counts


def _num_bytes_changed(row: Mapping[str, Any], text: str) -> int:
    """Count the bytes by which the chunks of the stored text, put together, differ from the text that the stage read."""
    content, stored = text.encode(), row["text"].encode()
    joined = b"".join(stored[start:end] for start, end in zip(row["chunk_starts"], row["chunk_ends"], strict=False))
    if joined == content:
        return 0
    return sum(a != b for a, b in zip(joined, content, strict=False)) + abs(len(joined) - len(content))


def _outside_of_band(table: pa.Table, block: BuildBlock) -> str:
    """Return how the shares of a built source's documents leave the band of its pin; nothing if they do not."""
    counts = _counts_by_provenance(table)
    num_indexed, num_failed = counts["num_documents_build_aware"], counts["num_documents_tool_failed"]
    num_documents = max(1, table["file_local_commit_index"].null_count)  # a compiler reads files alone
    is_indexed = num_indexed / num_documents >= block.min_build_aware_fraction
    if is_indexed and num_failed / num_documents <= block.max_failed_fraction:
        return ""
    return (
        f"{num_indexed:g} of {table.num_rows} documents are build_aware, expected is a share of "
        f"{block.min_build_aware_fraction:g}; the tools failed on {num_failed:g}, allowed is a "
        f"share of {block.max_failed_fraction:g}"
    )


def _shares(report: StageReport) -> dict[str, float]:
    """Return shares of the documents by provenance and without a parse, and the share of the bytes inside syntax errors."""
    num_documents, num_bytes = max(1, report.rows_out), max(1, report.num_bytes_out)
    shares = {
        f"{provenance.value}_fraction": report.measures[f"num_documents_{provenance.value}"] / num_documents
        for provenance in Provenance
        if f"num_documents_{provenance.value}" in report.measures
    }
    num_failed = report.measures["num_documents_tool_failed"]
    shares["broken_fraction"] = shares[f"{Provenance.DEGRADED.value}_fraction"] - num_failed / num_documents
    return {**shares, "error_byte_fraction": report.measures["num_error_bytes"] / num_bytes}


_EMPTY = _measured(table_of_records(EnrichedDocument, []), {}, None, _report({}))
"""The report of no document: if every source failed, the gates still find their measures, at zero."""
