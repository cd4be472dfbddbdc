"""Schedule of mixtures: the shares of sources by position, with declared changes and with caps on the epochs of a source.

Between two changes a position is drawn by one `Mixture`, over the sources that have a weight above zero there and are not spent. A
source whose cap is reached leaves, and the others share what it had, in proportion to their weights. Each source's samples are
counted on over all changes, so that none is read twice or left out. All is a function of the position: nothing is carried.

Price: one mixture for each change and for each source that is spent, made when the rows are opened.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pipeline.core.errors import SnapshotError, did_you_mean
from trainer.data.keyed_hash import Integers
from trainer.data.mixture import Mixture

_MAX_DENOMINATOR = 10_000


class WeightedRows(NamedTuple):
    """A source as a mixture sees it: its name, its number of rows, the weight of each, and how many are read at most."""

    name: str
    num_rows: int
    weight: float | Fraction
    max_samples: int | None = None


class Reweighting(NamedTuple):
    """New weights of some sources, by their indices, from a position on."""

    position: int
    weights: Mapping[int, float | Fraction]


class _Segment(NamedTuple):
    """A mixture of the sources `members_M` from position `start` on, and the samples of all sources before it."""

    start: int
    num_before_S: Integers
    members_M: Integers
    mixture: Mixture


class MixtureSchedule:
    """Mixtures one after the other. `quotas` are those of the declared weights before any change."""

    def __init__(self, sources: Sequence[WeightedRows], changes: Sequence[Reweighting]) -> None:
        self._sources = sources
        weights = [source.weight for source in sources]
        plain = Mixture([fraction_of(source.weight) * source.num_rows for source in sources])
        self.quotas = plain.quotas
        self.end: int | None = None
        """The position from which on no source is read; None without an end."""
        start, num_before_S = 0, np.zeros(len(sources), dtype=np.int64)
        self._segments: list[_Segment] = []
        waiting = list(changes)
        while self.end is None:
            while waiting and waiting[0].position <= start:
                for place, weight in waiting.pop(0).weights.items():
                    weights[place] = weight
            segment = self._segment(start, num_before_S, weights)
            if segment is None:
                self.end = start
                break
            self._segments.append(segment)
            ends = [*self._ends(segment), *(change.position for change in waiting[:1])]
            if not ends:
                return
            start = min(ends)
            num_before_S = _count(segment, start)
        # Blocks of rows are read ahead of the position: what is drawn after the end is never trained on.
        self._segments.append(_Segment(start, num_before_S, np.arange(len(sources)), plain))

    def draw(self, position: int, count: int) -> tuple[Integers, Integers]:
        """Return the source and, within it, the number of the samples at `count` positions, beginning with `position`."""
        parts: list[tuple[Integers, Integers]] = []
        place, last = self._place(position), position + count
        while position < last:
            segment = self._segments[place]
            following = self._segments[place + 1 : place + 2]
            stop = min([last, *(each.start for each in following)])
            local, numbers = segment.mixture.draw(position - segment.start, stop - position)
            sources = segment.members_M[local]
            parts.append((sources, numbers + segment.num_before_S[sources]))
            position, place = stop, place + 1
        found, numbers = zip(*parts, strict=True)
        return np.concatenate(found), np.concatenate(numbers)

    def count_before(self, position: int) -> Integers:
        """Return how many samples of each source come before a position."""
        return _count(self._segments[self._place(position)], position)

    def quotas_at(self, position: int) -> tuple[int, ...]:
        """Return the quota of each source in the mixture that a position is of; 0 for one that is not read there."""
        segment = self._segments[self._place(position)]
        found = dict(zip(segment.members_M.tolist(), segment.mixture.quotas, strict=True))
        return tuple(found.get(place, 0) for place in range(len(self._sources)))

    def _place(self, position: int) -> int:
        return bisect_right([segment.start for segment in self._segments], position) - 1

    def _segment(self, start: int, num_before_S: Integers, weights: Sequence[float | Fraction]) -> _Segment | None:
        """Return the mixture of what is not spent and has a weight, or None."""
        members = [
            place
            for place, source in enumerate(self._sources)
            if weights[place] > 0 and (source.max_samples is None or num_before_S[place] < source.max_samples)
        ]
        amounts = [fraction_of(weights[place]) * self._sources[place].num_rows for place in members]
        return _Segment(start, num_before_S, np.array(members), Mixture(amounts)) if members else None

    def _ends(self, segment: _Segment) -> list[int]:
        """Return for each source of a segment that has a cap the position after its last sample."""
        local, numbers = segment.mixture.draw(0, segment.mixture.cycle)
        ends = []
        for member, place in enumerate(segment.members_M.tolist()):
            most = self._sources[place].max_samples
            if most is None:
                continue
            left = most - int(segment.num_before_S[place])
            cycles, number = divmod(left - 1, segment.mixture.quotas[member])
            (at,) = np.flatnonzero((local == member) & (numbers == number)).tolist()
            ends.append(segment.start + cycles * segment.mixture.cycle + at + 1)
        return ends


def by_source(values: Mapping[str, float], names: Sequence[tuple[str, str]], subject: str) -> dict[int, float]:
    """Return the values of the sources that keys name or match, by index. `names` has the name of each, and of its whole source.

    A key that is the name of a whole source is of all parts of it. Raises SnapshotError for a key that is of no source, or for a
    source that two are of.
    """
    found: dict[int, tuple[str, float]] = {}
    for key, value in sorted(values.items()):
        places = [place for place, (name, whole) in enumerate(names) if key == whole or fnmatchcase(name, key)]
        if not places:
            known = list(dict.fromkeys(whole for _, whole in names))
            near = did_you_mean(key, known, f"The sources with training rows are {', '.join(known[:8])}.")
            raise SnapshotError(subject, f"no source is named {key!r}", "the name of a source, or a pattern", near)
        for place in places:
            if place in found:
                both = f"{found[place][0]!r} and {key!r} both match source {names[place][0]}"
                raise SnapshotError(subject, both, "one entry for each source", "Leave one of the two out.")
            found[place] = key, value
    return {place: value for place, (_, value) in sorted(found.items())}


def fraction_of(weight: float | Fraction) -> Fraction:
    """Return a weight as the nearest simple fraction; a Fraction, and one too small for that, exactly."""
    if isinstance(weight, Fraction):
        return weight
    return Fraction(weight).limit_denominator(_MAX_DENOMINATOR) or Fraction(weight)


def _count(segment: _Segment, position: int) -> Integers:
    counts = segment.num_before_S.copy()
    counts[segment.members_M] += segment.mixture.count_before(position - segment.start)
    return counts
