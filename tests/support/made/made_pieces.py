"""Pieces for infilling, given one by one or drawn."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from trainer.data.infilling_spans import InfillingPieces


class Infillable(NamedTuple):
    """A piece of N text tokens. `chunk_starts` count from the first text token, ascending."""

    identity: int
    num_tokens: int
    chunk_starts: npt.NDArray[Any]


def pieces_of(identities: Sequence[int], num_tokens: Sequence[int], chunk_starts: Sequence[Any]) -> InfillingPieces:
    """Build pieces that are given one by one."""
    counts_P = np.array([len(starts) for starts in chunk_starts], dtype=np.int64)
    flat = (
        np.concatenate([np.asarray(starts, dtype=np.int64) for starts in chunk_starts]) if len(counts_P) else counts_P
    )
    return InfillingPieces(
        np.array(identities, dtype=np.uint64),
        np.array(num_tokens, dtype=np.int64),
        np.cumsum(counts_P) - counts_P,
        counts_P,
        flat,
    )


@st.composite
def pieces(draw: st.DrawFn, max_tokens: int = 12) -> Infillable:
    num_tokens = draw(st.integers(0, max_tokens))
    starts = draw(st.sets(st.integers(0, max(0, num_tokens - 1))))
    return Infillable(draw(st.integers(0, 2**64 - 1)), num_tokens, np.array(sorted(starts), dtype=np.int64))


def total(piece: Infillable) -> int:
    """Return how many middles a piece has: every span of its tokens but the whole one."""
    return max(0, piece.num_tokens * (piece.num_tokens + 1) // 2 - 1)
