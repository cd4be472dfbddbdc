"""Lists of a column are read the same from one chunk or several, and nulls are empty."""

import numpy as np
import pyarrow as pa

from pipeline.stages.verify.list_values import flat_values, lengths, lists, lists_agree

TYPE = pa.large_list(pa.uint16())
COLUMN = pa.chunked_array([pa.array([[1, 2], []], TYPE), pa.array([None, [3]], TYPE)])


def test_values_and_lengths_of_chunks_are_concatenated() -> None:
    assert flat_values(COLUMN).tolist() == [1, 2, 3]
    assert flat_values(COLUMN).dtype == np.int64
    assert lengths(COLUMN).tolist() == [2, 0, 0, 1]
    assert [values.tolist() for values in lists(COLUMN)] == [[1, 2], [], [], [3]]


def test_lists_agree_by_value_whatever_their_type() -> None:
    other = pa.chunked_array([pa.array([[1, 2], [], [0], [4]], pa.large_list(pa.int64()))])
    assert lists_agree(COLUMN, other).tolist() == [True, True, False, False]
    assert lists(COLUMN.slice(0, 0)) == []
