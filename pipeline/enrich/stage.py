"""Enrich: structure beside the text of every document that won against its duplicates. Each source is a part.

A source's part depends on its own documents and on which of them lost, never on other sources: a new source leaves it
alone unless one of its documents lost against it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.enrich.chunks import Chunk, chunks_of
from pipeline.enrich.order import order_documents
from pipeline.enrich.params import EnrichParams, SyntaxParams
from pipeline.enrich.syntax import Grammar, Syntax, grammar_of, read_syntax
from pipeline.outcome import StageReport, total
from pipeline.part import Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.records import ChunkKind, EnrichedDocument, Provenance
from pipeline.schema import table_of_records

DUPLICATES = "duplicates"
NO_DATABASE = "no_database"
"""Detail of a document without a compile database: nothing failed, there was nothing to run."""

_KIND_CODES = {kind: code for code, kind in enumerate(ChunkKind)}
_CHRONOLOGY = ("filepath_stable_id", "file_local_commit_index")
_READ = ["document_id", "source", "path", "split", "text", "text_sha256", *_CHRONOLOGY]

Context = StageContext[EnrichParams]
Row = Mapping[str, str]


@dataclass(frozen=True)
class Reading:
    """What the syntax lane found in one document."""

    document: Row
    grammar: Grammar
    syntax: Syntax
    chunks: Sequence[Chunk]
    provenance: Provenance
    provenance_detail: str

    @property
    def num_bytes_changed(self) -> int:
        """Bytes by which the chunks, put together, differ from the text."""
        content = self.syntax.content
        joined = b"".join(content[chunk.start : chunk.end] for chunk in self.chunks)
        text = self.document["text"].encode()
        if joined == text:
            return 0
        return sum(a != b for a, b in zip(joined, text, strict=False)) + abs(len(joined) - len(text))


def run(context: Context) -> StageOutput:
    """One part a source, from its documents and the list of those that lost as duplicates."""
    rules = {name: object_id for name, object_id in context.inputs.items() if name != DUPLICATES}
    kept = context.read(context.inputs[DUPLICATES]).table("kept.parquet", ["document_id"])["document_id"]
    parts = [_part(name, rules[name], _dropped(context, rules[name], kept), context.params) for name in rules]
    made, failures = context.make(parts)
    report = total(part.report for part in made.values())
    return StageOutput(
        parts={name: part.object_id for name, part in made.items()},
        report=replace(report, measures={**report.measures, **_shares(report)}),
        failures=failures,
    )


def enrich_source(job: PartJob) -> PartOutput:
    """The enriched documents of one source, in their order, and the counts."""
    documents = job.inputs["documents"].table("documents.parquet", _READ)
    dropped = pa.array(job.identity["dropped"], type=documents.schema.field("document_id").type)
    kept = documents.filter(pc.invert(pc.is_in(documents["document_id"], value_set=dropped)))
    readings = [read_document(row, cast(SyntaxParams, job.params)) for row in kept.to_pylist()]
    position = {path: index for index, path in enumerate(order_documents(_includes(readings)))}
    records = [_record(reading, position[reading.document["path"]]) for reading in readings]
    records.sort(key=lambda record: record.order_in_source)
    return PartOutput({"enriched.parquet": table_of_records(EnrichedDocument, records)}, _report(readings))


def read_document(document: Row, params: SyntaxParams) -> Reading:
    """Parse one document and cut it into chunks. A document that cannot be parsed is degraded, never dropped."""
    grammar = grammar_of(document["path"])
    syntax = read_syntax(document["text"].encode(), grammar, params)
    if syntax.limit:
        provenance, detail = Provenance.DEGRADED, syntax.limit
    elif syntax.error_fraction > params.max_error_fraction:
        provenance, detail = Provenance.DEGRADED, "max_error_fraction"
    else:
        provenance, detail = Provenance.SYNTAX_ONLY, NO_DATABASE
    return Reading(document, grammar, syntax, chunks_of(syntax), provenance, detail)


def _part(name: str, documents: str, dropped: Sequence[str], params: EnrichParams) -> Part:
    return Part(
        name=name,
        kind="enrich/part",
        function="pipeline.enrich.stage:enrich_source",
        params=params.syntax,
        inputs={"documents": documents},
        identity={"dropped": dropped},
    )


def _dropped(context: Context, documents: str, kept: pa.ChunkedArray) -> list[str]:
    """The ids of a source's documents that lost as duplicates, sorted."""
    ids = context.read(documents).table("documents.parquet", ["document_id"])["document_id"]
    return sorted(ids.filter(pc.invert(pc.is_in(ids, value_set=kept))).to_pylist())


def _includes(readings: Sequence[Reading]) -> dict[str, tuple[str, ...]]:
    return {reading.document["path"]: reading.syntax.includes for reading in readings}


def _record(reading: Reading, order_in_source: int) -> EnrichedDocument:
    document, chunks = reading.document, reading.chunks
    return EnrichedDocument(
        document_id=document["document_id"],
        source=document["source"],
        path=document["path"],
        split=document["split"],
        text=document["text"],
        text_sha256=document["text_sha256"],
        language=reading.grammar.value,
        provenance=reading.provenance.value,
        provenance_detail=reading.provenance_detail,
        chunk_starts=tuple(chunk.start for chunk in chunks),
        chunk_ends=tuple(chunk.end for chunk in chunks),
        chunk_kinds=tuple(_KIND_CODES[chunk.kind] for chunk in chunks),
        chunk_levels=tuple(chunk.level for chunk in chunks),
        includes=reading.syntax.includes,
        error_fraction=reading.syntax.error_fraction,
        order_in_source=order_in_source,
        build_context=None,
        symbols=None,
        calls=None,
        type_references=None,
        filepath_stable_id=document["filepath_stable_id"],
        file_local_commit_index=cast(int | None, document["file_local_commit_index"]),
    )


def _report(readings: Sequence[Reading]) -> StageReport:
    num_bytes = sum(len(reading.syntax.content) for reading in readings)
    provenances = Counter(reading.provenance for reading in readings)
    measures = {f"num_documents_{provenance.value}": provenances[provenance] for provenance in Provenance}
    measures |= {
        "num_documents_without_provenance": len(readings) - provenances.total(),
        "num_chunks": sum(len(reading.chunks) for reading in readings),
        "num_bytes_changed": sum(reading.num_bytes_changed for reading in readings),
        "num_error_bytes": sum(reading.syntax.num_error_bytes for reading in readings),
        "num_documents_with_errors": sum(reading.syntax.num_error_bytes > 0 for reading in readings),
        "num_documents_with_blanked_branches": sum(bool(reading.syntax.blanked) for reading in readings),
        "num_local_paths_in_context": 0,
    }
    return StageReport(len(readings), len(readings), {}, num_bytes, num_bytes, measures)


def _shares(report: StageReport) -> dict[str, float]:
    """Shares of the documents by provenance, and of the bytes inside syntax errors; 0 where there are none."""
    num_documents, num_bytes = max(1, report.rows_out), max(1, report.num_bytes_out)
    shares = {
        f"{provenance.value}_fraction": report.measures.get(f"num_documents_{provenance.value}", 0) / num_documents
        for provenance in Provenance
    }
    return {**shares, "error_byte_fraction": report.measures.get("num_error_bytes", 0) / num_bytes}
