"""Mixture of sources: integer quotas over a cycle, spread so evenly that any prefix is within one sample of its share.

With equal weights a source's quota is its number of rows, so that one cycle is one epoch of every source. Each source
counts its own samples, and its epoch is how often all its rows have been read.
"""

import heapq
from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

MAX_CYCLE = 1 << 20
"""Longest cycle. Quotas of a longer one are rounded, largest remainder first: to within one part in a million."""


class Mixture:
    """Sources with shares in proportion to `amounts`, such as weight times number of rows."""

    def __init__(self, amounts: Sequence[Fraction]) -> None:
        self.quotas = quotas(amounts)
        self.cycle = sum(self.quotas)
        self._quotas = np.array(self.quotas, dtype=np.int64)
        self._sources, self._numbers = _spread(self.quotas)

    def draw(self, position: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the source and, within it, the number of the samples at `count` positions, beginning with `position`."""
        cycles, places = np.divmod(position + np.arange(count), self.cycle)
        sources = self._sources[places].astype(np.int64)
        return sources, cycles * self._quotas[sources] + self._numbers[places]

    def count_before(self, position: int) -> npt.NDArray[np.int64]:
        """Return how many samples of each source come before a position."""
        cycles, place = divmod(position, self.cycle)
        return cycles * self._quotas + np.bincount(self._sources[:place], minlength=len(self.quotas))


def quotas(amounts: Sequence[Fraction]) -> tuple[int, ...]:
    """Return the smallest integers in proportion to the amounts, at least 1 each and at most `MAX_CYCLE` in all."""
    if not amounts or min(amounts) <= 0:
        raise ValueError(f"amounts {list(map(str, amounts))}: all of them must be above zero")
    scale = lcm(*(amount.denominator for amount in amounts))
    whole = [int(amount * scale) for amount in amounts]
    divisor = gcd(*whole)
    exact = [amount // divisor for amount in whole]
    return tuple(exact) if sum(exact) <= MAX_CYCLE else _rounded(exact)


def _rounded(amounts: Sequence[int]) -> tuple[int, ...]:
    total = sum(amounts)
    shares = [Fraction(amount * MAX_CYCLE, total) for amount in amounts]
    result = [max(1, int(share)) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda place: (int(shares[place]) - shares[place], place))
    for place in by_remainder[: max(0, MAX_CYCLE - sum(result))]:
        result[place] += 1
    return tuple(result)


def _spread(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the source and its sample number at each place of a cycle, by earliest deadline first.

    Sample n of a source with quota q may be at places floor(n C / q) to ceil((n + 1) C / q) - 1. Such a schedule always
    exists, earliest deadline first finds it, and every prefix of it is less than one sample off (Steiner and Yeomans 1993).
    """
    cycle = sum(counts)
    sources, numbers = np.empty(cycle, dtype=np.uint32), np.empty(cycle, dtype=np.uint32)
    waiting = [(0, place, 0) for place in range(len(counts))]
    ready: list[tuple[int, int, int]] = []
    for slot in range(cycle):
        while waiting and waiting[0][0] <= slot:
            _, source, number = heapq.heappop(waiting)
            heapq.heappush(ready, (-(-(number + 1) * cycle // counts[source]), source, number))
        _, source, number = heapq.heappop(ready)
        sources[slot], numbers[slot] = source, number
        if number + 1 < counts[source]:
            heapq.heappush(waiting, ((number + 1) * cycle // counts[source], source, number + 1))
    return sources, numbers
