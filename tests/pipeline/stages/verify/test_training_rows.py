"""Training rows compared with packed rows and with the documents' structure; rows and tokens are written by hand."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pipeline.contracts.training_row import STRUCTURE
from pipeline.stages.tokenize.rows.layout import file_identity
from pipeline.stages.tokenize.rows.pack import piece_identity
from pipeline.stages.verify.training_rows import (
    count_chunk_starts_that_differ,
    count_structures_that_differ,
    count_training_rows_that_differ,
)

PAD, BEGIN, END = 0, 1, 2
TOKENS = {
    "document_id": ["one", "two", "none"],
    "structure_kinds": [[11, 12, 13, 14, 15], [21, 22], []],
    "structure_levels": [[1, 1, 2, 2, 3], [7, 7], []],
}
PACKED = {  # the second piece of `one` is in the row before its first
    "source_doc_ids": [["one", "two"], ["none", "one"]],
    "source_doc_token_lengths": [[4, 4], [2, 4]],
    "piece_indices": [[1, 0], [0, 0]],
}
ROWS = {
    "input_ids": [[BEGIN, 54, 55, END, BEGIN, 61, 62, END, PAD], [BEGIN, END, BEGIN, 51, 52, 53, PAD, PAD, PAD]],
    "structure_kinds": [[0, 14, 15, 0, 0, 21, 22, 0, 0], [0, 0, 0, 11, 12, 13, 0, 0, 0]],
    "structure_levels": [[0, 2, 3, 0, 0, 7, 7, 0, 0], [0, 0, 0, 1, 1, 2, 0, 0, 0]],
}


ABSENT = dict.fromkeys(STRUCTURE, pa.nulls(2, pa.list_(pa.uint8())))


def count(rows: dict[str, Any], tokens: dict[str, Any] = TOKENS, with_structure: bool = True) -> int:
    tables = (pa.table(content) for content in (tokens, PACKED))
    return count_structures_that_differ(*tables, pa.table(rows), (PAD, BEGIN, END), with_structure)


def test_structure_that_is_the_documents_own_has_no_offense() -> None:
    assert count(ROWS) == 0
    assert count({**ROWS, **ABSENT}, with_structure=False) == 0


def test_structure_that_is_missing_or_that_nobody_asked_for_is_an_offense_of_every_row() -> None:
    assert count({**ROWS, **ABSENT}) == 2
    assert count(ROWS, with_structure=False) == 2
    for name in STRUCTURE:
        one = {name: ROWS[name]}
        assert count({**ROWS, **ABSENT, **one}) == count({**ROWS, **ABSENT, **one}, with_structure=False) == 2


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
        rows = [list(row) for row in ROWS[name]]
        damage(rows)
        assert count({**ROWS, name: rows}) == 1


def test_structure_of_another_length_makes_every_row_an_offense() -> None:
    short = [ROWS["structure_kinds"][0][:-1], ROWS["structure_kinds"][1]]
    assert count({**ROWS, "structure_kinds": short}) == 2
    assert count({**ROWS, "structure_kinds": pa.array([None, ROWS["structure_kinds"][1]])}) == 2
    assert count(ROWS, {**TOKENS, "structure_kinds": [[11, 12, 13, 14], [21, 22], []]}) == 2


CHUNKED = {**TOKENS, "input_ids": [[51, 52, 53, 54, 55], [61, 62], []], "chunk_starts": [[0, 3], [0, 1], []]}
CHUNKS = {
    "lengths": PACKED["source_doc_token_lengths"],
    "chunk_counts": [[1, 2], [0, 1]],
    "chunk_starts": [[1, 5, 6], [3]],
}


def count_chunks(chunks: dict[str, Any], tokens: dict[str, Any] = CHUNKED) -> int:
    tables = (pa.table(content) for content in (tokens, PACKED))
    rows = pa.table({"input_ids": ROWS["input_ids"], **chunks})
    return count_chunk_starts_that_differ(*tables, rows, (PAD, BEGIN, END))


def test_chunk_starts_that_are_the_documents_own_have_no_offense() -> None:
    assert count_chunks(CHUNKS) == 0
    assert count_chunks({name: pa.array([], pa.list_(pa.uint32())) for name in ("input_ids", *CHUNKS)}) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"chunk_starts": [[2, 5, 6], [3]]},
        {"chunk_starts": [[2, 6, 7], [3]]},
        {"chunk_starts": [[5, 1, 6], [3]]},
        {"chunk_starts": [[1, 5], [3]]},
        {"chunk_starts": [[1, 5, 6], [3, 4]]},
        {"chunk_counts": [[2, 1], [0, 1]]},
        {"chunk_counts": [[3], [0, 1]]},
        {"chunk_counts": [[1, 2], [1, 0]]},
    ],
    ids=str,
)
def test_a_row_with_other_chunk_starts_is_counted(change: dict[str, Any]) -> None:
    assert count_chunks({**CHUNKS, **change}) == 1


def test_documents_of_other_lengths_make_every_row_an_offense() -> None:
    assert count_chunks(CHUNKS, {**CHUNKED, "input_ids": [[51, 52, 53, 54], [61, 62], []]}) == 2
    assert count_chunks(CHUNKS, {**CHUNKED, "chunk_starts": [[0, 3], [0, 9], []]}) == 2


LISTS = ("input_ids", "lengths", "piece_ids")
SOURCE_ROW = {
    "input_ids": [BEGIN, 54, 55, END, BEGIN, 61, 62, END, PAD],
    "source_doc_token_lengths": [4, 4],
    "source_doc_ids": ["one", "two"],
    "piece_indices": [1, 0],
    "filepath_stable_id": "a file",
    "file_local_commit_indices": [3, 4],
}
TRAINING_ROW = {
    "input_ids": SOURCE_ROW["input_ids"],
    "lengths": [4, 4],
    "piece_ids": [piece_identity("one", 1), piece_identity("two", 0)],
    "file_identity": file_identity("a file"),
    "first_commit_index": 3,
}


def count_differing(*rows: dict[str, Any], num_packed: int | None = None) -> int:
    fields = [pa.field(name, pa.large_list(pa.uint64())) for name in LISTS]
    fields += [pa.field("file_identity", pa.uint64()), pa.field("first_commit_index", pa.int32())]
    packed = pa.Table.from_pylist([SOURCE_ROW] * (len(rows) if num_packed is None else num_packed))
    return count_training_rows_that_differ(packed, pa.Table.from_pylist(list(rows), schema=pa.schema(fields)))


def test_training_rows_that_are_the_packed_rows_have_no_offense() -> None:
    assert count_differing(TRAINING_ROW, TRAINING_ROW) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"input_ids": [BEGIN, 54, 56, END, BEGIN, 61, 62, END, PAD]},
        {"input_ids": [BEGIN, 54, 55, END, BEGIN, 61, 62, END]},
        {"lengths": [3, 5]},
        {"piece_ids": [piece_identity("one", 0), piece_identity("two", 0)]},
        {"piece_ids": [piece_identity("one", 1)]},
        {"file_identity": file_identity("another file")},
        {"file_identity": None},
        {"first_commit_index": 4},
        {"first_commit_index": None},
    ],
    ids=str,
)
def test_a_training_row_that_differs_is_counted(change: dict[str, Any]) -> None:
    assert count_differing(TRAINING_ROW, {**TRAINING_ROW, **change}) == 1


def test_rows_that_are_missing_make_every_row_an_offense() -> None:
    assert count_differing(TRAINING_ROW, num_packed=2) == 2
