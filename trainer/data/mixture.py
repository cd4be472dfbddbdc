"""Which source a sample comes from: integer quotas over a cycle, spread so evenly that any prefix is within one sample
of its share.

With equal weights a source's quota is its number of rows, so that one cycle is one epoch of every source. Each source
counts its own samples; how often it has been through all its rows is its own epoch.
"""

import heapq
from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_CYCLE = 1 << 20
"""Longest cycle that is laid out.

Quotas of a longer one are rounded, largest remainder first: to within one part in a million.
"""


class Draw(NamedTuple):
    """Sample `number`, counted from 0, of the source at place `source`."""

    source: int
    number: int


class Mixture:
    """The sources' shares are in proportion to `amounts`, such as weight times number of rows."""

    def __init__(self, amounts: Sequence[Fraction]) -> None:
        self.quotas = quotas(amounts)
        self.cycle = sum(self.quotas)
        self._quotas = np.array(self.quotas, dtype=np.int64)
        self._sources, self._numbers = _spread(self.quotas)

    def draw(self, position: int) -> Draw:
        """The sample at a logical position, counted from 0."""
        return Draw(*(int(column[0]) for column in self.draw_all(position, 1)))

    def draw_all(self, position: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Source and number of the samples at `count` positions from `position` on."""
        cycles, places = np.divmod(position + np.arange(count), self.cycle)
        sources = self._sources[places].astype(np.int64)
        return sources, cycles * self._quotas[sources] + self._numbers[places]

    def count_before(self, position: int) -> npt.NDArray[np.int64]:
        """How many samples of each source stand in front of a position."""
        cycles, place = divmod(position, self.cycle)
        return cycles * self._quotas + np.bincount(self._sources[:place], minlength=len(self.quotas))


def quotas(amounts: Sequence[Fraction]) -> tuple[int, ...]:
    """The smallest integers in proportion to the amounts; of at most `MAX_CYCLE` in all, and at least 1 each."""
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
    """The source and its sample number at each place of a cycle: earliest deadline first.

    Sample n of a source with quota q may stand from place floor(n C / q) to ceil((n + 1) C / q) - 1. Such a schedule
    always exists, and earliest-deadline-first finds it; inside it every prefix is less than one sample off (Steiner and
    Yeomans 1993).
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
