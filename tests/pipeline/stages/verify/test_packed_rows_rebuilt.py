"""Documents are put together again from rows; a piece that is lost, repeated, torn or out of order is found."""

from typing import Any

import pyarrow as pa
import pytest

from pipeline.core.records import PackedRow
from pipeline.core.schema import arrow_schema
from pipeline.stages.verify.packed_rows import count_documents_not_rebuilt
from tests.pipeline.stages.verify.test_packed_rows import BEGIN, END, packed, row

TOKENS = pa.table(
    {
        "document_id": pa.array(["a", "b"], pa.large_string()),
        "split": ["train", "train"],
        "input_ids": pa.array([[5, 6, 7, 8], [9]], pa.large_list(pa.uint16())),
    }
)


def piece_row(*pieces: tuple[str, int, list[int]]) -> dict[str, Any]:
    made = row(*(ids for _, _, ids in pieces))
    return {
        **made,
        "source_doc_ids": [name for name, _, _ in pieces],
        "piece_indices": [index for _, index, _ in pieces],
    }


FIRST, LAST, OTHER = ("a", 0, [BEGIN, 5, 6]), ("a", 1, [BEGIN, 7, 8, END]), ("b", 0, [BEGIN, 9, END])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[FIRST, OTHER], [LAST]], 0),
        ([[LAST], [OTHER, FIRST]], 0),
        ([[FIRST], [OTHER]], 1),
        ([[FIRST, LAST]], 1),
        ([[FIRST, OTHER], [LAST, OTHER]], 1),
        ([[FIRST, OTHER], [("a", 1, [BEGIN, 7, END])]], 1),
        ([[FIRST, OTHER], [("a", 1, [BEGIN, 7, 8])]], 1),
        ([[("a", 0, [BEGIN, 5, 6, END]), OTHER], [LAST]], 1),
        ([[FIRST, OTHER], [("a", 2, [BEGIN, 7, 8, END])]], 1),
        ([[FIRST, OTHER], [LAST, ("c", 0, [BEGIN, 4, END])]], 1),
    ],
    ids=[
        "whole",
        "any order",
        "lost end",
        "lost document",
        "repeated",
        "cropped",
        "no end",
        "two ends",
        "gap",
        "stranger",
    ],
)
def test_documents_are_rebuilt_or_counted(rows: list[list[tuple[str, int, list[int]]]], expected: int) -> None:
    table = packed(*(piece_row(*pieces) for pieces in rows))
    empty = pa.Table.from_pylist([], schema=arrow_schema(PackedRow))

    assert count_documents_not_rebuilt(TOKENS, {"train": table, "held_out": empty}, BEGIN, END) == expected


def test_a_document_in_the_rows_of_another_split_is_counted_there_and_here() -> None:
    table = packed(piece_row(FIRST, OTHER), piece_row(LAST))

    assert count_documents_not_rebuilt(TOKENS, {"held_out": table}, BEGIN, END) == 2 + 2 + 2
    assert count_documents_not_rebuilt(TOKENS, {"train": table, "held_out": table.slice(1)}, BEGIN, END) == 2
