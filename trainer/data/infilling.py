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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trainer.config.training import InfillingParams
from trainer.data.infilling_spans import Pieces, Spans, pieces_of, split
from trainer.data.keyed_hash import Words, keyed, mix

_DRAW = 1
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFF_FFFF)
_EPOCHS_AT_ONCE = 1024
_PREFIX, _MIDDLE, _SUFFIX = -1, -2, -3


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
    """For each of P pieces the number of the infilling that it gets, counted from 0, or -1, and whether as SPM."""

    numbers_P: npt.NDArray[np.int64]
    are_spm_P: npt.NDArray[np.bool_]


def decide(piece: Infillable, epoch: int, seed: int, params: InfillingParams) -> Infilling | None:
    """What becomes of a piece in an epoch, counted from 1; None: it stays plain."""
    return decide_all([piece], epoch, seed, params)[0]


def decide_all(pieces: Sequence[Infillable], epoch: int, seed: int, params: InfillingParams) -> list[Infilling | None]:
    """`decide` for several pieces in one epoch."""
    flat = pieces_of(*([getattr(piece, name) for piece in pieces] for name in Infillable._fields))
    drawn = draw(flat.identities_P, np.full(len(pieces), epoch), seed, params)
    spans = infill(flat, drawn, seed, params)
    return [
        Infilling(Form.SPM if is_spm else Form.PSM, int(start), int(end)) if start >= 0 else None
        for start, end, is_spm in zip(*spans, drawn.are_spm_P, strict=True)
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
    return Drawn(np.where(infilled_P, num_used_P, -1), spm_P)


def infill(pieces: Pieces, drawn: Drawn, seed: int, params: InfillingParams) -> Spans:
    """The middles of the pieces that were drawn; -1 for one that stays plain, or that has no split left."""
    starts_P, ends_P = (np.full(len(drawn.numbers_P), -1, dtype=np.int64) for _ in range(2))
    chosen = np.flatnonzero(drawn.numbers_P >= 0)
    if len(chosen):
        starts_P[chosen], ends_P[chosen] = split(pieces.at(chosen), drawn.numbers_P[chosen], seed, params.chunk_rate)
    return Spans(starts_P, ends_P)


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
