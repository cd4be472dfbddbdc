"""Splits of pieces for infilling, and the walk through all of them: for many pieces at once, in integers.

A middle is a run of whole chunks or any other span except the whole piece. Pieces of many rows are split together, because
a hundred small array operations cost the same for one piece as for a thousand.

Shapes: P pieces, C chunk starts of all of them.
"""

from typing import NamedTuple

import numpy as np

from trainer.data.keyed_hash import Integers, Words, keyed, mix

_PHASE, _CHUNKS, _SPANS = range(2, 5)
_PER_MILLE = 1000
_HIGH, _LOW = np.uint64(32), np.uint64(0xFFFF_FFFF)


class InfillingPieces(NamedTuple):
    """P pieces to be infilled.

    Piece `p` has `num_tokens_P[p]` text tokens and `num_chunks_P[p]` of `chunk_starts_C`, from index `first_chunks_P[p]`:
    ascending, counted from its first text token.
    """

    identities_P: Words
    num_tokens_P: Integers
    first_chunks_P: Integers
    num_chunks_P: Integers
    chunk_starts_C: Integers

    def at(self, places: Integers) -> "InfillingPieces":
        """Return some of the pieces."""
        return InfillingPieces(*(column[places] for column in self[:4]), self.chunk_starts_C)


def split(pieces: InfillingPieces, numbers_P: Integers, seed: int, chunk_rate: float) -> tuple[Integers, Integers]:
    """Return first and end token of the middle in each piece's `numbers_P`-th infilling, counted from 0; -1 if none is left.

    No two infillings of a piece are equal. Of the first k, floor(k q + phase) are random spans (q is one minus `chunk_rate`,
    the phase a keyed constant), until the splits of one kind are used up; the rest are of the other kind.
    """
    starts_P, ends_P = np.full_like(numbers_P, -1), np.full_like(numbers_P, -1)
    bounds_P = _num_bounds(pieces)
    left = np.flatnonzero(numbers_P < sum(_counts(bounds_P, pieces.num_tokens_P)))
    if len(left):
        starts_P[left], ends_P[left] = _walk(pieces.at(left), bounds_P[left], numbers_P[left], seed, chunk_rate)
    return starts_P, ends_P


def _walk(
    pieces: InfillingPieces, bounds_P: Integers, numbers_P: Integers, seed: int, chunk_rate: float
) -> tuple[Integers, Integers]:
    at_chunks_P, spans_P = _counts(bounds_P, pieces.num_tokens_P)
    phases_P = (mix(pieces.identities_P ^ np.uint64(keyed(seed, _PHASE))) % np.uint64(_PER_MILLE)).astype(np.int64)
    per_mille = round((1 - chunk_rate) * _PER_MILLE)

    def num_free(counts_P: Integers) -> Integers:
        """Return how many of the first `counts_P` infillings are random spans. Rises by 0 or 1."""
        wanted_P = (counts_P * per_mille + phases_P) // _PER_MILLE
        found_P: Integers = np.minimum(np.maximum(wanted_P, counts_P - at_chunks_P), spans_P)
        return found_P

    before_P = num_free(numbers_P)
    is_free_P = num_free(numbers_P + 1) > before_P
    keys_P = mix(
        pieces.identities_P ^ np.where(is_free_P, *(np.uint64(keyed(seed, kind)) for kind in (_SPANS, _CHUNKS)))
    )
    indices_P = np.where(is_free_P, before_P, numbers_P - before_P)
    ranks_P = _permuted(indices_P, np.where(is_free_P, spans_P, at_chunks_P), keys_P)
    # Ranks of free spans mean nothing here and are overwritten.
    first_P, last_P = _pair(np.where(is_free_P, 0, ranks_P), np.maximum(bounds_P, 3))
    starts_P, ends_P = (_bound(pieces, places_P, bounds_P) for places_P in (first_P, last_P))
    free = np.flatnonzero(is_free_P)
    if len(free):
        starts_P[free], ends_P[free] = _free_span(pieces.at(free), bounds_P[free], ranks_P[free])
    return starts_P, ends_P


def _counts(bounds_P: Integers, num_tokens_P: Integers) -> tuple[Integers, Integers]:
    """Return how many splits each piece has: middles of whole chunks, and other spans. The whole piece is not a middle."""
    at_chunks_P = np.maximum(0, bounds_P * (bounds_P - 1) // 2 - 1)
    return at_chunks_P, np.maximum(0, num_tokens_P * (num_tokens_P + 1) // 2 - 1) - at_chunks_P


def _num_bounds(pieces: InfillingPieces) -> Integers:
    """Count the bounds at which a middle of whole chunks can begin or end: chunk starts, and both ends of the piece."""
    chunks_P, tokens_P = pieces.num_chunks_P, pieces.num_tokens_P
    has_none_P = chunks_P == 0
    first_P, last_P = _edges(pieces)
    bounds_P = np.where(has_none_P, 2, chunks_P + (first_P != 0) + (last_P != tokens_P))
    return np.where(tokens_P == 0, 1, bounds_P)


def _edges(pieces: InfillingPieces) -> tuple[Integers, Integers]:
    """Return the first and the last chunk start of each piece; anything for a piece without chunks."""
    if not len(pieces.chunk_starts_C):
        return np.zeros_like(pieces.num_tokens_P), np.zeros_like(pieces.num_tokens_P)
    last_P = pieces.first_chunks_P + pieces.num_chunks_P - 1
    chosen = (np.clip(place_P, 0, len(pieces.chunk_starts_C) - 1) for place_P in (pieces.first_chunks_P, last_P))
    first, last = (pieces.chunk_starts_C[place_P] for place_P in chosen)
    return first, last


def _bound(pieces: InfillingPieces, places_P: Integers, bounds_P: Integers) -> Integers:
    """Return the bound at a place of each piece, ascending from 0 to the piece's end."""
    is_inner_P = (places_P > 0) & (places_P < bounds_P - 1)
    result_P = np.where(places_P == 0, 0, pieces.num_tokens_P)
    inner = np.flatnonzero(is_inner_P)
    if len(inner):
        some = pieces.at(inner)
        chunk = places_P[inner] - (some.chunk_starts_C[some.first_chunks_P] != 0)
        result_P[inner] = some.chunk_starts_C[some.first_chunks_P + chunk]
    return result_P


def _permuted(indices_P: Integers, sizes_P: Integers, keys_P: Words) -> Integers:
    """Apply a keyed permutation of each range(size): index * step + shift, where step and size have no common divisor."""
    sizes: Words = sizes_P.astype(np.uint64)
    steps: Words = np.uint64(1) + (keys_P >> _HIGH) % sizes
    shared = np.flatnonzero(np.gcd(steps, sizes) != 1)
    while len(shared):
        steps[shared] += np.uint64(1)
        shared = shared[np.gcd(steps[shared], sizes[shared]) != 1]
    return ((indices_P.astype(np.uint64) * steps + (keys_P & _LOW)) % sizes).astype(np.int64)


def _pair(ranks_P: Integers, bounds_P: Integers) -> tuple[Integers, Integers]:
    """Return pair `rank` of indices i < j below `bounds_P`, in lexicographic order without (0, last)."""
    ranks_P = ranks_P + (ranks_P >= bounds_P - 2)
    return _triangle(bounds_P * (bounds_P - 1) // 2 - 1 - ranks_P, bounds_P)


def _triangle(left_P: Integers, bounds_P: Integers) -> tuple[Integers, Integers]:
    """Return the pair of indices i < j below `bounds_P` that `left_P` others follow in lexicographic order."""
    # Exact: a row has at most 2^16 slots, so that the argument stays far below 2^52.
    rows_P = (np.sqrt(8 * left_P + 1).astype(np.int64) - 1) // 2
    return bounds_P - 2 - rows_P, bounds_P - 1 - (left_P - rows_P * (rows_P + 1) // 2)


def _free_span(pieces: InfillingPieces, bounds_P: Integers, ranks_P: Integers) -> tuple[Integers, Integers]:
    """Return span `rank` of each piece among those that do not begin and end at a bound, in lexicographic order.

    b N - b (b - 1) / 2 spans, less those of earlier bounds, precede a bound at token b. That finds the last bound whose
    spans begin at or before the rank; the start is that bound, or a later token that is not a bound.
    """
    offsets_P = np.cumsum(bounds_P) - bounds_P
    piece_of = np.repeat(np.arange(len(bounds_P)), bounds_P)
    index = np.arange(len(piece_of)) - offsets_P[piece_of]
    many = pieces.at(piece_of)
    bound = _bound(many, index, bounds_P[piece_of])
    taken = bounds_P[piece_of] - 1 - index
    taken_before = index * (2 * bounds_P[piece_of] - index - 1) // 2
    before = bound * many.num_tokens_P - bound * (bound - 1) // 2 - taken_before
    nearest_P = offsets_P + np.add.reduceat(before <= ranks_P[piece_of], offsets_P) - 1
    rest_P = ranks_P - before[nearest_P]
    starts_P, tokens_P = bound[nearest_P], pieces.num_tokens_P
    num_here_P = tokens_P - starts_P - taken[nearest_P]
    # From a bound every end is free but the later bounds; `gap` counts the free ends before each of those.
    gap = bound - index - (starts_P - index[nearest_P])[piece_of]
    is_passed = (index > index[nearest_P][piece_of]) & (gap <= rest_P[piece_of])
    ends_P = starts_P + 1 + rest_P + np.add.reduceat(is_passed, offsets_P)
    first_P = starts_P + 1
    left_P = (tokens_P - first_P) * (tokens_P - first_P + 1) // 2 - 1 - (rest_P - num_here_P)
    later_P, later_ends_P = _triangle(np.maximum(left_P, 0), tokens_P + 1)
    is_here_P = rest_P < num_here_P
    return np.where(is_here_P, starts_P, later_P), np.where(is_here_P, ends_P, later_ends_P)
