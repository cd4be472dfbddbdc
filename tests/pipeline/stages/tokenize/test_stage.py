"""The tokenize stage: the schema of its tables, its measures, and the order of its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.contracts.part import MadePart, Part, PartJob, PartOutput
from pipeline.core.errors import SourceError, StageError
from pipeline.core.records import EnrichedDocument, PackedRow, Split, TokenizedDocument, TrainingRow
from pipeline.core.schema import check_table, table_of, table_of_records
from pipeline.core.table_names import ENRICHED
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.rows.layout import BOS, EOS, PAD
from pipeline.stages.tokenize.stage import keep_vocabulary, measure_tokenized, run, tokenize_source
from pipeline.stages.tokenize.vocabulary import Vocabulary
from tests.support.made.whole_part import WholePart

PARAMS = TokenizeParams(vocabulary="tiny-1024", row_length=128)


@dataclass(frozen=True)
class MemoryTables(WholePart):
    """The tables of one object, in memory."""

    tables: Mapping[str, pa.Table]
    object_id: str = "0" * 64

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self.tables[name].select(list(columns)) if columns else self.tables[name]


@dataclass
class MemoryContext:
    """Makes the parts of a stage in this process, from tables in memory."""

    enriched: Mapping[str, pa.Table]
    params: TokenizeParams = PARAMS
    outputs: dict[str, PartOutput] = field(default_factory=dict)

    @property
    def inputs(self) -> Mapping[str, str]:
        return {name: f"id-of-{name}" for name in sorted(self.enriched)}

    def read(self, object_id: str) -> MemoryTables:
        return MemoryTables({ENRICHED: self.enriched[object_id.removeprefix("id-of-")]}, object_id)

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        for part in parts:
            if part.function == "vocabulary":
                self.outputs[part.name] = keep_vocabulary(PartJob(part.name, part.params, {}, part.identity, {}))
                continue
            inputs = {"enriched": MemoryTables({ENRICHED: self.enriched[part.name]}, part.inputs["enriched"])}
            self.outputs[part.name] = _made(PartJob(part.name, part.params, inputs, part.identity, part.places))
        return {
            part.name: MadePart(part.name, f"made-{part.name}", self.outputs[part.name].report, False) for part in parts
        }, {}


@pytest.fixture(scope="module")
def output(enriched: pa.Table, vocabulary: Vocabulary) -> PartOutput:
    return _tokenize(enriched, vocabulary)


def _tokenize(enriched: pa.Table, vocabulary: Vocabulary) -> PartOutput:
    identity = {"vocabulary": vocabulary.sha256}
    return _made(PartJob("heron", PARAMS, {"enriched": MemoryTables({ENRICHED: enriched})}, identity, {}))


def _made(job: PartJob) -> PartOutput:
    output = tokenize_source(job)
    return replace(output, report=measure_tokenized(job, output))


def test_tables_have_their_schema_and_join_by_document(output: PartOutput, enriched: pa.Table) -> None:
    check_table(output.tables["tokens.parquet"], TokenizedDocument, "tokens")
    for split in Split:
        check_table(output.tables[f"packed_{split}.parquet"], PackedRow, split)
        check_table(output.tables[f"rows_{split}.arrow"], TrainingRow, split)
    assert output.tables["tokens.parquet"]["document_id"].equals(enriched["document_id"])
    assert output.tables["packed_held_out.parquet"].num_rows == 0
    packed = {name for row in output.tables["packed_train.parquet"]["source_doc_ids"].to_pylist() for name in row}
    assert packed == set(enriched["document_id"].to_pylist())


def test_documents_decode_to_their_text(output: PartOutput, enriched: pa.Table, vocabulary: Vocabulary) -> None:
    ids = output.tables["tokens.parquet"]["input_ids"].to_pylist()
    assert [vocabulary.decode(document) for document in ids] == enriched["text"].to_pylist()


def test_structure_is_on_the_tokens_of_its_chunk(
    output: PartOutput, enriched: pa.Table, vocabulary: Vocabulary
) -> None:
    tokens = output.tables["tokens.parquet"]
    for row in (1, 11):
        document = enriched.slice(row, 1).to_pylist()[0]
        offset = 0
        for token, kind in zip(tokens["input_ids"][row].as_py(), tokens["structure_kinds"][row].as_py(), strict=True):
            chunk = max(place for place, start in enumerate(document["chunk_starts"]) if start <= offset)
            assert kind == document["chunk_kinds"][chunk]
            offset += len(vocabulary.token_bytes[token])


def test_the_measures_count_and_no_token_is_cropped(output: PartOutput, enriched: pa.Table) -> None:
    measures, report = output.report.measures, output.report
    assert report.rows_in == report.rows_out == measures["num_documents"] == enriched.num_rows
    assert measures["num_text_bytes"] == sum(len(text.encode()) for text in enriched["text"].to_pylist())
    assert measures["num_split_documents"] >= 2
    assert measures["num_slots"] == 128 * measures["num_rows_train"]
    assert measures["num_rows_held_out"] == 0
    slots = measures["num_tokens"] + measures["num_pieces"] + measures["num_documents"] + measures["num_padding_slots"]
    assert slots == measures["num_slots"]
    assert measures["num_cropped_tokens"] == 0


def test_the_order_of_the_documents_moves_no_row(
    output: PartOutput, enriched: pa.Table, vocabulary: Vocabulary
) -> None:
    shuffled = enriched.take(pa.array(np.random.default_rng(3).permutation(enriched.num_rows)))
    tables = _tokenize(shuffled, vocabulary).tables
    for name in ("packed_train.parquet", "rows_train.arrow"):
        assert tables[name].equals(output.tables[name])


def test_held_out_documents_are_packed_apart(enriched: pa.Table, vocabulary: Vocabulary, make_document: Any) -> None:
    held_out = table_of_records(EnrichedDocument, [make_document(50, ["int held;\n"], split="held_out")])
    tables = _tokenize(pa.concat_tables([enriched, held_out]), vocabulary).tables
    assert tables["packed_held_out.parquet"]["source_doc_ids"].to_pylist() == [held_out["document_id"].to_pylist()]
    assert set(tables["packed_train.parquet"]["split"].to_pylist()) == {"train"}


def test_an_empty_source_gives_empty_tables(enriched: pa.Table, vocabulary: Vocabulary) -> None:
    output = _tokenize(enriched.slice(0, 0), vocabulary)
    assert {table.num_rows for table in output.tables.values()} == {0}
    assert output.report.measures["num_slots"] == 0


def test_provenance_is_a_share_of_the_tokens_of_each_row(enriched: pa.Table, vocabulary: Vocabulary) -> None:
    columns = {name: enriched[name].to_pylist() for name in enriched.column_names}
    halves = [len(text.encode()) // 2 for text in columns["text"]]  # of the second one no compiler saw anything
    columns |= {"provenance_starts": [[0, half] for half in halves], "provenance_codes": [[1, 2]] * len(halves)}
    tables = _tokenize(table_of(EnrichedDocument, columns), vocabulary).tables
    codes = [code for found in tables["tokens.parquet"]["provenances"].to_pylist() for code in found]
    shares = []
    for row in tables["packed_train.parquet"].to_pylist():
        num_of_text = sum(one not in (PAD, BOS, EOS) for one in row["input_ids"])
        shares.append(row["build_aware_fraction"] * num_of_text)

    assert set(codes) == {1, 2}
    assert sum(shares) == pytest.approx(codes.count(1))
    assert all(count == pytest.approx(round(count), abs=1e-3) for count in shares)


def test_another_vocabulary_than_the_requested_one_is_refused(enriched: pa.Table) -> None:
    with pytest.raises(StageError, match="expected abc"):
        tokenize_source(
            PartJob("heron", PARAMS, {"enriched": MemoryTables({ENRICHED: enriched})}, {"vocabulary": "abc"}, {})
        )


def test_the_stage_lists_a_part_a_source_and_carries_the_vocabulary(enriched: pa.Table, vocabulary: Vocabulary) -> None:
    context = MemoryContext({"heron": enriched, "quarry": enriched.slice(2, 3)})
    result = run(context)  # type: ignore[arg-type]  # only what the stage uses
    assert result.parts == {"heron": "made-heron", "quarry": "made-quarry", "vocabulary": "made-vocabulary"}
    kept = keep_vocabulary(PartJob("vocabulary", PARAMS, {}, {"sha256": vocabulary.sha256}, {}))
    with pytest.raises(StageError, match=f"{vocabulary.sha256}; expected 0000.*It changed during the build"):
        keep_vocabulary(PartJob("vocabulary", PARAMS, {}, {"sha256": "0" * 64}, {}))
    assert kept.files == {"tokenizer.json": vocabulary.tokenizer_json, "vocabulary.toml": vocabulary.settings_toml}
    assert result.report.rows_in == enriched.num_rows + 3
    shares = result.report.measures
    assert shares["padding_fraction"] == shares["num_padding_slots"] / shares["num_slots"]
    assert shares["cropped_fraction"] == 0
    assert shares["bytes_per_token"] > 1
