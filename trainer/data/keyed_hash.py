"""Keyed 64-bit hashes, from which order and infilling are derived in place of a generator with a state."""

from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Word = TypeVar("Word", int, Words)

_MASK = 0xFFFF_FFFF_FFFF_FFFF


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
