"""Which documents are copies of others, over all sources: equal texts and near-duplicates.

Candidates share one of 32 bands of 8 signature rows; the exact Jaccard similarity with the keeper decides, so
clusters do not chain. Documents are taken in order of preference: each that is not lost yet keeps its place, and
those like it behind it lose theirs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from pipeline.normalize.licenses import vendored_root
from pipeline.normalize.params import DuplicateParams
from pipeline.normalize.shingles import NUM_PERMUTATIONS, jaccard
from pipeline.records import DuplicateRecord, Split, UInt32

NUM_BANDS = 32
"""32 x 8 finds every pair of Jaccard 0.8 and more, and 95 % of those between 0.7 and 0.8 (measured on 29,127 files)."""

ShinglesOf = Callable[[str], NDArray[np.uint64]]
"""Document id -> its shingles."""


class Reason(StrEnum):
    """Why a document lost to another."""

    EXACT_DUPLICATE = "exact_duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    COPYLEFT_TWIN = "copyleft_twin"


@dataclass(frozen=True, slots=True)
class Signature:
    """A document as duplicates are found by.

    `signature` is empty for texts below the token floor. `is_inherited` is of its licence.
    """

    document_id: str
    source: str
    path: str
    split: str
    num_bytes: int
    text_sha256: str
    is_inherited: bool
    num_tokens: UInt32
    num_shingles: UInt32
    signature: tuple[UInt32, ...]


@dataclass(frozen=True)
class Entry:
    """A Signature without its 256 values, which stay in one array.

    `row` is its row there, None below the token floor.
    """

    document_id: str
    source: str
    path: str
    split: str
    num_bytes: int
    text_sha256: str
    is_inherited: bool
    num_shingles: int
    row: int | None


@dataclass(frozen=True)
class _Loss:
    keeper: int
    jaccard: float
    reason: Reason


def find_duplicates(
    entries: Sequence[Entry],
    signatures: NDArray[np.uint32],
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    vendored: Collection[str],
) -> list[DuplicateRecord]:
    """The documents that lose, sorted by source and path. `signatures` has shape (rows, 256).

    Preferred are training documents over held-out ones, then what lies below no vendored root, then the smallest
    (source, path).
    """
    ranked = sorted(entries, key=lambda entry: _preference(entry, vendored))
    losses = _lose_equal_texts(ranked)
    for keeper, loser, similarity in _similar(ranked, signatures, shingles_of, params, losses):
        losses[loser] = _Loss(keeper, similarity, Reason.NEAR_DUPLICATE)
    found = [_record(ranked[loser], ranked[loss.keeper], loss) for loser, loss in _with_kept_keepers(losses).items()]
    return sorted(found, key=lambda record: (record.source, record.path))


def candidate_pairs(signatures: NDArray[np.uint32]) -> list[tuple[int, int]]:
    """Pairs of rows, smaller first and sorted, that agree in all eight values of at least one band."""
    num_rows_in_band = NUM_PERMUTATIONS // NUM_BANDS
    pairs: set[tuple[int, int]] = set()
    for band in range(NUM_BANDS):
        values = np.ascontiguousarray(signatures[:, band * num_rows_in_band : (band + 1) * num_rows_in_band])
        keys = values.view(np.dtype((np.void, values.itemsize * num_rows_in_band))).ravel()
        order = np.argsort(keys, kind="stable")
        edges = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
        for bucket in np.split(order, edges):
            if len(bucket) > 1:
                rows = bucket.tolist()
                pairs.update((first, second) for index, first in enumerate(rows) for second in rows[index + 1 :])
    return sorted(pairs)


def _preference(entry: Entry, vendored: Collection[str]) -> tuple[bool, bool, str, str]:
    return (entry.split == Split.HELD_OUT, vendored_root(entry.path, vendored) is not None, entry.source, entry.path)


def _lose_equal_texts(ranked: Sequence[Entry]) -> dict[int, _Loss]:
    first: dict[str, int] = {}
    losses = {}
    for rank, entry in enumerate(ranked):
        keeper = first.setdefault(entry.text_sha256, rank)
        if keeper != rank:
            losses[rank] = _Loss(keeper, 1.0, Reason.EXACT_DUPLICATE)
    return losses


def _similar(
    ranked: Sequence[Entry],
    signatures: NDArray[np.uint32],
    shingles_of: ShinglesOf,
    params: DuplicateParams,
    lost: Mapping[int, _Loss],
) -> Iterator[tuple[int, int, float]]:
    """Keeper, loser and similarity. The caller enters each loser into `lost` before it asks for the next."""
    compared = [rank for rank, entry in enumerate(ranked) if entry.row is not None and rank not in lost]
    rows = [ranked[rank].row for rank in compared]
    for first, second in candidate_pairs(signatures[np.array(rows, np.int64)]):
        keeper, other = compared[first], compared[second]
        if keeper in lost or other in lost:
            continue
        limit = _limit(ranked[keeper], ranked[other], params)
        sizes = sorted((ranked[keeper].num_shingles, ranked[other].num_shingles))
        if sizes[0] < limit * sizes[1]:  # no similarity exceeds the ratio of the sizes
            continue
        similarity = jaccard(shingles_of(ranked[keeper].document_id), shingles_of(ranked[other].document_id))
        if similarity >= limit:
            yield keeper, other, similarity


def _limit(first: Entry, second: Entry, params: DuplicateParams) -> float:
    return params.min_jaccard_inside_source if first.source == second.source else params.min_jaccard_between_sources


def _with_kept_keepers(losses: Mapping[int, _Loss]) -> dict[int, _Loss]:
    """The same losses, with keepers that are kept.

    A copy of a text that lost has lost to the same document, by the same similarity.
    """
    resolved = {}
    for loser, loss in losses.items():
        further = losses.get(loss.keeper)
        resolved[loser] = further or loss
    return resolved


def _record(loser: Entry, keeper: Entry, loss: _Loss) -> DuplicateRecord:
    return DuplicateRecord(
        loser.document_id,
        loser.source,
        loser.path,
        loser.num_bytes,
        keeper.document_id,
        keeper.source,
        keeper.path,
        loss.jaccard,
        loss.reason,
        keeper.document_id,
    )
