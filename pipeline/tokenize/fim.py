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

from dataclasses import dataclass
from enum import StrEnum
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


@dataclass(frozen=True, slots=True)
class Infillable:
    """What infilling knows of a piece of N text tokens. `chunk_starts` count from the first text token."""

    identity: int
    num_tokens: int
    chunk_starts: npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Infilling:
    """A decision: text tokens `start` to `end` are the middle."""

    form: Form
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.form}:{self.start}-{self.end}"


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
    key = 0
    for word in words:
        key = mix(key ^ (word & _MASK))
    return key


def decide(piece: Infillable, epoch: int, seed: int, params: InfillingParams) -> Infilling | None:
    """What becomes of a piece in an epoch, counted from 1; None: it stays plain."""
    return decide_all([piece], epoch, seed, params)[0]


def decide_all(pieces: list[Infillable], epoch: int, seed: int, params: InfillingParams) -> list[Infilling | None]:
    """`decide` for the pieces of a row.

    The draws of all epochs so far are made at once: they say how many splits were used.
    """
    identities_P1: Words = np.array([[piece.identity] for piece in pieces], dtype=np.uint64)
    epochs_E: Words = np.arange(1, epoch + 1, dtype=np.uint64)
    draws_PE: Words = mix(mix(identities_P1 ^ np.uint64(keyed(seed, _DRAW))) ^ epochs_E)
    infilled_PE = (draws_PE >> 32) < int(params.rate * 2**32)
    spm_P = (draws_PE[:, -1] & 0xFFFF_FFFF) < int(params.spm_rate * 2**32)
    num_used_P = infilled_PE[:, :-1].sum(axis=1)
    return [
        _infilling(piece, int(num_used_P[row]), Form.SPM if spm_P[row] else Form.PSM, seed, params)
        if infilled_PE[row, -1]
        else None
        for row, piece in enumerate(pieces)
    ]


def num_splits(piece: Infillable) -> tuple[int, int]:
    """How many splits a piece has: middles of whole chunks, and other spans. The whole piece is not a middle."""
    num_bounds = len(_bounds(piece))
    at_chunks = max(0, num_bounds * (num_bounds - 1) // 2 - 1)
    spans = max(0, piece.num_tokens * (piece.num_tokens + 1) // 2 - 1)
    return at_chunks, spans - at_chunks


def split(piece: Infillable, number: int, seed: int, params: InfillingParams) -> tuple[int, int] | None:
    """The middle of the `number`-th infilling of a piece, counted from 0. All are different; None when they are used
    up.

    Of the first k infillings floor(k q + phase) are random spans (q is one minus `chunk_rate`, the phase a keyed
    constant), until splits of one kind are used up; then the other kind goes on.
    """
    at_chunks, spans = num_splits(piece)
    if number >= at_chunks + spans:
        return None
    phase = keyed(seed, _PHASE, piece.identity) % _PER_MILLE
    before, after = (_num_spans(count, phase, (at_chunks, spans), params) for count in (number, number + 1))
    if after > before:
        return _free_span(piece, _permuted(before, spans, keyed(seed, _SPANS, piece.identity)))
    bounds = _bounds(piece)
    first, last = _pair(_permuted(number - before, at_chunks, keyed(seed, _CHUNKS, piece.identity)), len(bounds))
    return int(bounds[first]), int(bounds[last])


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


def _infilling(piece: Infillable, number: int, form: Form, seed: int, params: InfillingParams) -> Infilling | None:
    middle = split(piece, number, seed, params)
    return None if middle is None else Infilling(form, *middle)


def _num_spans(count: int, phase: int, available: tuple[int, int], params: InfillingParams) -> int:
    """How many of the first `count` infillings are random spans. Rises by 0 or 1 with `count`."""
    at_chunks, spans = available
    wanted = (count * round((1 - params.chunk_rate) * _PER_MILLE) + phase) // _PER_MILLE
    return min(max(wanted, count - at_chunks), spans)


def _bounds(piece: Infillable) -> npt.NDArray[np.int64]:
    """Where a middle of whole chunks can begin or end: chunk starts, and both ends of the piece."""
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
    first, last = (bounds[indices] for indices in np.triu_indices(len(bounds), 1))
    num_places = piece.num_tokens + 1
    taken = first * (2 * num_places - first - 1) // 2 + last - first - 1
    # The spans at chunks but for the whole piece, which `_pair` leaves out itself.
    taken = np.delete(taken, len(bounds) - 2)
    taken -= taken >= num_places - 2
    return _pair(rank + int(np.searchsorted(taken - np.arange(len(taken)), rank, side="right")), num_places)
