"""Structure in the rows that training maps, held against the documents' tokens; rows and tokens are written by hand."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pipeline.verify.structure import count_hot_structures_that_differ

PAD, BEGIN, END = 0, 1, 2
TOKENS = {
    "document_id": ["one", "two", "none"],
    "structure_kinds": [[11, 12, 13, 14, 15], [21, 22], []],
    "structure_levels": [[1, 1, 2, 2, 3], [7, 7], []],
}
PACKED = {  # the second piece of `one` stands in the row before its first
    "source_doc_ids": [["one", "two"], ["none", "one"]],
    "source_doc_token_lengths": [[4, 4], [2, 4]],
    "piece_indices": [[1, 0], [0, 0]],
}
HOT = {
    "input_ids": [[BEGIN, 54, 55, END, BEGIN, 61, 62, END, PAD], [BEGIN, END, BEGIN, 51, 52, 53, PAD, PAD, PAD]],
    "structure_kinds": [[0, 14, 15, 0, 0, 21, 22, 0, 0], [0, 0, 0, 11, 12, 13, 0, 0, 0]],
    "structure_levels": [[0, 2, 3, 0, 0, 7, 7, 0, 0], [0, 0, 0, 1, 1, 2, 0, 0, 0]],
}


def count(hot: dict[str, Any], tokens: dict[str, Any] = TOKENS) -> int:
    tables = (pa.table(content) for content in (tokens, PACKED))
    return count_hot_structures_that_differ(*tables, pa.table(hot), (PAD, BEGIN, END))


def test_structure_that_is_the_documents_own_has_no_offense() -> None:
    assert count(HOT) == 0
    absent = pa.nulls(2, pa.list_(pa.uint8()))
    assert count({**HOT, "structure_kinds": absent, "structure_levels": absent}) == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: rows[0].__setitem__(1, 15),
        lambda rows: rows[0].__setitem__(3, 1),
        lambda rows: rows[0].__setitem__(8, 1),
        lambda rows: rows[0].__setitem__(slice(5, 7), [0, 0]),
    ],
    ids=["another kind", "structure of an EOS", "structure of padding", "a piece without structure"],
)
def test_a_row_with_other_structure_is_counted(damage: Callable[[list[list[int]]], None]) -> None:
    for name in ("structure_kinds", "structure_levels"):
        rows = [list(row) for row in HOT[name]]
        damage(rows)
        assert count({**HOT, name: rows}) == 1


def test_structure_of_another_length_makes_every_row_an_offense() -> None:
    short = [HOT["structure_kinds"][0][:-1], HOT["structure_kinds"][1]]
    assert count({**HOT, "structure_kinds": short}) == 2
    assert count({**HOT, "structure_kinds": pa.array([None, HOT["structure_kinds"][1]])}) == 2
    assert count(HOT, {**TOKENS, "structure_kinds": [[11, 12, 13, 14], [21, 22], []]}) == 2
