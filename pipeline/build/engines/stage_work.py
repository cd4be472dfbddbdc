"""Stage work: what of a stage is done and what is left, for the time that a build still takes."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.build.engines.part_task import PartTask, largest_first, num_bytes_read
from pipeline.contracts.joined_parts import JOIN
from pipeline.contracts.stage import Stage

_SHARE_OF_ALL = 0.07
"""Work of a single part over all sources, such as the audit, in that of the parts of the sources."""


@dataclass(frozen=True)
class Work:
    """Work of a stage, in the seconds that it takes where the full slice was measured (`Stage.of_full`)."""

    done: float = 0.0
    left: float = 0.0
    next: float = 0.0
    """At most what the parts that are being made do until one of them is finished."""
    share: float = 0.0
    """Bytes of the stage that are read, in those of the full slice."""


NO_WORK = Work()
"""Of a stage of which all parts were there."""


class StageWork:
    """Work of a stage, done and left. Parts that the stage has not asked for yet are among those that are left."""

    def __init__(self, stage: Stage, num_workers: int) -> None:
        self.stage, self.num_workers = stage, num_workers
        singles = {kind.only: kind.seconds for kind in (*stage.parts, stage.audit) if kind.only is not None}
        self._tail = {name: seconds for name, seconds in singles.items() if seconds}
        self._singles = {name for name, seconds in singles.items() if not seconds}
        self._sources: dict[str, float] = {}
        self._finished: set[str] = set()
        self._is_any = False

    def add(self, names: Sequence[str], tasks: Sequence[PartTask]) -> None:
        """Add the parts that a stage asks for: all names, and the tasks of those that must be made."""
        made = [task for task in largest_first(tasks) if task.part.function != JOIN]  # a join reads again, at once
        self._is_any = self._is_any or bool(made)
        for name in sorted({*names} - {task.part.name for task in made}):
            self._singles.discard(name)
            self._tail.pop(name, None)
        for task in made:
            name = task.part.name
            if name in self._tail:
                self._tail[name] = self._tail.pop(name)  # in the order in which they begin
            elif name not in self._singles:
                self._sources[name] = self.stage.of_full.seconds * num_bytes_read(task) / self.stage.of_full.num_bytes

    def finish(self, name: str) -> None:
        """Count a part as done, if it was to be made."""
        self._finished.add(name)

    @property
    def work(self) -> Work:
        """The work that is done and left; none where all parts were there."""
        if not self._is_any:
            return NO_WORK
        of_sources = sum(self._sources.values())
        unfinished = [seconds for name, seconds in self._sources.items() if name not in self._finished]
        single = _SHARE_OF_ALL * of_sources
        singles_left = single * len(self._singles - self._finished)
        ends = part_ends([*self._tail.values()], self.num_workers)
        tail_done = max((end for name, end in zip(self._tail, ends, strict=True) if name in self._finished), default=0)
        tail_left = max(ends, default=0.0) - tail_done
        start = self.stage.start_seconds if self._sources else 0.0
        start_left = start if len(unfinished) == len(self._sources) else 0.0
        whole = start + of_sources / self.num_workers + single * len(self._singles) + max(ends, default=0.0)
        left = start_left + sum(unfinished) / self.num_workers + singles_left + tail_left
        if unfinished:
            following = start_left + min(unfinished[: self.num_workers])
        else:
            following = min((end - tail_done for end in ends if end > tail_done), default=left)
        return Work(whole - left, left, min(following, left), of_sources / self.stage.of_full.seconds)


def part_ends(seconds: Sequence[float], num_workers: int) -> list[float]:
    """Return when each of these parts is done, which workers begin in this order: no part is divided among them."""
    free = [0.0] * num_workers
    ends = []
    for each in seconds:
        free.sort()
        free[0] += each
        ends.append(free[0])
    return ends
