"""Buckets of signatures that agree in a band, joined by DuckDB, and their connected components.

A band is six of the 256 values; the last four are unused. It is stored as one 64-bit hash of them: an accidental equality
adds one candidate, and the exact similarity decides. Large sets are joined band after band, so
that memory holds one band of all documents and not 42. A bucket is linked by a star from its first row, never by all its
pairs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NUM_BANDS = 42
NUM_VALUES_IN_BAND = 6
"""42 x 6 finds a pair of Jaccard 0.7 with probability 0.995; 32 x 8 misses one in seven there (docs/decisions/0009)."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MAX_KEYS_AT_ONCE = 1_000_000
_SHARED = """insert into shared
    select band, key, row from keys semi join
        (select band, key from keys group by band, key having count(*) > 1) as repeated using (band, key)"""
_BUCKETS = """select distinct members from
    (select list(row order by row) as members from shared group by band, key) order by members"""


@dataclass(frozen=True)
class Buckets:
    """Rows that share a band. `members` holds the distinct buckets one after the other, each ascending, from `starts` on.

    `rows` are all rows in any bucket, those of one connected component together, smallest first.
    """

    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]

    def later_partners(
        self, is_out: Callable[[int], bool] = lambda row: False
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each row and the later ones that share a bucket with it, ascending; component by component.

        A row that `is_out` when it is reached is skipped: in a bucket of copies one row has partners, not all.
        """
        bucket_of_member = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        by_row = np.argsort(self.members, kind="stable")
        sorted_rows = self.members[by_row]
        first, last = np.searchsorted(sorted_rows, self.rows), np.searchsorted(sorted_rows, self.rows, side="right")
        ends = self.starts[bucket_of_member + 1]
        for row, start, stop in zip(self.rows.tolist(), first.tolist(), last.tolist(), strict=True):
            if is_out(row):
                continue
            later = [self.members[place + 1 : ends[place]] for place in by_row[start:stop].tolist()]
            yield row, np.unique(np.concatenate(later)) if len(later) > 1 else later[0]


def find_buckets(signatures: NDArray[np.uint32]) -> Buckets:
    """Return the rows of `signatures`, shape (rows, 256), that agree in all six values of at least one band."""
    with _database().cursor() as database:
        database.execute("create temp table shared (band utinyint, key ubigint, row bigint)")
        num_at_once = max(1, _MAX_KEYS_AT_ONCE // max(1, len(signatures)))
        for first in range(0, NUM_BANDS, num_at_once):
            database.register("keys", _key_table(signatures, range(first, min(first + num_at_once, NUM_BANDS))))
            database.execute(_SHARED)
            database.unregister("keys")
        lists = database.sql(_BUCKETS).to_arrow_table()["members"].combine_chunks()
    members = lists.flatten().to_numpy() if len(lists) else np.empty(0, np.int64)
    lengths = lists.value_lengths().to_numpy() if len(lists) else np.empty(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    names = np.arange(len(signatures))
    join_components(names, np.repeat(members[starts[:-1]], lengths), members)
    rows = np.unique(members)
    return Buckets(members, starts, rows[np.argsort(_ends(names, rows), kind="stable")])


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Open the database of all joins of the process, each in a cursor of its own: opening one takes longer than a small join."""
    return duckdb.connect(":memory:", config={"threads": 1})


def join_components(names: NDArray[np.int64], heads: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    """Join the components of pairs of rows. Each row has the name of a smaller one of its component, or its own.

    Names of the rows of pairs are followed to their ends in each round: long chains need few.
    """
    while True:
        first, second = _ends(names, heads), _ends(names, others)
        if (first == second).all():
            break
        np.minimum.at(names, np.maximum(first, second), np.minimum(first, second))
    names[heads] = first
    names[others] = second


def _ends(names: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    found = names[rows]
    while not ((further := names[found]) == found).all():
        found = further
    return found


def _key_table(signatures: NDArray[np.uint32], bands: Sequence[int]) -> pa.Table:
    keys = [band_keys(signatures, band) for band in bands]
    names = np.repeat(np.array(bands, np.uint8), len(signatures))
    rows = np.tile(np.arange(len(signatures)), len(bands))
    return pa.table({"band": names, "key": np.concatenate(keys), "row": rows})


def band_keys(signatures: NDArray[np.uint32], band: int) -> NDArray[np.uint64]:
    """Return one 64-bit key per row. Equal bands have equal keys; others almost never, and the exact similarity decides."""
    return _keys(signatures[:, None, band * NUM_VALUES_IN_BAND : (band + 1) * NUM_VALUES_IN_BAND])[:, 0]


def all_band_keys(signatures: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return the keys of all bands, shape (rows, 42). Those of different bands differ, whatever their values."""
    bands = signatures[:, : NUM_BANDS * NUM_VALUES_IN_BAND].reshape(-1, NUM_BANDS, NUM_VALUES_IN_BAND)
    return (_keys(bands) ^ np.arange(NUM_BANDS, dtype=np.uint64)) * _MULTIPLIER


def _keys(bands: NDArray[np.uint32]) -> NDArray[np.uint64]:
    keys = np.zeros(bands.shape[:-1], np.uint64)
    for column in range(NUM_VALUES_IN_BAND):
        keys = (keys ^ bands[..., column]) * _MULTIPLIER
        keys ^= keys >> np.uint64(29)
    return keys
