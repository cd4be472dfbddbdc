"""Keyed 64-bit hashes and permutations, from which order and infilling are derived in place of a generator with a state.

Shapes: N indices, Q permutations.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Word = TypeVar("Word", int, Words)

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_NUM_ROUNDS = 6


def mix(word: Word) -> Word:
    """Apply SplitMix64's finalizing permutation of 64-bit words (Steele, Lea, Flood 2014) to an int or an array of uint64."""
    value: Any = word
    value = (value + 0x9E37_79B9_7F4A_7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    mixed: Word = value ^ (value >> 31)
    return mixed


def keyed(*words: int) -> int:
    """Return one 64-bit key of several words, in their order."""
    return mix(_key_of(words[:-1]) ^ (words[-1] & _MASK)) if words else 0


@lru_cache(maxsize=4096)
def _key_of(words: tuple[int, ...]) -> int:
    """Return the key of the words before the last, such as a seed and a purpose: the same for all pieces."""
    return keyed(*words)


class Permutation:
    """A bijection of `range(size)`, chosen by a 64-bit key, and computed for any index alone: no table, no state.

    A generalized Feistel network on Z_a x Z_b with a * b just above the size (Black and Rogaway 2002), and cycle walking
    for the few values beyond it, so that any size is exact.
    """

    def __init__(self, size: int, key: int) -> None:
        if not 1 <= size < 2**62:
            raise ValueError(f"a permutation of {size} elements: expected 1 to 2^62 - 1")
        left_size = isqrt(size - 1) + 1
        self.size = size
        self.sizes = size, left_size, -(-size // left_size)
        """Sizes of the range and of the two halves of an index."""
        self.round_keys = [mix(key ^ mix(number)) for number in range(_NUM_ROUNDS)]

    def __call__(self, index: int) -> int:
        """Return the image of `index`."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} of a permutation of {self.size}")
        return int(permute([self], np.zeros(1, dtype=np.int64), np.array([index]))[0])


def permute(permutations: Sequence[Permutation], which_N: Integers, indices_N: Integers) -> Integers:
    """Return the image of each index under permutation `which_N` of the list. The indices must be inside its range."""
    sizes_Q3 = np.array([permutation.sizes for permutation in permutations], dtype=np.uint64)
    keys_Q6 = np.array([permutation.round_keys for permutation in permutations], dtype=np.uint64)
    result_N: Words = indices_N.astype(np.uint64)
    left = np.arange(len(result_N))
    while len(left):
        chosen = which_N[left]
        result_N[left] = _scramble(result_N[left], sizes_Q3[chosen], keys_Q6[chosen])
        left = left[result_N[left] >= sizes_Q3[chosen, 0]]
    return result_N.astype(np.int64)


def _scramble(indices_N: Words, sizes_N3: Words, keys_N6: Words) -> Words:
    left_size_N, right_size_N = sizes_N3[:, 1], sizes_N3[:, 2]
    left_N, right_N = np.divmod(indices_N, right_size_N)
    for number in range(0, _NUM_ROUNDS, 2):
        # Each word is reduced before it is added, so that nothing wraps at 2^64.
        left_N = (left_N + mix(keys_N6[:, number] ^ right_N) % left_size_N) % left_size_N
        right_N = (right_N + mix(keys_N6[:, number + 1] ^ left_N) % right_size_N) % right_size_N
    scrambled: Words = left_N * right_size_N + right_N
    return scrambled
