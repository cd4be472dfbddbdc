"""A keyed permutation of `range(size)` that answers for one index at a time: no table, no state, no shuffle buffer.

A generalised Feistel network on Z_a x Z_b with a * b just above the size (Black and Rogaway 2002), and cycle walking
for the few values beyond it, so that any size is served exactly.
"""

from math import isqrt

from pipeline.tokenize.fim import mix

_NUM_ROUNDS = 6


class Permutation:
    """A bijection of `range(size)`, chosen by a 64-bit key."""

    def __init__(self, size: int, key: int) -> None:
        if size < 1:
            raise ValueError(f"a permutation of {size} things: at least 1 was expected")
        self.size = size
        self._left_size = isqrt(size - 1) + 1
        self._right_size = -(-size // self._left_size)
        self._round_keys = [mix(key ^ mix(number)) for number in range(_NUM_ROUNDS)]

    def __call__(self, index: int) -> int:
        """Where `index` goes."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} of a permutation of {self.size}")
        index = self._scramble(index)
        while index >= self.size:
            index = self._scramble(index)
        return index

    def _scramble(self, index: int) -> int:
        left, right = divmod(index, self._right_size)
        for even, odd in zip(self._round_keys[::2], self._round_keys[1::2], strict=True):
            left = (left + mix(even ^ right)) % self._left_size
            right = (right + mix(odd ^ left)) % self._right_size
        return left * self._right_size + right
