"""Infilling: a piece becomes prefix, suffix and middle, so that a model learns to complete a gap.

Fill-in-the-middle of arXiv 2207.14255, decided when a row is read, as a pure function of the seed, the piece's identity
and the epoch.

    plain  BOS text EOS
    PSM    BOS PRE prefix SUF suffix MID middle EOS
    SPM    BOS PRE SUF suffix MID prefix middle EOS      the joint form of Megatron-LM and StarCoder

EOS is kept if the piece had it. The three sentinels take slots that packing left free. Nothing is masked: the model also
learns to write sentinels. A middle begins and ends at chunk bounds, or is a random span. Over the epochs a piece walks
through a keyed permutation of all its splits, never the same twice, and stays plain once none is left.
"""

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trainer.config.training_config import InfillingParams
from trainer.data.infilling_spans import InfillingPieces, split
from trainer.data.keyed_hash import Integers, Words, keyed, mix

_DRAW = 1
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFF_FFFF)
_EPOCHS_AT_ONCE = 1024
_PREFIX, _MIDDLE, _SUFFIX = -1, -2, -3


class Form(StrEnum):
    """The order of the three parts of an infilled piece."""

    PSM = "psm"
    SPM = "spm"


class Sentinels(NamedTuple):
    """Ids of the special tokens that infilling writes, and of EOS."""

    prefix: int
    middle: int
    suffix: int
    eos: int


class Infilling(NamedTuple):
    """Decision for one piece: text tokens `start` to `end` are the middle."""

    form: Form
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.form}:{self.start}-{self.end}"


def infill(
    pieces: InfillingPieces, epochs_P: Integers, seed: int, params: InfillingParams
) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Return first and end text token of the middle of P pieces, -1 where a piece stays plain, and whether the form is SPM.

    Each piece is in an epoch of its own, counted from 1.
    """
    numbers_P, are_spm_P = _draw(pieces.identities_P, epochs_P, seed, params)
    starts_P, ends_P = (np.full(len(numbers_P), -1, dtype=np.int64) for _ in range(2))
    chosen = np.flatnonzero(numbers_P >= 0)
    if len(chosen):
        starts_P[chosen], ends_P[chosen] = split(pieces.at(chosen), numbers_P[chosen], seed, params.chunk_rate)
    return starts_P, ends_P, are_spm_P


def source_slots(infilling: Infilling, num_slots: int, has_eos: bool) -> npt.NDArray[np.int64]:
    """Return for each slot of the infilled piece the slot of the plain piece that it shows; sentinels are negative.

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
    """Return the ids of the infilled piece."""
    # Negative slots index the three values appended here from the end: -1 prefix, -2 middle, -3 suffix.
    return np.append(ids, np.array([sentinels.suffix, sentinels.middle, sentinels.prefix], dtype=ids.dtype))[slots]


def _draw(
    identities_P: Words, epochs_P: Integers, seed: int, params: InfillingParams
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return for each piece the number of its infilling, counted from 0 or -1 if plain, and whether its form is SPM.

    The draws of all epochs so far are made together: they say how many splits were used.
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
    return np.where(infilled_P, num_used_P, -1), spm_P
