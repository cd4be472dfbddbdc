"""StreamedRows: training rows of a store in a bucket, whose files are fetched when a row of theirs is read.

Which rows a file holds is in the manifest, so that the order of rows is known, and is the same, before any is here. A file that
left the cache meanwhile is fetched again. `trainer.data.streaming.fetch_ahead` fetches what comes next.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.core.errors import SnapshotError
from pipeline.store.objects import StoredObject, read_manifest
from trainer.data.keyed_hash import Integers
from trainer.data.mapped_rows import STRUCTURE_REMEDY, RecordBatchRows, TrainingRows

_NUM_TRIES = 5
"""Times that a file is brought which goes between its arrival and its opening."""


class RowFile(NamedTuple):
    """A file of rows: that of an object, in the folder which the cache has for it."""

    folder: Path
    name: str
    num_rows: int
    num_bytes: int

    @property
    def path(self) -> Path:
        return self.folder / self.name

    def bring(self) -> Path:
        """Return the verified file, which is here then. Processes that want the same one wait for the first. Raises StoreError."""
        with _held(self.folder):
            return StoredObject(self.folder, read_manifest(self.folder)).file(self.name)


class StreamedRows(TrainingRows):
    """The rows of one source and split, in files that may not be here. What is asked of all rows brings all of them."""

    block_rows = 64

    def __init__(
        self, files: Sequence[RowFile], chosen_N: Integers | None = None, must_have_structure: bool = False
    ) -> None:
        self.files = tuple(file for file in files if file.num_rows)
        self._first_rows = np.array([0, *accumulate(file.num_rows for file in self.files)])
        self._chosen_N = chosen_N
        self._must_have_structure = must_have_structure
        self._opened: dict[int, TrainingRows] = {}

    def subset(self, rows_N: Integers) -> "StreamedRows":
        """Return some of the rows, in the given order."""
        return StreamedRows(self.files, self.stored_rows(rows_N), self._must_have_structure)

    def files_of(self, rows_R: Integers) -> list[RowFile]:
        """Return the files that hold some of these rows."""
        return [self.files[number] for number in np.unique(self._numbers(self.stored_rows(rows_R))).tolist()]

    def groups(self) -> list[tuple[str, ...]] | None:
        """Return what the documents of each row have in common, as ROW_GROUP names it. None if a row does not say."""
        return self._whole().groups()

    def group_of(self, row: int) -> tuple[str, ...] | None:
        """Return what the documents of one row have in common; None if a row of its file does not say."""
        stored = int(self.stored_rows(np.array([row]))[0])
        number = int(self._numbers(np.array([stored]))[0])
        return self._rows_of(number).group_of(stored - int(self._first_rows[number]))

    def num_targets(self) -> Integers:
        """Return the trained tokens of each row as it is stored: all of a piece but its first slot."""
        return self._whole().num_targets()

    @property
    def has_structure(self) -> bool:
        """True if the first rows have the columns of structure. Others that have not are refused when they are read."""
        return not self.files or self._rows_of(0).has_structure

    @property
    def max_pieces(self) -> int:
        """The largest number of pieces in a row."""
        return self._whole().max_pieces

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamedRows, (self.files, self._chosen_N, self._must_have_structure)

    def locate(self, rows_R: Integers) -> tuple[list[RecordBatchRows], Integers, Integers]:
        """Return the record batches with these rows and, for each row, the number of its batch and its index there."""
        stored_R = self.stored_rows(rows_R)
        numbers_R = self._numbers(stored_R)
        self._forget_what_left()
        batches: list[RecordBatchRows] = []
        batch_R, index_R = np.empty_like(stored_R), np.empty_like(stored_R)
        for number in np.unique(numbers_R).tolist():
            mine = np.flatnonzero(numbers_R == number)
            found, batch_of, index_of = self._rows_of(number).locate(stored_R[mine] - self._first_rows[number])
            batch_R[mine], index_R[mine] = batch_of + len(batches), index_of
            batches += found
        return batches, batch_R, index_R

    def _numbers(self, stored_R: Integers) -> Integers:
        found: Integers = np.searchsorted(self._first_rows, stored_R, side="right") - 1
        return found

    def _rows_of(self, number: int) -> TrainingRows:
        """Return the rows of a file, which is brought and mapped if it is not yet."""
        for again in reversed(range(_NUM_TRIES if number not in self._opened else 0)):
            path = self.files[number].bring()
            try:
                rows = TrainingRows.open([path])
            except SnapshotError:
                if again and not path.exists():
                    continue
                raise
            if self._must_have_structure and not rows.has_structure:
                raise SnapshotError(f"rows {path}", "they have no structure", "both columns of it", STRUCTURE_REMEDY)
            self._opened[number] = rows
            break
        return self._opened[number]

    def _forget_what_left(self) -> None:
        """Release the maps of files that left the cache: until then their bytes take room."""
        self._opened = {number: rows for number, rows in self._opened.items() if self.files[number].path.exists()}

    def _whole(self) -> TrainingRows:
        return TrainingRows.open([file.bring() for file in self.files], self._chosen_N)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which other processes and threads wait for."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
