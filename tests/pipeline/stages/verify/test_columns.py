"""Painting structure on bytes agrees with the alignment, and each column of tokens that differs is counted."""

from typing import Any

import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from pipeline.core.table_names import ENRICHED
from pipeline.stages.tokenize.stage import tokenize
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.stages.verify.columns import BYTE_EXTENTS, BYTE_RUNS, COPIED, count_documents_with_other_columns
from pipeline.store.store import Store

NAMES = {
    "symbols": [7, 8],
    "calls": [0, 9],
    "type_references": [5, 0],
    "definitions_and_uses": [1, 3],
    "symbol_starts": [3, 40],
    "symbol_ends": [9, 61],
    "provenance_starts": [0, 30],
    "provenance_codes": [1, 2],
}
"""Columns of a compiler for the first document."""


def with_first(table: pa.Table, column: str, value: Any) -> pa.Table:
    field = table.schema.field(column)
    values = pa.array([value, *table[column].to_pylist()[1:]], field.type)
    return table.set_column(table.schema.get_field_index(column), field, values)


@pytest.fixture(scope="module")
def enriched(tiny_store: Store) -> pa.Table:
    stage = tiny_store.read(tiny_store.ref("tiny", "enrich") or "")
    table = tiny_store.read(stage.manifest.inputs["part/heron"]).table(ENRICHED)
    for name, value in NAMES.items():
        table = with_first(table, name, value)
    return table


@pytest.fixture(scope="module")
def tokens(enriched: pa.Table) -> pa.Table:
    return tokenize(enriched, load_vocabulary("tiny-1024"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_str(load_vocabulary("tiny-1024").tokenizer_json.decode())


def test_the_alignment_is_what_painting_gives(tokens: pa.Table, enriched: pa.Table, tokenizer: Tokenizer) -> None:
    assert tokens["symbols"].null_count == tokens.num_rows - 1
    assert count_documents_with_other_columns(tokens, enriched, tokenizer) == 0
    assert count_documents_with_other_columns(tokens, enriched.slice(2), tokenizer) == 2


@pytest.mark.parametrize("column", [*BYTE_RUNS, *BYTE_EXTENTS])
def test_a_value_of_one_token_that_differs_is_counted(
    column: str, tokens: pa.Table, enriched: pa.Table, tokenizer: Tokenizer
) -> None:
    values = tokens[column][0].as_py()
    for index in (0, len(values) // 2, len(values) - 1):
        changed = [*values[:index], (values[index] + 1) % 200, *values[index + 1 :]]
        assert count_documents_with_other_columns(with_first(tokens, column, changed), enriched, tokenizer) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("symbols", None),
        ("num_bytes", 1),
        ("chunk_starts", [0]),
        *((name, "other") for name in COPIED[:-1]),
        (COPIED[-1], 3),
    ],
)
def test_another_value_of_a_document_is_counted(
    column: str, value: Any, tokens: pa.Table, enriched: pa.Table, tokenizer: Tokenizer
) -> None:
    assert count_documents_with_other_columns(with_first(tokens, column, value), enriched, tokenizer) == 1
