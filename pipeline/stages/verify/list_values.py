"""Lists of an Arrow column as numpy arrays. Shares no code with the columns of the tokenize stage."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def flat_values(column: pa.ChunkedArray) -> IntArray:
    """Return the values of all lists of a column, one list after the other."""
    return np.asarray(pc.list_flatten(column)).astype(np.int64)


def lengths(column: pa.ChunkedArray) -> IntArray:
    """Return the length of each list of a column, 0 for a null."""
    found = pc.list_value_length(column)
    return np.asarray(found.fill_null(0) if found.null_count else found).astype(np.int64)


def lists(column: pa.ChunkedArray) -> list[npt.NDArray[Any]]:
    """Return each list of a column as an array of the column's own type."""
    values, ends = np.asarray(pc.list_flatten(column)), np.cumsum(lengths(column)).tolist()
    return [values[start:end] for start, end in pairwise((0, *ends))]


def lists_agree(first: pa.ChunkedArray, second: pa.ChunkedArray) -> BoolArray:
    """Return for each of N rows whether its list in one column is equal to its list in the other."""
    return np.array(list(map(np.array_equal, lists(first), lists(second))), dtype=np.bool_)
