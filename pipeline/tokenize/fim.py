"""Infilling: a piece becomes prefix, suffix and middle, so that a model learns to write what stands between.

Fill-in-the-middle of arXiv 2207.14255, decided when a row is read, as a pure function of the seed, the piece's identity
and the epoch.

    plain  BOS text EOS
    PSM    BOS PRE prefix SUF suffix MID middle EOS
    SPM    BOS PRE SUF suffix MID prefix middle EOS      the joint form of Megatron-LM and StarCoder

EOS stands only where the piece had it. The three sentinels take slots that packing kept free. Nothing is masked: the
model also learns to write sentinels. A middle begins and ends where a chunk does, or is a random span. Over the epochs
a piece walks through a keyed permutation of all its splits, never the same twice, and stays plain once none is left.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from math import gcd, isqrt
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.params import Params

Words = npt.NDArray[np.uint64]
Word = TypeVar("Word", int, Words)

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_DRAW, _PHASE, _CHUNKS, _SPANS = range(1, 5)
_PER_MILLE = 1000
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFF_FFFF)
_EPOCHS_AT_ONCE = 1024
_PREFIX, _MIDDLE, _SUFFIX = -1, -2, -3


class InfillingParams(Params):
    """How often and where pieces are infilled."""

    rate: float = Field(default=0.5, ge=0, le=1)
    """Share of pieces that are infilled in an epoch."""
    spm_rate: float = Field(default=0.5, ge=0, le=1)
    """Share of infilled pieces that show the suffix first."""
    chunk_rate: float = Field(default=0.9, ge=0, le=1)
    """Share of infilled pieces whose middle is a run of whole chunks; the others have a random span. In thousandths."""


class Form(StrEnum):
    """The order of the three parts of an infilled piece."""

    PSM = "psm"
    SPM = "spm"


class Sentinels(NamedTuple):
    """The ids of the special tokens that infilling writes or must know."""

    prefix: int
    middle: int
    suffix: int
    eos: int


class Infillable(NamedTuple):
    """What infilling knows of a piece of N text tokens. `chunk_starts` count from the first text token, ascending."""

    identity: int
    num_tokens: int
    chunk_starts: npt.NDArray[Any]


class Infilling(NamedTuple):
    """A decision: text tokens `start` to `end` are the middle."""

    form: Form
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.form}:{self.start}-{self.end}"


class Drawn(NamedTuple):
    """For each piece the number of the infilling that it gets, counted from 0, or -1, and whether as SPM."""

    numbers: list[int]
    are_spm: list[bool]


def mix(word: Word) -> Word:
    """SplitMix64's finalising permutation of 64-bit words (Steele, Lea, Flood 2014), on an int or on an array of
    uint64.
    """
    value: Any = word
    value = (value + 0x9E37_79B9_7F4A_7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    mixed: Word = value ^ (value >> 31)
    return mixed


def keyed(*words: int) -> int:
    """One 64-bit key out of several words, in their order."""
    return mix(_key_of(words[:-1]) ^ (words[-1] & _MASK)) if words else 0


@lru_cache(maxsize=4096)
def _key_of(words: tuple[int, ...]) -> int:
    """The key of the words before the last: of a seed and a purpose, and so the same for all pieces."""
    return keyed(*words)


def decide(piece: Infillable, epoch: int, seed: int, params: InfillingParams) -> Infilling | None:
    """What becomes of a piece in an epoch, counted from 1; None: it stays plain."""
    return decide_all([piece], epoch, seed, params)[0]


def decide_all(pieces: Sequence[Infillable], epoch: int, seed: int, params: InfillingParams) -> list[Infilling | None]:
    """`decide` for several pieces in one epoch."""
    drawn = draw(np.array([piece.identity for piece in pieces], np.uint64), np.full(len(pieces), epoch), seed, params)
    return [
        infill(piece, number, is_spm, seed, params) if number >= 0 else None
        for piece, number, is_spm in zip(pieces, drawn.numbers, drawn.are_spm, strict=True)
    ]


def draw(identities_P: Words, epochs_P: npt.NDArray[np.int64], seed: int, params: InfillingParams) -> Drawn:
    """Which of P pieces are infilled, each in an epoch of its own.

    The draws of all epochs so far are made at once: they say how many splits were used.
    """
    words_P1: Words = mix(identities_P ^ np.uint64(keyed(seed, _DRAW)))[:, None]
    limit = int(params.rate * 2**32)
    draws_P: Words = mix(words_P1[:, 0] ^ epochs_P.astype(np.uint64))
    infilled_P = (draws_P >> _HALF) < limit
    spm_P = (draws_P & _LOW_HALF) < int(params.spm_rate * 2**32)
    num_used_P = np.zeros(len(identities_P), dtype=np.int64)
    for first in range(1, int(epochs_P.max(initial=1)), _EPOCHS_AT_ONCE):
        epochs_E = np.arange(first, min(first + _EPOCHS_AT_ONCE, int(epochs_P.max())))
        before_PE = (mix(words_P1 ^ epochs_E.astype(np.uint64)) >> _HALF) < limit
        num_used_P += (before_PE & (epochs_E < epochs_P[:, None])).sum(axis=1)
    return Drawn(np.where(infilled_P, num_used_P, -1).tolist(), spm_P.tolist())


def infill(piece: Infillable, number: int, is_spm: bool, seed: int, params: InfillingParams) -> Infilling | None:
    """The `number`-th infilling of a piece, counted from 0; None where no split is left."""
    middle = split(piece, number, seed, params)
    return None if middle is None else Infilling(Form.SPM if is_spm else Form.PSM, *middle)


def num_splits(piece: Infillable) -> tuple[int, int]:
    """How many splits a piece has: middles of whole chunks, and other spans. The whole piece is not a middle."""
    return _counts(_num_bounds(piece), piece.num_tokens)


def split(piece: Infillable, number: int, seed: int, params: InfillingParams) -> tuple[int, int] | None:
    """The middle of the `number`-th infilling of a piece, counted from 0. All are different; None when they are used
    up.

    Of the first k infillings floor(k q + phase) are random spans (q is one minus `chunk_rate`, the phase a keyed
    constant), until splits of one kind are used up; then the other kind goes on.
    """
    num_bounds = _num_bounds(piece)
    at_chunks, spans = _counts(num_bounds, piece.num_tokens)
    if number >= at_chunks + spans:
        return None
    phase = keyed(seed, _PHASE, piece.identity) % _PER_MILLE
    before, after = (_num_spans(count, phase, (at_chunks, spans), params) for count in (number, number + 1))
    if after > before:
        return _free_span(piece, _permuted(before, spans, keyed(seed, _SPANS, piece.identity)))
    first, last = _pair(_permuted(number - before, at_chunks, keyed(seed, _CHUNKS, piece.identity)), num_bounds)
    return _bound(piece, first, num_bounds), _bound(piece, last, num_bounds)


def source_slots(infilling: Infilling, num_slots: int, has_eos: bool) -> npt.NDArray[np.int64]:
    """For each slot of the infilled piece the slot of the plain piece that it shows; sentinels are negative.

    `num_slots` counts the plain piece with BOS and EOS; the result is three longer.
    """
    plain = np.arange(num_slots)
    begin, end = 1 + infilling.start, 1 + infilling.end
    text_end = num_slots - has_eos
    prefix, middle, suffix = plain[1:begin], plain[begin:end], plain[end:text_end]
    if infilling.form is Form.PSM:
        return np.concatenate(([0, _PREFIX], prefix, [_SUFFIX], suffix, [_MIDDLE], middle, plain[text_end:]))
    return np.concatenate(([0, _PREFIX, _SUFFIX], suffix, [_MIDDLE], prefix, middle, plain[text_end:]))


def remap_ids(ids: npt.NDArray[Any], slots: npt.NDArray[np.int64], sentinels: Sentinels) -> npt.NDArray[Any]:
    """The ids of the infilled piece."""
    # Negative slots index the three values appended here from the end: -1 prefix, -2 middle, -3 suffix.
    return np.append(ids, np.array([sentinels.suffix, sentinels.middle, sentinels.prefix], dtype=ids.dtype))[slots]


def remap_column(values: npt.NDArray[Any], slots: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """A token-aligned column of the infilled piece. Sentinels have the value 0: no structure."""
    return np.append(values, np.zeros(3, dtype=values.dtype))[slots]


def remap_chunks(
    starts: npt.NDArray[Any], ends: npt.NDArray[Any], infilling: Infilling, slots: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Chunks, given as slot ranges of the plain piece, as slot ranges of the infilled piece, ascending.

    One that a cut crosses is dropped.
    """
    place_of = np.empty(len(slots), dtype=np.int64)
    place_of[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    cuts = (1 + infilling.start, 1 + infilling.end)
    whole = ~np.any([(starts < cut) & (cut < ends) for cut in cuts], axis=0)
    new_starts = place_of[starts[whole]]
    order = np.argsort(new_starts)
    return new_starts[order], (new_starts + ends[whole] - starts[whole])[order]


def _counts(num_bounds: int, num_tokens: int) -> tuple[int, int]:
    at_chunks = max(0, num_bounds * (num_bounds - 1) // 2 - 1)
    return at_chunks, max(0, num_tokens * (num_tokens + 1) // 2 - 1) - at_chunks


def _num_spans(count: int, phase: int, available: tuple[int, int], params: InfillingParams) -> int:
    """How many of the first `count` infillings are random spans. Rises by 0 or 1 with `count`."""
    at_chunks, spans = available
    wanted = (count * round((1 - params.chunk_rate) * _PER_MILLE) + phase) // _PER_MILLE
    return min(max(wanted, count - at_chunks), spans)


def _num_bounds(piece: Infillable) -> int:
    """How many places there are where a middle of whole chunks can begin or end: chunk starts, and both ends."""
    starts = piece.chunk_starts
    if piece.num_tokens == 0:
        return 1
    if len(starts) == 0:
        return 2
    return len(starts) + int(starts[0] != 0) + int(starts[-1] != piece.num_tokens)


def _bound(piece: Infillable, place: int, num_bounds: int) -> int:
    """The bound at a place, ascending from 0 to the piece's end."""
    if place == 0:
        return 0
    if place == num_bounds - 1:
        return piece.num_tokens
    return int(piece.chunk_starts[place - (piece.chunk_starts[0] != 0)])


def _bounds(piece: Infillable) -> npt.NDArray[np.int64]:
    """All bounds, ascending."""
    return np.unique(np.concatenate(([0], piece.chunk_starts, [piece.num_tokens]))).astype(np.int64)


def _permuted(index: int, size: int, key: int) -> int:
    """A keyed permutation of `range(size)`: index * step + shift, with a step that has no divisor in common with the
    size.
    """
    step = 1 + (key >> 32) % size
    while gcd(step, size) != 1:
        step += 1
    return (index * step + (key & 0xFFFF_FFFF)) % size


def _pair(rank: int, num_bounds: int) -> tuple[int, int]:
    """Pair `rank` of indices i < j below `num_bounds`, in lexicographic order without (0, last)."""
    rank += rank >= num_bounds - 2
    left = num_bounds * (num_bounds - 1) // 2 - 1 - rank
    row = (isqrt(8 * left + 1) - 1) // 2
    return num_bounds - 2 - row, num_bounds - 1 - (left - row * (row + 1) // 2)


def _free_span(piece: Infillable, rank: int) -> tuple[int, int]:
    """Span `rank` among those that do not begin and end at a bound, in lexicographic order."""
    bounds = _bounds(piece)
    first, last = (bounds[indices] for indices in _upper_triangle(len(bounds)))
    num_places = piece.num_tokens + 1
    taken = first * (2 * num_places - first - 1) // 2 + last - first - 1
    # The spans at chunks but for the whole piece, which `_pair` leaves out itself.
    taken = np.delete(taken, len(bounds) - 2)
    taken -= taken >= num_places - 2
    return _pair(rank + int(np.searchsorted(taken - np.arange(len(taken)), rank, side="right")), num_places)


@lru_cache(maxsize=64)
def _upper_triangle(size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    first, last = np.triu_indices(size, 1)
    return first, last
