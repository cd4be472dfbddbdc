"""Stage tokenize: encode every document, align its structure with its tokens, and pack the rows that training reads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.joined_parts import make_joined, shard_parts
from pipeline.contracts.part import VOCABULARY_PART, Part, PartJob, PartOutput, StageContext, StageOutput, Tables
from pipeline.contracts.stage_report import StageReport, total
from pipeline.contracts.training_row import ROW_GROUP
from pipeline.core.errors import StageError
from pipeline.core.records import CHRONOLOGY, Split, TokenizedDocument
from pipeline.core.schema import arrow_schema, table_of
from pipeline.core.table_names import ENRICHED, PACKED, TOKENS, TRAINING_ROWS
from pipeline.stages.tokenize.columns.align import BYTE_STRUCTURE, aligned_columns, line_starts
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.encode import Encoder, token_starts
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.rows.layout import packed_table, training_table
from pipeline.stages.tokenize.rows.pack import Documents, pack
from pipeline.stages.tokenize.vocabulary import Vocabulary, load_vocabulary

_COPIED = ("document_id", "source", "path", "split", "text_sha256", *ROW_GROUP, *CHRONOLOGY)
_READ = (*_COPIED, *BYTE_STRUCTURE, "text", "order_in_source")


def run(context: StageContext[TokenizeParams]) -> StageOutput:
    """Make one part a source, and one of the vocabulary, so that a snapshot can be read without this package."""
    vocabulary = load_vocabulary(context.params.vocabulary)
    wanted = {name: _parts(name, context, vocabulary) for name in context.inputs}
    made, failures = make_joined(context, wanted)
    kept, _ = context.make(
        [Part(VOCABULARY_PART, "vocabulary", context.params, identity={"sha256": vocabulary.sha256})]
    )
    report = total(part.report for part in made.values())
    return StageOutput(
        parts={name: part.object_id for name, part in {**made, **kept}.items()},
        report=replace(report, measures={**report.measures, **_shares(report.measures)}),
        failures=failures,
    )


def keep_vocabulary(job: PartJob) -> PartOutput:
    """Return the vocabulary's files, as a part. Raises StageError if the vocabulary is not the requested one."""
    vocabulary = _requested(cast(TokenizeParams, job.params), job.identity["sha256"])
    files = {"tokenizer.json": vocabulary.tokenizer_json, "vocabulary.toml": vocabulary.settings_toml}
    return PartOutput({}, StageReport(0, 0), files)


def tokenize_source(job: PartJob) -> PartOutput:
    """Make the token tables of one source, as a part.

    Raises StageError if the vocabulary is not the requested one.
    """
    params = cast(TokenizeParams, job.params)
    vocabulary = _requested(params, job.identity["vocabulary"])
    enriched = job.inputs["enriched"].table(ENRICHED, list(_READ)).combine_chunks()
    tables = {TOKENS: tokenize(enriched, vocabulary)}
    for split in Split:
        tables |= pack_split(tables[TOKENS], enriched, split, (params, vocabulary))
    return PartOutput(tables)


def measure_tokenized(job: PartJob, output: PartOutput) -> StageReport:
    """Return the report of one source, counted from its tables and from the documents that they were made of."""
    measures = measure(output.tables, cast(TokenizeParams, job.params))
    num_bytes = int(measures["num_text_bytes"])
    num_enriched = job.inputs["enriched"].table(ENRICHED, ["document_id"]).num_rows
    return StageReport(num_enriched, output.tables[TOKENS].num_rows, {}, num_bytes, num_bytes, measures)


def tokenize(enriched: pa.Table, vocabulary: Vocabulary) -> pa.Table:
    """Return the table of TokenizedDocument of a table of EnrichedDocument, in its order."""
    ids = Encoder(vocabulary).encode_all(enriched["text"].to_pylist())
    starts = [token_starts(ids[index], vocabulary.token_num_bytes) for index in range(len(ids))]
    schema = arrow_schema(TokenizedDocument)
    return table_of(
        TokenizedDocument,
        {
            **{name: enriched[name] for name in _COPIED},
            "input_ids": ids.to_arrow(schema.field("input_ids").type),
            **aligned_columns(enriched, starts, schema),
            "num_bytes": [int(vocabulary.token_num_bytes[ids[index]].sum()) for index in range(len(ids))],
        },
    )


def pack_split(
    tokens: pa.Table, enriched: pa.Table, split: Split, how: tuple[TokenizeParams, Vocabulary]
) -> dict[str, pa.Table]:
    """Return the packed and the training table of the rows of one split; both empty if the source has no document of it."""
    params, vocabulary = how
    chosen = np.flatnonzero(np.array(tokens["split"].to_pylist(), dtype=object) == split)
    table, order = tokens.take(pa.array(chosen)), enriched["order_in_source"].to_numpy()[chosen].astype(np.int64)
    ids = ListColumn.from_arrow(table["input_ids"])
    documents = Documents(
        document_ids=table["document_id"].to_pylist(),
        num_tokens=ids.lengths,
        chunk_starts=ListColumn.from_arrow(table["chunk_starts"]),
        line_starts=line_starts(ids, vocabulary.ends_line),
        order=order,
        files=table["filepath_stable_id"].to_pylist(),
        commits=table["file_local_commit_index"].fill_null(-1).to_numpy().astype(np.int64),
        groups=list(zip(*(table[name].to_pylist() for name in ROW_GROUP), strict=True)),
    )
    rows = pack(documents, params)
    packed = packed_table(rows, table, params.row_length)
    return {PACKED[split]: packed, TRAINING_ROWS[split]: training_table(rows, table, packed, params)}


def measure(tables: Mapping[str, pa.Table], params: TokenizeParams) -> dict[str, float]:
    """Count what one part holds and how it was packed. The proofs about its tables are in `pipeline.stages.verify`."""
    tokens = tables[TOKENS]
    packed = [tables[PACKED[split]] for split in Split]
    num_tokens = len(ListColumn.from_arrow(tokens["input_ids"]).values)
    counts = _packing_counts(packed, params.row_length)
    # Of the slots that are not padding each piece has one for BOS, and each document one for EOS.
    num_packed_tokens = counts["num_slots"] - counts["num_padding_slots"] - counts["num_pieces"] - tokens.num_rows
    return {
        "num_documents": tokens.num_rows,
        "num_tokens": num_tokens,
        "num_text_bytes": int(tokens["num_bytes"].to_numpy().sum(dtype=np.int64)),
        **{f"num_rows_{split}": table.num_rows for split, table in zip(Split, packed, strict=True)},
        **counts,
        "num_cropped_tokens": abs(num_tokens - num_packed_tokens),
    }


def _requested(params: TokenizeParams, sha256: str) -> Vocabulary:
    vocabulary = load_vocabulary(params.vocabulary)
    if vocabulary.sha256 != sha256:
        remedy = "It changed during the build: start the build again."
        raise StageError(f"vocabulary {vocabulary.name}", f"its digest is {vocabulary.sha256}", sha256, remedy)
    return vocabulary


def _parts(source: str, context: StageContext[TokenizeParams], vocabulary: Vocabulary) -> list[Part]:
    def part_of(name: str, enriched: Tables) -> Part:
        inputs, identity = {"enriched": enriched.object_id}, {"vocabulary": vocabulary.sha256}
        return Part(name, "source", context.params, inputs, identity)

    return shard_parts(source, context.read(context.inputs[source]), part_of)


def _packing_counts(packed: list[pa.Table], row_length: int) -> dict[str, float]:
    return {
        "num_slots": sum(table.num_rows for table in packed) * row_length,
        "num_padding_slots": sum(int(table["slack_tokens"].to_numpy().sum(dtype=np.int64)) for table in packed),
        "num_pieces": sum(int(table["num_docs"].to_numpy().sum(dtype=np.int64)) for table in packed),
        "num_split_documents": sum(pc.list_flatten(table["piece_indices"]).to_pylist().count(1) for table in packed),
    }


def _shares(counts: Mapping[str, float]) -> dict[str, float]:
    num_rows = counts.get("num_rows_train", 0) + counts.get("num_rows_held_out", 0)
    ratios = {
        "padding_fraction": ("num_padding_slots", counts.get("num_slots", 0)),
        "pieces_per_row": ("num_pieces", num_rows),
        "tokens_per_document": ("num_tokens", counts.get("num_documents", 0)),
        "split_document_fraction": ("num_split_documents", counts.get("num_documents", 0)),
        "cropped_fraction": ("num_cropped_tokens", counts.get("num_tokens", 0)),
        "bytes_per_token": ("num_text_bytes", counts.get("num_tokens", 0)),
    }
    return {name: counts[numerator] / denominator for name, (numerator, denominator) in ratios.items() if denominator}
