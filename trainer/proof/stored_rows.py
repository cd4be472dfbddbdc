"""Stored rows: what their files hold of the rows in a trace, read by pyarrow alone, without any code of the loader."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot

AS_STORED = "as stored"
"""Judgment of that which is right."""
DATE_COLUMNS = ("file_identity", "first_commit_index")
"""Columns of the file and the commit that a row begins with."""


def content_digest(input_ids: Any, specials: Iterable[int]) -> str:
    """Return a digest of the ids of a row in ascending order, without special ones: infilling does not change it."""
    ids = np.asarray(input_ids, np.int64)
    return _digest(np.sort(ids[~np.isin(ids, sorted(specials))]))


def told_rows(trace: Mapping[str, Any]) -> list[list[Any]]:
    """Return what a trace says of each row: that its epoch has it for the first time, its pieces, its ids and its content."""
    rows = zip(trace["triples"], trace["rows"], trace["contents"], strict=True)
    return [[True, pieces, stored, content] for (_, _, _, *pieces), (stored, *_), content in rows]


def stored_rows(snapshot: Snapshot, trace: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Iterate over the same of the rows that a trace names, as their files hold them."""
    specials = snapshot.vocabulary["specials"].values()
    names = sorted({source for _, source, *_ in trace["triples"]})
    stored = {source: StoredColumns(snapshot, source, ("input_ids", "piece_ids")) for source in names}
    seen: set[tuple[str, int, int]] = set()
    for (_, source, row, *_), (_, epoch, *_) in zip(trace["triples"], trace["infillings"], strict=True):
        name = (source, epoch, row)
        ids, pieces = (stored[source].values(column, row) for column in ("input_ids", "piece_ids"))
        yield [
            name not in seen,
            [f"{piece:016x}" for piece in pieces.tolist()],
            _digest(ids),
            content_digest(ids, specials),
        ]
        seen.add(name)


def num_stored_rows(snapshot: Snapshot, source: str) -> int:
    """Return how many training rows the files of a source hold."""
    return sum(table.num_rows for table in _tables(snapshot, source))


class StoredColumns:
    """Columns of the training rows of a source, as its files hold them."""

    def __init__(self, snapshot: Snapshot, source: str, columns: Sequence[str]) -> None:
        self._table = pa.concat_tables([table.select(columns) for table in _tables(snapshot, source)])

    def values(self, column: str, row: int) -> Any:
        """Return the entries of one row of a column of lists."""
        return np.from_dlpack(self._table[column][row].values)

    def chronology(self, row: int) -> tuple[int, int] | None:
        """Return the file and the commit that a row begins with; None for a row without chronology."""
        file, commit = (self._table[column][row].as_py() for column in DATE_COLUMNS)
        return None if commit is None else (file, commit)


def _tables(snapshot: Snapshot, source: str) -> list[pa.Table]:
    files: Sequence[Any] = snapshot.row_files(source, Split.TRAIN)
    return [ipc.open_file(pa.memory_map(str(path))).read_all() for path in files]


def _digest(values: Any) -> str:
    return hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest()
