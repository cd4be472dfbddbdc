"""TimeLeft: an estimate of the seconds that a build still takes, from the bytes that its parts have read so far."""

import time
from collections.abc import Callable

from pipeline.build.build import ProgressEvent
from pipeline.build.engines.stage_work import part_seconds
from pipeline.stages.stages import STAGES

_ENOUGH_SECONDS = 1.0
"""Time between the first finished part and the last, below which it says nothing of the speed of another stage."""
_ENOUGH_WORK = 0.1
"""Share of the bytes of a stage, after its first part, that says how fast the others are."""
_OVERDUE = 0.1
"""Share of the time that is left of a build by which its stage may be overdue: more than that, and nothing is said."""


class TimeLeft:
    """Seconds left of the stage that runs, and of the build. Both fall while nothing is finished, and are unknown once overdue.

    Speed is that of the parts after the first of a stage, which waits for workers and imports too. Until enough of them are
    finished, nothing is said.
    """

    def __init__(self, num_workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._num_workers, self._clock = num_workers, clock
        self._slowness: tuple[str, float] | None = None
        self.start()

    def start(self) -> None:
        """Start a stage."""
        self._started = self._last = self._clock()
        self._event: ProgressEvent | None = None
        self._first: tuple[float, float] | None = None
        self._seconds_a_byte: float | None = None

    def update(self, event: ProgressEvent) -> None:
        """Take what was finished into account."""
        before = self._event.bytes_done if self._event else 0.0
        self._event, self._last = event, self._clock()
        num_bytes, num_bytes_in_all = event.bytes_done, event.bytes_done + event.work_left[0]
        if num_bytes <= before:
            return
        if self._first is None:
            self._first = self._last, num_bytes
        first_time, first_bytes = self._first
        if num_bytes - first_bytes >= _ENOUGH_WORK * num_bytes_in_all:
            self._seconds_a_byte = (self._last - first_time) / (num_bytes - first_bytes)
            if self._last - first_time >= _ENOUGH_SECONDS:
                self._slowness = event.stage, self._seconds_a_byte * num_bytes_in_all

    def of_stage(self) -> float | None:
        """Return the seconds left of the stage; None where nothing says how fast its parts are, or they are overdue."""
        left = self._estimate()
        return left if left is None or left >= 1.0 or self._is_done() else None

    def _is_done(self) -> bool:
        return (
            self._event is not None and self._event.num_done == self._event.num_parts and not any(self._event.work_left)
        )

    def _estimate(self) -> float | None:
        """Return the seconds left of the stage as they were estimated; below 1 where a part takes longer."""
        if self._event is None:
            return None
        bytes_left, seconds_left = self._event.work_left
        if not bytes_left and not seconds_left:
            return 0.0 if self._is_done() else None
        of_bytes: float | None = 0.0
        if bytes_left and self._seconds_a_byte is not None:
            of_bytes = self._seconds_a_byte * bytes_left
        elif bytes_left:  # as much slower than measured as the stage before
            of_bytes = self._as_measured(self._event.stage)
        return None if of_bytes is None else of_bytes + seconds_left - (self._clock() - self._last)

    def _as_measured(self, stage: str) -> float | None:
        """Return the seconds that the bytes of a stage take, by the stage that was last seen at work; None before any was."""
        if self._slowness is None:
            return None
        measured, seconds = self._slowness
        return seconds * STAGES[measured].speed / STAGES[stage].speed

    def of_build(self) -> float | None:
        """Return the seconds left of this stage and of all after it, which are as much slower than measured as this one is."""
        of_stage = self._estimate()
        if of_stage is None or self._event is None:
            return None
        later = list(STAGES)[STAGES.names.index(self._event.stage) + 1 :]
        if later and self._slowness is None:
            return None
        of_bytes = sum(self._as_measured(stage.name) or 0.0 for stage in later)
        seconds = (part_seconds([kind.seconds for kind in stage.parts], self._num_workers) for stage in later)
        left = of_stage + of_bytes + sum(seconds)
        is_overdue = of_stage < 1.0 - _OVERDUE * left and not self._is_done()
        return None if is_overdue else left

    def share_done(self) -> float:
        """Return the share of the work of the stage that is done, 0-1."""
        left = self._estimate()
        if self._event is None:
            return 0.0
        if left is None:
            done, in_all = self._event.bytes_done, self._event.bytes_done + self._event.work_left[0]
            return done / in_all if in_all else 0.0
        left = left if self._is_done() else max(1.0, left)
        busy = self._last - self._started
        return busy / (busy + left) if busy + left > 0 else 1.0


def clock_text(seconds: float | None) -> str:
    """Format seconds left as minutes and seconds; empty where they are not known."""
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02} left"
