"""Structure over byte ranges to structure over tokens. A token belongs to the chunk that owns its first byte.

Merges can run across a chunk's edge; one rule decides, so that every column agrees about such a token.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.tokenize.columns.list_column import ListColumn


def align_values(
    values_C: npt.NDArray[Any], chunk_starts_C: npt.NDArray[Any], token_starts_N: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """For each token the value of its chunk; zero where there is none.

    Starts are ascending byte offsets; empty chunks own nothing.
    """
    if len(chunk_starts_C) == 0:
        return np.zeros(len(token_starts_N), dtype=values_C.dtype)
    owner_N = np.searchsorted(chunk_starts_C, token_starts_N, side="right") - 1
    return np.where(owner_N >= 0, values_C[np.maximum(owner_N, 0)], 0).astype(values_C.dtype)


def align_extents(
    values_E: npt.NDArray[Any],
    extents: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    token_starts_N: npt.NDArray[np.int64],
) -> npt.NDArray[Any]:
    """For each token the value of the extent that its first byte is in; zero outside of all.

    `extents` are the starts, ascending, and the ends of byte ranges that lie apart.
    """
    starts_E, ends_E = extents
    if len(starts_E) == 0:
        return np.zeros(len(token_starts_N), dtype=values_E.dtype)
    owner_N = np.searchsorted(starts_E, token_starts_N, side="right") - 1
    is_inside_N = (owner_N >= 0) & (token_starts_N < ends_E[owner_N])
    return np.where(is_inside_N, values_E[owner_N], 0).astype(values_E.dtype)


def align_starts(chunk_starts_C: npt.NDArray[Any], token_starts_N: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """For each chunk that owns a token, the index of its first token. Ascending, each at most once."""
    first_C = np.searchsorted(token_starts_N, chunk_starts_C, side="left")
    return np.unique(first_C[first_C < len(token_starts_N)]).astype(np.uint32)


def line_starts(ids: ListColumn, ends_line: npt.NDArray[np.bool_]) -> ListColumn:
    """For each document the token indices where a line starts, the first token's not among them.

    `ends_line` says of each id whether its bytes end a line. Exact, because a token ends with the line ends in it.
    """
    ends = np.flatnonzero(ends_line[ids.values]) + 1
    document = np.searchsorted(ids.offsets, ends, side="left") - 1
    offsets = np.searchsorted(document, np.arange(len(ids) + 1))
    return ListColumn((ends - ids.offsets[document]).astype(np.uint32), offsets.astype(np.int64))
