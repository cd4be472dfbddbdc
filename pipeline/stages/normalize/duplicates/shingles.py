"""Shingles: sets of runs of five tokens that near-duplicates are compared by, and their MinHash signatures.

Comments are left out, the license header with them. Operators are whole: `a->b` is not `a.b`. The signature is
datasketch's `affine32` scheme bit for bit: `min over h of a * fmix32(h) + b mod 2^32`, a odd. Source: Broder 1997;
datasketch 2.0.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from pipeline.lexing.language_lexers import lexer_of
from pipeline.lexing.lexer import loops

NUM_PERMUTATIONS = 256
NUM_TOKENS_IN_SHINGLE = 5
_MAX_TOKENS_IN_INCLUDE = 64


def shingle_hashes(path: str, text: str) -> NDArray[np.uint64]:
    """Return the set of a file's shingles as sorted distinct 64-bit hashes; empty for fewer than five tokens."""
    return run_hashes(lexer_of(path).token_hashes(text), NUM_TOKENS_IN_SHINGLE)


def body_shingle_hashes(path: str, text: str) -> NDArray[np.uint64]:
    """Return the set of the shingles of a file's tokens without include directives."""
    return run_hashes(without_includes(lexer_of(path).token_hashes(text)), NUM_TOKENS_IN_SHINGLE)


def without_includes(tokens: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hashes of a text's tokens without those of include directives, which unrelated files share."""
    sign, word, opening, closing = _include_hashes()
    starts = np.flatnonzero((tokens[:-1] == sign) & (tokens[1:] == word))
    if not len(starts):
        return tokens
    ends = np.minimum(starts + 3, len(tokens))
    is_bracketed = tokens[ends - 1] == opening
    closings = np.append(np.flatnonzero(tokens == closing), len(tokens))
    closed = closings[np.searchsorted(closings, starts)] + 1
    is_short = is_bracketed & (closed - starts <= _MAX_TOKENS_IN_INCLUDE) & (closed <= len(tokens))
    ends[is_short] = closed[is_short]
    depths = np.zeros(len(tokens) + 1, np.int64)
    np.add.at(depths, starts, 1)
    np.add.at(depths, ends, -1)
    is_outside: NDArray[np.bool_] = np.cumsum(depths[:-1]) == 0
    return tokens[is_outside]


@cache
def _include_hashes() -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the hashes of the tokens of an include directive."""
    sign, word, opening, _, closing = lexer_of("a.c").token_hashes("# include < a >")
    return sign, word, opening, closing


def run_hashes(hashes: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Return the set of runs of `length` tokens as sorted distinct 64-bit hashes; empty for fewer tokens."""
    ordered = np.sort(loops().runs(hashes, length))  # np.unique hashes first, which is slower
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def runs_with_prefix(hashes: NDArray[np.uint64], length: int, prefixes: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return the hashes of the runs of `length` tokens whose leading 16 bits are set in the table `prefixes`, in order."""
    found: NDArray[np.uint64] = loops().prefixed_runs(hashes, length, prefixes)
    return found


def jaccard(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """Return |A & B| / |A | B| of two sorted distinct sets; 0 where both are empty."""
    num_shared = len(np.intersect1d(first, second, assume_unique=True))
    num_either = len(first) + len(second) - num_shared
    return num_shared / num_either if num_either else 0.0


def hashes_for_minhash(shingles: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the 32-bit hashes that the signature is taken over: the upper half of each shingle's hash."""
    return (shingles >> np.uint64(32)).astype(np.uint32)


def signature(hashes: NDArray[np.uint32], seed: int) -> NDArray[np.uint32]:
    """Return the MinHash signature, shape (256,).

    Bit-identical to `datasketch.MinHash(num_perm=256, scheme="affine32", seed=seed)`.
    """
    found: NDArray[np.uint32] = loops().lowest(hashes, *_permutations(seed))
    return found


@cache
def _permutations(seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    # The draws of datasketch's affine32 in their order. Numpy has frozen this generator (NEP 19).
    generator = np.random.RandomState(seed)
    multipliers = generator.randint(0, 1 << 31, NUM_PERMUTATIONS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return multipliers, generator.randint(0, 1 << 32, NUM_PERMUTATIONS, dtype=np.uint32)
