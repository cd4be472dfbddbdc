"""Contained pairs: a document whose shingles are nearly all in a larger one, found by sampled shingles and decided by all.

Shingles are those of a document's body, without include directives: unrelated files share these, and amalgamations drop them.
A quarter of all hashes is sampled, the same quarter in every document, so that a shingle that two documents share is in both
samples or in neither. The first 64 samples of a document are its probes. A document that holds most probes of a smaller one is
compared with it exactly. Shingles of more documents than `max_num_sharing` are boilerplate: they are no probes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.stages.normalize.duplicates.duplicates import Announce, ComparedDocument, ShinglesOf
from pipeline.stages.normalize.duplicates.spill import Regroup
from pipeline.stages.normalize.params import DuplicateParams

NUM_PROBES = 64
MIN_NUM_PROBES = 4
"""A document with fewer shingles of its own among its samples is in no pair: nothing shows that what it shares is a copy."""
_SAMPLED_BITS = np.uint64(2)
_DROPPED_BITS = np.uint64(30)
_MOST_IS_OWN = 1.5
"""A document of which two thirds or more are its own is judged by all its shingles."""
_MAX_NUM_MEETINGS = 4_000_000


def sampled_shingles(shingles: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the sample of a sorted set of shingles, ascending: of each whose hash begins with two zeros the next 32 bits."""
    num_sampled = np.searchsorted(shingles, np.uint64(1) << (np.uint64(64) - _SAMPLED_BITS))
    values: NDArray[np.uint32] = (shingles[:num_sampled] >> _DROPPED_BITS).astype(np.uint32)
    return values[np.concatenate(([True], values[1:] != values[:-1]))] if len(values) else values


@dataclass(frozen=True)
class Samples:
    """The sampled shingles of documents, one after the other: those of row r are `values[starts[r] : starts[r + 1]]`.

    `sizes` are the numbers of all shingles of each row's body.
    """

    values: NDArray[np.uint32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def of_rows(self, rows: NDArray[np.int64]) -> "Samples":
        """Return those of some rows, in their order."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[rows], lengths)
        return Samples(self.values[places], starts, self.sizes[rows])


@dataclass(frozen=True)
class ContainedPair:
    """Two ranks, the share of the part's shingles that the container has, and the numbers of shingles of both."""

    part: int
    container: int
    containment: float
    part_size: int
    container_size: int


def find_contained_pairs(
    ranked: Sequence[ComparedDocument],
    samples: Samples,
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    announce: Announce,
) -> list[ContainedPair]:
    """Return the pairs of documents of which one is contained in the other, sorted. Of equal sizes the preferred contains."""
    sizes = {rank: int(samples.sizes[entry.row]) for rank, entry in enumerate(ranked) if entry.row is not None}
    # Ascending, so that a later place is that of a possible container.
    compared = sorted(sizes, key=lambda rank: (sizes[rank], -rank))
    rows = np.array([ranked[rank].row for rank in compared], np.int64)
    chosen = samples.of_rows(rows)
    owners = np.repeat(np.arange(len(compared), dtype=np.int32), np.diff(chosen.starts))
    stretches = [SampleStretch(chosen.values, owners, params.max_num_sharing)]
    candidates = candidate_pairs(lambda: stretches, chosen.sizes, params)
    met = [(compared[part], compared[container]) for part, container in candidates]
    return compare_candidates(ranked, met, sizes, shingles_of, params, announce)


def compare_candidates(
    ranked: Sequence[ComparedDocument],
    met: Sequence[tuple[int, int]],
    sizes: Mapping[int, int],
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    announce: Announce = lambda ids: None,
) -> list[ContainedPair]:
    """Return those of the pairs of ranks, the part first, of which all shingles say that one is contained, sorted."""
    announce({ranked[rank].document_id for pair in met for rank in pair})
    found = []
    for part, container in sorted(met, key=lambda pair: (pair[1], pair[0])):
        smaller, larger = (shingles_of(ranked[rank].document_id) for rank in (part, container))
        share = len(shared_places(smaller, larger)) / len(smaller)
        are_siblings = ranked[part].is_sibling(ranked[container])
        if share >= params.containment_limit(are_siblings, sizes[container] / sizes[part]):
            found.append(ContainedPair(part, container, share, sizes[part], sizes[container]))
    return sorted(found, key=lambda pair: (pair.part, pair.container))


def covered_share(shingles: NDArray[np.uint64], others: Sequence[NDArray[np.uint64]]) -> float:
    """Return the share of a set of shingles that the union of other sets has; 0 of an empty set."""
    is_covered = np.zeros(len(shingles), np.bool_)
    for other in others:
        is_covered[shared_places(other, shingles)] = True
    return int(np.count_nonzero(is_covered)) / len(shingles) if len(shingles) else 0.0


def shared_places(part: NDArray[np.uint64], whole: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return where in a sorted set the members of another are that it has. This takes the time of the part, not of the whole."""
    if len(whole) < len(part):
        return np.flatnonzero(np.isin(whole, part, assume_unique=True))
    places: NDArray[np.int64] = np.searchsorted(whole, part)
    places = np.minimum(places, len(whole) - 1)
    is_shared: NDArray[np.bool_] = whole[places] == part
    return places[is_shared]


class SampleStretch:
    """The samples of all documents with values in one interval: `owners` ascend, and the values of each.

    Documents are called by their places in the order of their sizes.
    """

    def __init__(self, values: NDArray[np.uint32], owners: NDArray[np.integer[Any]], max_num_sharing: int) -> None:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        self.owners = owners
        self._holders = owners[order]
        self._first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else order
        self._num_holding = np.diff(np.append(self._first, len(ordered))).astype(np.int32)
        self._group_of = np.empty(len(order), np.int32)
        self._group_of[order] = np.repeat(np.arange(len(self._first), dtype=np.int32), self._num_holding)
        self.is_own = self._num_holding[self._group_of] <= max_num_sharing

    def probes(self, num_before: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the places of the first samples of each document that are no boilerplate, after so many in stretches before."""
        places = np.flatnonzero(self.is_own)
        owners = self.owners[places]
        is_first = np.concatenate(([True], owners[1:] != owners[:-1]))[: len(owners)]
        starts = np.maximum.accumulate(np.where(is_first, np.arange(len(owners)), 0))
        found: NDArray[np.int64] = places[np.arange(len(places)) - starts + num_before[owners] < NUM_PROBES]
        return found

    def meetings(self, probes: NDArray[np.int64], num_rows: int) -> Iterator[NDArray[np.int64]]:
        """Yield who meets at some probes, a larger document and the one whose probe it is: `part * num_rows + container`.

        All meetings of a part in the stretch are in one array.
        """
        # Of what no other document has there is nothing to meet.
        probes = probes[self._num_holding[self._group_of[probes]] > 1]
        for chunk in _chunks(self.owners[probes], self._num_holding[self._group_of[probes]]):
            groups = self._group_of[probes[chunk]]
            sizes = self._num_holding[groups]
            ends = np.cumsum(sizes)
            places = np.arange(ends[-1]) + np.repeat(self._first[groups] - (ends - sizes), sizes)
            parts = np.repeat(self.owners[probes[chunk]], sizes).astype(np.int64)
            containers = self._holders[places]
            is_later = containers > parts
            yield parts[is_later] * num_rows + containers[is_later]


def candidate_pairs(
    stretches: Callable[[], Iterable[SampleStretch]],
    sizes: NDArray[np.integer[Any]],
    params: DuplicateParams,
    regroup: Regroup = lambda meetings: meetings,
) -> Iterator[tuple[int, int]]:
    """Yield pairs of documents, the smaller first, of which the larger holds most probes of the smaller.

    `stretches` are asked for twice, and ascend. Of more than one `regroup` brings the meetings of a part together.
    """
    num_rows = len(sizes)
    num_probes, num_own, num_samples = (np.zeros(num_rows, np.int32) for _ in range(3))
    for stretch in stretches():
        _count(num_probes, stretch.owners[stretch.probes(num_probes)])
        _count(num_own, stretch.owners[stretch.is_own])
        _count(num_samples, stretch.owners)
    is_compared = (num_probes >= MIN_NUM_PROBES) & (sizes >= params.min_num_contained)

    def meetings() -> Iterator[NDArray[np.int64]]:
        num_before = np.zeros(num_rows, np.int32)
        for stretch in stretches():
            probes = stretch.probes(num_before)
            _count(num_before, stretch.owners[probes])
            yield from stretch.meetings(probes[is_compared[stretch.owners[probes]]], num_rows)

    for found in regroup(meetings()):
        pairs, counts = np.unique(found, return_counts=True)
        parts = pairs // num_rows
        shares = num_own[parts] / np.maximum(num_samples[parts], 1)
        for pair in pairs[counts >= _least_shared(params.min_containment, num_probes[parts], shares)].tolist():
            yield divmod(pair, num_rows)


def _count(numbers: NDArray[np.int32], owners: NDArray[np.integer[Any]]) -> None:
    """Add to the number of each document how often it occurs among ascending owners."""
    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))[: len(owners)]
    numbers[owners[starts]] += np.diff(np.append(starts, len(owners)))


def _least_shared(
    min_containment: float, num_probes: NDArray[np.int32], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how many probes a container shares at least: 2.5 standard deviations of a sample at 0.8 below the limit.

    `shares` says how much of a document is its own: the less, the less chance is allowed for, as the exact share judges less of it.
    """
    allowed = np.minimum(_MOST_IS_OWN * shares, 1)
    wanted: NDArray[np.float64] = np.maximum(min_containment * num_probes - allowed * np.sqrt(num_probes), 1)
    return wanted


def _chunks(owners: NDArray[np.integer[Any]], lengths: NDArray[np.integer[Any]]) -> Iterator[slice]:
    """Yield slices of the probes that hold whole documents and about as many meetings as fit in memory at once."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(owners):
        done = int(ends[start - 1]) if start else 0
        last = int(np.searchsorted(ends, done + _MAX_NUM_MEETINGS))
        owner = owners[min(last, len(owners) - 1)]
        stop = int(np.searchsorted(owners, owner, side="right"))
        yield slice(start, stop)
        start = stop
