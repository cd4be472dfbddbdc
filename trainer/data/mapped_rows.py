"""Memory-mapped training rows of a source, as numpy views: slots are not copied.

Shapes: R rows, T slots of a row, P pieces and C chunks of all rows.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from pipeline.contracts.training_row import ROW_GROUP, STRUCTURE
from pipeline.core.errors import SnapshotError
from pipeline.core.records import TrainingRow
from trainer.data.keyed_hash import Integers

STRUCTURE_REMEDY = "Build the corpus with tokenize.with_structure, or leave model.structure out of the recipe."
_HINTS = get_type_hints(TrainingRow)
_CORE = tuple(field.name for field in fields(TrainingRow) if type(None) not in get_args(_HINTS[field.name]))
_PIECE_COLUMNS = ("lengths", "piece_ids", "chunk_counts")
_CHRONOLOGY = ("file_identity", "first_commit_index")


class MappedRows(NamedTuple):
    """R rows, as `pipeline.core.records.TrainingRow` describes them; columns of pieces and chunks concatenated row by row.

    `input_ids` has the T slots of each row as a slice of the mapped file, which is cut and joined in less time than an array;
    so has each of `structure`, which is empty unless requested. `last_slots_P` is the slot of its row at which a piece ends,
    `last_ids_P` the id there. `files_R` and `commits_R` are the file and the commit of its history with which a row begins;
    the commit is -1 for a row without chronology.
    """

    input_ids: list[memoryview]
    structure: tuple[list[memoryview], ...]
    num_pieces_R: Integers
    lengths_P: Integers
    piece_ids_P: npt.NDArray[np.uint64]
    last_slots_P: Integers
    last_ids_P: Integers
    num_chunks_P: Integers
    chunk_starts_C: Integers
    files_R: npt.NDArray[np.uint64]
    commits_R: Integers


class TrainingRows:
    """The rows of one source and split. Worker processes map the same files again; a table without files is sent to them."""

    block_rows = 512
    """Positions whose rows are found and infilled together. It changes no batch."""

    def __init__(self, table: pa.Table, paths: Sequence[Path] = (), chosen_N: Integers | None = None) -> None:
        missing = sorted(set(_CORE) - set(table.column_names))
        if missing:
            raise SnapshotError("training rows", f"the columns {missing} are missing", f"{list(_CORE)}")
        self._table = table
        self._paths = tuple(paths)
        self._batches = [RecordBatchRows.of(batch) for batch in table.to_batches() if batch.num_rows]
        self._first_rows = np.array([0, *accumulate(batch.num_rows for batch in self._batches)])
        self._chosen_N = chosen_N

    @classmethod
    def open(cls, paths: Sequence[Path], chosen_N: Integers | None = None) -> "TrainingRows":
        """Map the Arrow files of one table, in order; of some rows of it alone, if they are given."""
        tables = [_mapped(path) for path in paths]
        return cls(pa.concat_tables(tables, promote_options="default"), paths, chosen_N)

    def subset(self, rows_N: Integers) -> "TrainingRows":
        """Return some of the rows, in the given order."""
        return TrainingRows(self._table, self._paths, self.stored_rows(rows_N))

    def stored_rows(self, rows_N: Integers) -> Integers:
        """Return the places, in the stored table, of some of these rows."""
        return rows_N if self._chosen_N is None else self._chosen_N[rows_N]

    def groups(self) -> list[tuple[str, ...]] | None:
        """Return what the documents of each row have in common, as ROW_GROUP names it. None if a row does not say."""
        if any(name not in self._table.column_names or self._table[name].null_count for name in ROW_GROUP):
            return None
        found = list(zip(*(self._table[name].to_pylist() for name in ROW_GROUP), strict=True))
        return found if self._chosen_N is None else [found[row] for row in self._chosen_N.tolist()]

    def group_of(self, row: int) -> tuple[str, ...] | None:
        """Return what the documents of one row have in common. None if a row does not say."""
        return None if self._groups is None else self._groups[row]

    @cached_property
    def _groups(self) -> list[tuple[str, ...]] | None:
        return self.groups()

    def num_targets(self) -> Integers:
        """Return the trained tokens of each row as it is stored: all of a piece but its first slot."""
        lengths = self._table["lengths"].combine_chunks()
        before_P = np.append(0, np.cumsum(lengths.values.to_numpy().astype(np.int64) - 1))
        offsets_R = lengths.offsets.to_numpy()
        found_R: Integers = before_P[offsets_R[1:]] - before_P[offsets_R[:-1]]
        return found_R if self._chosen_N is None else found_R[self._chosen_N]

    @property
    def has_structure(self) -> bool:
        """True if every row has the columns of structure."""
        return all(name in batch.lists for batch in self._batches for name in STRUCTURE)

    @property
    def max_pieces(self) -> int:
        """The largest number of pieces in a row. Reads nothing but offsets."""
        return max((int(np.diff(batch.lists["lengths"][1]).max()) for batch in self._batches), default=0)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._paths:
            return TrainingRows.open, (self._paths, self._chosen_N)
        return TrainingRows, (self._table, (), self._chosen_N)

    def __len__(self) -> int:
        return int(self._first_rows[-1] if self._chosen_N is None else len(self._chosen_N))

    def __getitem__(self, index: int) -> MappedRows:
        """Return one row."""
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return gather([self], np.zeros(1, np.int64), np.array([index]), "rows")

    def locate(self, rows_R: Integers) -> tuple[list["RecordBatchRows"], Integers, Integers]:
        """Return the record batches with these rows and, for each row, the number of its batch and its index there."""
        rows_R = self.stored_rows(rows_R)
        used, batch_R = np.unique(np.searchsorted(self._first_rows, rows_R, side="right") - 1, return_inverse=True)
        return [self._batches[place] for place in used.tolist()], batch_R, rows_R - self._first_rows[used[batch_R]]


def gather(
    sources: Sequence[TrainingRows], sources_R: Integers, rows_R: Integers, subject: str, with_structure: bool = False
) -> MappedRows:
    """Return rows of several sources, in the given order. Raises SnapshotError for a row that contradicts itself."""
    parts: list[MappedRows] = []
    places: list[Integers] = []
    for source in np.unique(sources_R).tolist():
        mine = np.flatnonzero(sources_R == source)
        batches, batch_of, index_of = sources[source].locate(rows_R[mine])
        for number, batch in enumerate(batches):
            chosen = np.flatnonzero(batch_of == number)
            parts.append(batch.rows(index_of[chosen], subject, with_structure))
            places.append(mine[chosen])
    return parts[0] if len(parts) == 1 else _in_order(parts, np.argsort(np.concatenate(places)))


def spread(firsts_N: Integers, lengths_N: Integers) -> Integers:
    """Return the indices of N runs, concatenated."""
    return np.repeat(firsts_N - (np.cumsum(lengths_N) - lengths_N), lengths_N) + np.arange(lengths_N.sum())


def _mapped(path: Path) -> pa.Table:
    try:
        return ipc.open_file(pa.memory_map(str(path))).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise SnapshotError(
            f"rows {path.name}", str(error).splitlines()[0], "an Arrow file", "Run `python -m pipeline fsck`."
        ) from error


@dataclass(frozen=True, slots=True)
class RecordBatchRows:
    """An Arrow record batch: values and offsets of each list column, and the plain columns."""

    num_rows: int
    lists: dict[str, tuple[npt.NDArray[Any], Integers]]
    chronology: tuple[npt.NDArray[np.uint64], Integers] | None

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "RecordBatchRows":
        present = [name for name in (*_CORE, *STRUCTURE) if name in batch.schema.names]
        columns = {name: batch.column(name) for name in present}
        lists = {
            name: (_view(column.values), _view(column.offsets))
            for name, column in columns.items()
            if name in _CORE or column.null_count == 0
        }
        return cls(batch.num_rows, lists, _chronology(batch))

    def rows(self, index_R: Integers, subject: str, with_structure: bool) -> MappedRows:
        values, offsets = self.lists["input_ids"]
        view = memoryview(values)
        starts_R, stops_R = offsets[index_R], offsets[index_R + 1]
        bounds = list(zip(starts_R.tolist(), stops_R.tolist(), strict=True))
        num_pieces_R, (lengths_P, piece_ids_P, num_chunks_P) = self._pieces(index_R, subject)
        lengths_P, num_chunks_P = lengths_P.astype(np.int64), num_chunks_P.astype(np.int64)
        ends_P = np.cumsum(lengths_P)
        row_P = np.repeat(np.arange(len(index_R)), num_pieces_R)
        ends_R = np.append(0, ends_P)[np.cumsum(num_pieces_R)]
        last_slots_P = ends_P - np.append(0, ends_R[:-1])[row_P] - 1
        if (np.diff(ends_R, prepend=0) > stops_R - starts_R).any() or (len(lengths_P) and lengths_P.min() < 1):
            raise SnapshotError(subject, "pieces of a row reach beyond its end", "pieces inside", _FSCK)
        chunk_starts_C = self._chunks(index_R, num_chunks_P, subject)
        files_R, commits_R = _absent(len(index_R)) if self.chronology is None else (c[index_R] for c in self.chronology)
        return MappedRows(
            [view[start:stop] for start, stop in bounds],
            tuple(self._slots(name, index_R, bounds) for name in STRUCTURE) if with_structure else (),
            num_pieces_R,
            lengths_P,
            piece_ids_P,
            last_slots_P,
            values[last_slots_P + starts_R[row_P]].astype(np.int64),
            num_chunks_P,
            chunk_starts_C,
            files_R,
            commits_R,
        )

    def _entries(self, name: str, index_R: Integers) -> tuple[npt.NDArray[Any], Integers]:
        """Return the entries of a list column in these rows, concatenated, and how many each row has."""
        values, offsets = self.lists[name]
        starts_R = offsets[index_R]
        lengths_R = offsets[index_R + 1] - starts_R
        return values[spread(starts_R, lengths_R)], lengths_R

    def _pieces(self, index_R: Integers, subject: str) -> tuple[Integers, list[npt.NDArray[Any]]]:
        columns, counts = zip(*(self._entries(name, index_R) for name in _PIECE_COLUMNS), strict=True)
        for name, counts_R in zip(_PIECE_COLUMNS, counts, strict=True):
            if (counts_R != counts[0]).any():
                found = f"{name} is not as long as {_PIECE_COLUMNS[0]}"
                raise SnapshotError(subject, found, "one entry a piece", _FSCK)
        return counts[0], list(columns)

    def _chunks(self, index_R: Integers, num_chunks_P: Integers, subject: str) -> Integers:
        starts_C, lengths_R = self._entries("chunk_starts", index_R)
        if lengths_R.sum() != num_chunks_P.sum():
            raise SnapshotError(subject, "chunk_counts do not add up to chunk_starts", "one start a chunk", _FSCK)
        return starts_C.astype(np.int64)

    def _slots(self, name: str, index_R: Integers, bounds: list[tuple[int, int]]) -> list[memoryview]:
        """Return a column of T slots; zeros, with a warning, for a row where it is absent or not as long as the ids."""
        lengths = [stop - start for start, stop in bounds]
        if name not in self.lists:
            warnings.warn(f"column {name} is absent: row {index_R[0]} and others have no structure", stacklevel=2)
            return [memoryview(bytes(length)) for length in lengths]
        values, offsets = self.lists[name]
        view = memoryview(values)
        found = [view[offsets[index] : offsets[index + 1]] for index in index_R.tolist()]
        wrong = [place for place, length in enumerate(lengths) if len(found[place]) != length]
        for place in wrong:
            warnings.warn(f"column {name} of row {index_R[place]} is not as long as its ids: left out", stacklevel=2)
            found[place] = memoryview(bytes(lengths[place]))
        return found


_FSCK = "Run `python -m pipeline fsck`."


def _absent(num_rows: int) -> tuple[npt.NDArray[np.uint64], Integers]:
    return np.zeros(num_rows, dtype=np.uint64), np.full(num_rows, -1, dtype=np.int64)


def _view(values: pa.Array) -> npt.NDArray[Any]:
    """Return the memory of an Arrow array as numpy's. `to_numpy` would load pandas, where that is installed, for half a second."""
    return np.from_dlpack(values)


def _chronology(batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], Integers] | None:
    """Return file and first commit of each row, -1 for the commit of a row without one. None if no row has one."""
    if any(name not in batch.schema.names or batch.column(name).null_count == batch.num_rows for name in _CHRONOLOGY):
        return None
    files, commits = (batch.column(name) for name in _CHRONOLOGY)
    return _filled(files, 0), _filled(commits, -1).astype(np.int64)


def _filled(values: pa.Array, absent: int) -> npt.NDArray[Any]:
    """Return numbers with `absent` in place of nulls. `fill_null` would load pandas, as `to_numpy` does."""
    validity, content = values.buffers()
    rows = slice(values.offset, values.offset + len(values))
    found = np.frombuffer(content, np.dtype(str(values.type)))[rows]
    if validity is None:
        return found
    is_valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[rows].astype(bool)
    return np.where(is_valid, found, found.dtype.type(absent))


def _in_order(parts: Sequence[MappedRows], order_R: Integers) -> MappedRows:
    """Return the rows of several parts, in this order."""
    num_pieces_R = np.concatenate([part.num_pieces_R for part in parts])
    pieces = spread((np.cumsum(num_pieces_R) - num_pieces_R)[order_R], num_pieces_R[order_R])

    def of_pieces(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    num_chunks_P = of_pieces("num_chunks_P")
    chunks = spread((np.cumsum(num_chunks_P) - num_chunks_P)[pieces], num_chunks_P[pieces])
    order = order_R.tolist()

    def of_slots(pick: Callable[[MappedRows], list[memoryview]]) -> list[memoryview]:
        flat = [values for part in parts for values in pick(part)]
        return [flat[place] for place in order]

    columns = {name: of_pieces(name)[pieces] for name in MappedRows._fields if name.endswith("_P")}
    columns |= {name: of_pieces(name)[order_R] for name in MappedRows._fields if name.endswith("_R")}
    structure = tuple(
        of_slots(lambda part, place=place: part.structure[place]) for place in range(len(parts[0].structure))
    )  # type: ignore[misc]
    return MappedRows(
        input_ids=of_slots(lambda part: part.input_ids),
        structure=structure,
        chunk_starts_C=of_pieces("chunk_starts_C")[chunks],
        **columns,
    )
