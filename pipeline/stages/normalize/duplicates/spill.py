"""Spill: rows of tables, or numbers, on disk by partitions, written in any order and read one partition at a time."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MAX_BYTES_HELD = 1 << 25


class TableSpill:
    """Tables of one schema in a folder, a file a partition. Rows of a partition keep the order in which they came."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._held: list[tuple[NDArray[np.int64], pa.Table]] = []
        self._num_bytes = 0

    def add(self, partitions: NDArray[np.integer[Any]], table: pa.Table) -> None:
        """Add rows, each to the partition of its number."""
        if table.num_rows:
            self._held.append((np.asarray(partitions, np.int64), table))
            self._num_bytes += table.nbytes
        if self._num_bytes > _MAX_BYTES_HELD:
            self._flush()

    def read(self, partition: int) -> pa.Table | None:
        """Return the rows of a partition in one chunk, or None if there are none."""
        self._flush()
        path = self._folder / str(partition)
        if not path.exists():
            return None
        tables = []
        with pa.OSFile(str(path)) as file:
            while file.tell() < file.size():
                tables.append(pa.ipc.open_stream(file).read_all())
        return pa.concat_tables(tables).combine_chunks()

    def _flush(self) -> None:
        if not self._held:
            return
        numbers = np.concatenate([each for each, _ in self._held])
        table = pa.concat_tables([each for _, each in self._held])
        self._held, self._num_bytes = [], 0
        order = np.argsort(numbers, kind="stable")
        found, starts = np.unique(numbers[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for number, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            rows = table.take(pa.array(order[start:end])).combine_chunks()
            with (
                pa.OSFile(str(self._folder / str(number)), "ab") as file,
                pa.ipc.new_stream(file, rows.schema, options=options) as writer,
            ):
                writer.write_table(rows)


class NumberSpill:
    """Numbers of 64 bits in a folder, a file a partition, for which tables would be too dear."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder

    def add(self, partitions: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Add numbers, each to the partition of its own."""
        order = np.argsort(partitions, kind="stable")
        found, starts = np.unique(partitions[order], return_index=True)
        for partition, some in zip(
            found.tolist(), np.split(numbers[order], starts[1:]), strict=False
        ):  # none of nothing
            with (self._folder / str(partition)).open("ab") as file:
                some.tofile(file)

    def read(self, partition: int) -> NDArray[np.int64]:
        """Return the numbers of a partition, in the order in which they came."""
        path = self._folder / str(partition)
        return np.fromfile(path, np.int64) if path.exists() else np.empty(0, np.int64)


Regroup = Callable[[Iterator[NDArray[np.int64]]], Iterator[NDArray[np.int64]]]
"""Brings numbers of a partition together that are in several arrays."""


def regrouped(
    folder: Path, num_partitions: int, partition_of: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> Regroup:
    """Return what writes arrays of numbers into a folder and yields those of each partition as one array."""

    def regroup(arrays: Iterator[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        spill = NumberSpill(folder)
        for numbers in arrays:
            spill.add(partition_of(numbers), numbers)
        yield from map(spill.read, range(num_partitions))

    return regroup


def rows_with(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    """Return the rows that have the values in a column, in the order of the values. Those without a row are left out."""
    places = pc.index_in(values, value_set=table[column].combine_chunks())
    return table.take(places.drop_null())
