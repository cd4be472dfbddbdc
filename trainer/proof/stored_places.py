"""Stored places: whether the places of a loader give the rows of a snapshot as often as it states, judged without the loader.

Shapes: N places from the first on, S sources of the snapshot that have training rows.
"""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from pipeline.store.snapshot import Snapshot
from trainer.proof.stored_rows import AS_STORED, DATE_COLUMNS, StoredColumns, num_stored_rows

MOST_PLACES = 1 << 17
"""Places that are judged at most: all of two epochs of every source, or the first of them."""
_ROUNDING = 2.0**-19
"""Error of a share in each place at most: of a cycle of more than 2^20 places the quotas are rounded."""
_FEW_ROWS = 12
"""Rows of a source of which two orders may be equal by chance."""
_SURELY_READ = 2.5
"""Share of a source in the places, in rows, from which on one of them is of it, though it is one row off."""


class _Stored(NamedTuple):
    """Rows of a source, by its files, and its share of all samples, by the weights in snapshot.json."""

    num_rows: int
    share: float


def num_places(snapshot: Snapshot, num_rows: int) -> int:
    """Return how many places hold two epochs of every source: `MOST_PLACES` at most, and `num_rows` at least."""
    stored = _stored_sources(snapshot).values()
    needed = max((ceil((2 * each.num_rows + 1) / each.share) for each in stored), default=0)
    return max(num_rows, min(needed, MOST_PLACES))


def unread_sources(snapshot: Snapshot, trace: Mapping[str, Any]) -> list[str]:
    """Return the sources of which no row is in a trace, and of which a place must be in its order."""
    read, number = {source for _, source, *_ in trace["triples"]}, len(trace["order"]["rows"])
    stored = _stored_sources(snapshot)
    return [name for name, (_, share) in stored.items() if name not in read and share * number >= _SURELY_READ]


def judge_order(snapshot: Snapshot, trace: Mapping[str, Any], is_permuted: bool) -> list[str]:
    """Return what is wrong with each place of a trace from the first row on, and with each source, or `AS_STORED`."""
    stored = _stored_sources(snapshot)
    order = trace["order"]
    names = list(order["names"])
    sources_N, epochs_N, rows_N = (np.array(order[key], np.int64) for key in ("sources", "epochs", "rows"))
    of_source = {name: (epochs_N[sources_N == place], rows_N[sources_N == place]) for place, name in enumerate(names)}
    return [
        *_of_places([stored.get(name, _Stored(0, 0.0)) for name in names], names, sources_N, epochs_N, rows_N),
        *_of_sources(stored, of_source, len(rows_N), is_permuted),
    ]


def judge_batches(snapshot: Snapshot, trace: Mapping[str, Any]) -> Iterator[str]:
    """Judge that each whole batch of a trace has the rows of its places, its commits sorted by file and commit."""
    order = trace["order"]
    columns = (order[key] for key in ("sources", "epochs", "rows"))
    places = [(order["names"][source], epoch, row) for source, epoch, row in zip(*columns, strict=True)]
    stored = {name: StoredColumns(snapshot, name, DATE_COLUMNS) for name in sorted({name for name, *_ in places})}
    first = 0
    for batch in trace["batches"]:
        expected = places[first : first + len(batch)]
        if len(expected) == len(batch):
            dates = {place: stored[place[0]].chronology(place[2]) for place in expected}
            dated = iter(
                sorted((place for place in expected if dates[place]), key=lambda place: dates[place] or (0, 0))
            )
            expected = [next(dated) if dates[place] else place for place in expected]
            is_right = [tuple(row) for row in batch] == expected
            yield (
                AS_STORED
                if is_right
                else f"the batch at {first} has not the rows of its places, in the order of commits"
            )
        first += len(batch)


def _of_places(stored: list[_Stored], names: list[str], sources_N: Any, epochs_N: Any, rows_N: Any) -> list[str]:
    """Judge that each place has a row of its source, for the first time in the epoch that it says, and no source runs ahead."""
    sizes_N = np.array([each.num_rows for each in stored], np.int64)[sources_N]
    shares_N = np.array([each.share for each in stored])[sources_N]
    places_N, numbers_N = np.arange(len(rows_N)), np.empty(len(rows_N), np.int64)
    by_source = np.argsort(sources_N, kind="stable")
    counts_S = np.bincount(sources_N, minlength=len(names))
    numbers_N[by_source] = places_N - np.repeat(np.cumsum(counts_S) - counts_S, counts_S)
    keys_N = (sources_N * (epochs_N.max() + 1) + epochs_N) * (rows_N.max() + 1) + rows_N
    is_first_N = np.zeros(len(rows_N), np.bool_)
    is_first_N[np.unique(keys_N, return_index=True)[1]] = True
    off_N = np.maximum(numbers_N + 1 - shares_N * (places_N + 1), shares_N * places_N - numbers_N)
    faults = (
        ("is not its row", (rows_N < 0) | (rows_N >= sizes_N)),
        ("was read before in its epoch", ~is_first_N),
        ("is in another epoch than its number says", epochs_N != numbers_N // np.maximum(sizes_N, 1) + 1),
        ("is more than one row off its share", off_N > 1 + places_N * _ROUNDING),
    )
    found = [AS_STORED] * len(rows_N)
    for text, wrong_N in faults:
        for place in np.flatnonzero(wrong_N).tolist():
            found[place] = f"row {rows_N[place]} of {names[sources_N[place]]} in epoch {epochs_N[place]} {text}"
    return found


def _of_sources(
    stored: Mapping[str, _Stored], of_source: Mapping[str, tuple[Any, Any]], num_read: int, is_permuted: bool
) -> Iterator[str]:
    """Judge that each source of the snapshot has its share of all places, and another order in its second epoch."""
    for name, (num_rows, share) in stored.items():
        epochs, rows = of_source.get(name, (np.empty(0), np.empty(0)))
        if abs(len(rows) - share * num_read) > 1 + num_read * _ROUNDING:
            yield f"{len(rows)} of {num_read} rows are of {name}, whose share is {share:.4f}"
            continue
        first, second = rows[epochs == 1], rows[epochs == 2]
        is_same = len(first) == len(second) == num_rows and bool((first == second).all())
        is_wrong = is_same and is_permuted and num_rows >= _FEW_ROWS
        yield f"{name} has one order in two epochs" if is_wrong else AS_STORED


def _stored_sources(snapshot: Snapshot) -> dict[str, _Stored]:
    weights = {entry["name"]: float(entry["weight"]) for entry in snapshot.content["sources"]}
    sizes = {name: num_stored_rows(snapshot, name) for name in sorted(weights)}
    total = sum(weights[name] * size for name, size in sizes.items())
    return {name: _Stored(size, weights[name] * size / total) for name, size in sizes.items() if size}
