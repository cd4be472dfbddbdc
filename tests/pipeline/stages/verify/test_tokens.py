"""The proofs about token columns count each kind of damage that is planted in sound columns."""

from typing import Any

import pyarrow as pa
import pytest

from pipeline.stages.verify.tokens import count_ids, count_ids_out_of_range, count_misaligned_columns, count_special_ids

SOUND: dict[str, list[Any]] = {
    "input_ids": [[5, 6, 7], [9], []],
    "chunk_starts": [[0, 2], [0], []],
    "structure_kinds": [[1, 1, 2], [3], []],
    "symbols": [None, [8], None],
}


def table(**columns: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(lists, pa.large_list(pa.uint16())) for name, lists in (SOUND | columns).items()})


def test_sound_columns_have_no_offense() -> None:
    assert count_misaligned_columns(table()) == 0
    assert count_misaligned_columns(table().slice(0, 0)) == 0
    assert count_misaligned_columns(pa.concat_tables([table(), table().slice(1)])) == 0


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"structure_kinds": [[1, 1], [3], []]}, 1),
        ({"structure_kinds": [[1, 1, 2, 2], [3, 3], []]}, 2),
        ({"symbols": [None, [8, 8], None]}, 1),
        ({"symbols": [[], [8], None]}, 1),
        ({"chunk_starts": [[0, 3], [0], []]}, 1),
        ({"chunk_starts": [[2, 0], [1], []]}, 2),
        ({"chunk_starts": [[0, 0], [0], [0]]}, 2),
    ],
    ids=["short", "two long", "an optional one", "an empty one", "a start past the end", "falling", "repeated"],
)
def test_a_column_that_is_not_aligned_is_counted(columns: dict[str, list[Any]], expected: int) -> None:
    assert count_misaligned_columns(table(**columns)) == expected


def test_ids_are_counted_and_those_out_of_range_or_special_are_found() -> None:
    assert count_ids_out_of_range(table(), 10) == 0
    assert count_ids_out_of_range(table(), 7) == 2
    assert count_special_ids(table(), [0, 1, 2]) == 0
    assert count_special_ids(table(), [5, 9]) == 2
    assert count_ids(table(), 10).tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 0, 1]
