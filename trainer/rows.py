"""The hot surface of a source as numpy views: rows are read where they lie, memory-mapped, and nothing is copied.

A row has T slots, P pieces and C chunks in them.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from pipeline.errors import SnapshotError
from pipeline.records import TrainingRow

_COLUMNS = tuple(field.name for field in fields(TrainingRow))


class Row(NamedTuple):
    """One packed row, as `pipeline.records.TrainingRow` describes it.

    Shapes: `input_ids` (T), `lengths`, `piece_ids` and `chunk_counts` (P), `chunk_starts` (C).
    """

    input_ids: npt.NDArray[np.uint16]
    lengths: npt.NDArray[np.uint32]
    piece_ids: npt.NDArray[np.uint64]
    chunk_counts: npt.NDArray[np.uint32]
    chunk_starts: npt.NDArray[np.uint32]


class TrainingRows:
    """The rows of one source and split.

    Worker processes map the same files again; rows without a file travel to them whole.
    """

    def __init__(self, table: pa.Table, paths: Sequence[Path] = ()) -> None:
        missing = sorted(set(_COLUMNS) - set(table.column_names))
        if missing:
            raise SnapshotError("training rows", f"the columns {missing} are missing", f"{list(_COLUMNS)}")
        self._table = table
        self._paths = tuple(paths)
        self._batches = [_Batch.of(batch) for batch in table.to_batches() if batch.num_rows]
        self._first_rows = [0, *accumulate(batch.num_rows for batch in self._batches)]

    @classmethod
    def open(cls, paths: Sequence[Path]) -> "TrainingRows":
        """Map the Arrow files of one table, in order."""
        return cls(pa.concat_tables([ipc.open_file(pa.memory_map(str(path))).read_all() for path in paths]), paths)

    def __reduce__(self) -> tuple[Any, ...]:
        return (TrainingRows.open, (self._paths,)) if self._paths else (TrainingRows, (self._table,))

    def __len__(self) -> int:
        return self._first_rows[-1]

    def __getitem__(self, index: int) -> Row:
        if not 0 <= index < self._first_rows[-1]:
            raise IndexError(f"row {index} of {len(self)}")
        place = bisect_right(self._first_rows, index) - 1
        return self._batches[place].row(index - self._first_rows[place])


@dataclass(frozen=True, slots=True)
class _Batch:
    """One record batch: the values and the offsets of each list column."""

    num_rows: int
    columns: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], ...]

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "_Batch":
        lists = [batch.column(name) for name in _COLUMNS]
        return cls(batch.num_rows, tuple((column.values.to_numpy(), column.offsets.to_numpy()) for column in lists))

    def row(self, index: int) -> Row:
        return Row(*[values[offsets[index] : offsets[index + 1]] for values, offsets in self.columns])
