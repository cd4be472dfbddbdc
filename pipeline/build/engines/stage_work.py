"""Stage work: what of a stage is done and what is left, for the time that a build still takes."""

from collections.abc import Sequence

from pipeline.build.engines.part_task import PartTask, num_bytes_read
from pipeline.stages.stages import Stage

_SHARE_OF_ALL = 0.2
"""Work of a single part over all sources, such as the audit, in that of the parts of the sources."""


class StageWork:
    """Work of a stage, done and left. Parts that the stage has not asked for yet are among those that are left."""

    def __init__(self, stage: Stage, num_workers: int) -> None:
        self.stage, self.num_workers = stage, num_workers
        self._left: dict[str, tuple[float, float]] = {}
        self._num_done = 0
        self.bytes_done = 0.0
        """The bytes that finished parts have read."""
        self._singles = {kind.only: kind.seconds for kind in (*stage.parts, stage.audit) if kind.only is not None}
        self._expected = set(self._singles)
        self._num_bytes_of_sources = 0

    def add(self, names: Sequence[str], tasks: Sequence[PartTask]) -> None:
        """Add the parts that a stage asks for: all names, and the tasks of those that must be made."""
        sizes = [(task, num_bytes_read(task)) for task in tasks]
        self._num_bytes_of_sources += sum(size for task, size in sizes if task.is_of_source)
        for task, size in sizes:
            self._left[task.part.name] = self._of_one(task.part.name, size)
        for name in names:
            self._expected.discard(name)

    def finish(self, name: str) -> None:
        """Count a part as done, if it was to be made."""
        if (work := self._left.pop(name, None)) is not None:
            self._num_done += 1
            self.bytes_done += work[0]

    @property
    def is_any(self) -> bool:
        """True where something was or is to be made, and not all of it was there."""
        return bool(self._left or self._num_done)

    @property
    def left(self) -> tuple[float, float]:
        """The bytes to read, and the seconds of unfinished parts whose work does not grow."""
        expected = [self._of_one(name, 0) for name in sorted(self._expected) if self.is_any]
        works = [*self._left.values(), *expected]
        return sum(size for size, _ in works), part_seconds([seconds for _, seconds in works], self.num_workers)

    def _of_one(self, name: str, num_bytes: int) -> tuple[float, float]:
        if name not in self._singles:
            return float(num_bytes), 0.0
        seconds = self._singles[name]
        return (0.0 if seconds else _SHARE_OF_ALL * self._num_bytes_of_sources), seconds


def part_seconds(seconds: Sequence[float], num_workers: int) -> float:
    """Return the seconds that workers take for parts of these seconds: no part is divided among them."""
    return max(sum(seconds) / num_workers, *seconds, 0.0)
