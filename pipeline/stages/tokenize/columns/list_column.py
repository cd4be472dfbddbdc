"""List columns as two arrays: all values, and the offsets of the lists. No Python object per value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ListColumn:
    """List `i` is `values[offsets[i]:offsets[i + 1]]`."""

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, lists: Sequence[npt.NDArray[Any] | Sequence[int]], dtype: np.dtype[Any]) -> "ListColumn":
        """Return the column of these lists."""
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(values) for values in lists], out=offsets[1:])
        values = np.concatenate([np.asarray(values, dtype=dtype) for values in lists]) if lists else np.empty(0, dtype)
        return cls(values, offsets)

    @classmethod
    def of_matrix(cls, values_RT: npt.NDArray[Any]) -> "ListColumn":
        """Return the column whose list `i` is row `i` of a matrix."""
        num_rows, length = values_RT.shape
        return cls(values_RT.reshape(-1), np.arange(num_rows + 1, dtype=np.int64) * length)

    @classmethod
    def from_arrow(cls, array: pa.Array | pa.ChunkedArray) -> "ListColumn":
        """Return the column of an Arrow list column; a null is an empty list."""
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        offsets = array.offsets.to_numpy().astype(np.int64)
        values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        return cls(values.to_numpy(zero_copy_only=False), offsets - offsets[0])

    def to_arrow(self, type_: pa.DataType, is_absent: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Return the column as an Arrow large list of `type_`, sharing its memory; null where a list `is_absent`."""
        absent = None if is_absent is None else pa.array(is_absent)
        return pa.LargeListArray.from_arrays(
            pa.array(self.offsets), pa.array(self.values, type_.value_type), type=type_, mask=absent
        )

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Length of each list."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        return self.values[self.offsets[index] : self.offsets[index + 1]]
