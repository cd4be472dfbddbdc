"""A row that stands behind one which it should precede is found, by the columns of its table or by the documents before."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.canaries.memory_build import MemoryObject
from pipeline.build.oracles.snapshots.stored_order import misplaced_rows
from pipeline.contracts.part import PartOutput
from pipeline.contracts.stage import READING_ORDER
from pipeline.core.table_names import ENRICHED, FILES, PACKED, TOKENS

BEFORE = {"document_id": ["c", "a", "b", "d"], "order_in_source": [0, 1, 2, 2]}
"""Documents, the last two of which have the same place: then their ids decide."""
TRAIN = PACKED["train"]


def stored(table: str, **columns: list[Any]) -> MemoryObject:
    return MemoryObject("id", "a/part", {}, PartOutput({table: pa.table(columns)}), Path())


def misplaced(table: str, order: tuple[str, ...], **columns: list[Any]) -> list[int]:
    """Return the indices of misplaced rows."""
    found = misplaced_rows("one", table, order, stored(table, **columns), stored(ENRICHED, **BEFORE))
    return [int(name.split()[2]) for _, name in found]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ([], []),
        (["a", "b", "b"], []),
        (["b", "a", "c", "b"], [1, 3]),
        (["c", "b", "a"], [1, 2]),
        (["A", "a", "Z"], [2]),
    ],
)
def test_rows_ascend_by_the_columns_of_their_table(paths: list[str], found: list[int]) -> None:
    assert misplaced(FILES, ("path",), path=paths) == found


def test_a_later_column_decides_between_equal_values_of_the_first() -> None:
    assert misplaced(FILES, ("source", "path"), source=["a", "a", "b"], path=["y", "x", "w"]) == [1]


def test_tokens_are_in_the_order_of_their_documents() -> None:
    assert misplaced(TOKENS, READING_ORDER, document_id=["c", "a", "b", "d"]) == []
    assert misplaced(TOKENS, READING_ORDER, document_id=["a", "c", "d", "b"]) == [1, 3]
    assert misplaced(TOKENS, READING_ORDER, document_id=["c", "unknown", "a"]) == []


def test_what_is_numbered_twice_is_said_to_be_the_cause() -> None:
    for numbers, is_said in (([0, 1, 0, 1], True), ([0, 1, 2, 3], False)):
        before = stored(ENRICHED, document_id=BEFORE["document_id"], order_in_source=numbers)
        ((_, name),) = misplaced_rows("one", TOKENS, READING_ORDER, stored(TOKENS, document_id=["a", "c"]), before)

        assert ("numbers them anew" in name) == is_said


def packed(*rows: list[tuple[str, int]], files: tuple[str | None, ...] = (None,) * 9) -> list[int]:
    """Return the indices of misplaced rows, each given by its pieces: a document and an index."""
    ids, indices = ([[piece[at] for piece in row] for row in rows] for at in (0, 1))
    columns = {"source_doc_ids": ids, "piece_indices": indices, "filepath_stable_id": list(files[: len(rows)])}
    return misplaced(TRAIN, READING_ORDER, **columns)


def test_rows_are_in_the_order_of_their_first_pieces_and_pieces_in_that_of_documents() -> None:
    assert packed([("c", 0), ("b", 0)], [("c", 1), ("a", 0)], [("d", 0)]) == []
    assert packed([("a", 0)], [("c", 0)]) == [1]
    assert packed([("c", 1)], [("c", 0)]) == [1]
    assert packed([("a", 0), ("c", 0)]) == [0]
    assert packed([("a", 0), ("c", 0), ("b", 0)]) == [0]
    assert packed([("a", 0)], [("unknown", 0)], [("b", 0)]) == []


def test_rows_of_commits_come_after_the_others() -> None:
    assert packed([("a", 0)], [("c", 0)], [("b", 0)], files=(None, "file", "file")) == []
    assert packed([("b", 0)], [("a", 0)], files=("file", None)) == [1]


def test_without_the_documents_before_nothing_is_said_of_the_order() -> None:
    assert list(misplaced_rows("one", TOKENS, READING_ORDER, stored(TOKENS, document_id=["b", "a"]), None)) == []


def test_a_number_that_no_table_before_has_is_that_of_its_row() -> None:
    numbered = stored(FILES, number=[0, 2, 3])

    assert [name for _, name in misplaced_rows("one", FILES, ("number",), numbered, None)] == [
        f"{FILES} row 1",
        f"{FILES} row 2",
    ]
    assert misplaced(FILES, ("number",), number=[0, 2, 3]) == []
