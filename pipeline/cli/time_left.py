"""TimeLeft: an estimate of the seconds that a build still takes, from the bytes that its parts have read so far."""

import time
from collections.abc import Callable

from pipeline.build.build import ProgressEvent
from pipeline.stages.stages import STAGES


class TimeLeft:
    """Seconds left of the stage that runs, and of the build. Both fall while nothing is finished, and are unknown once overdue."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = self._last = clock()
        self._event: ProgressEvent | None = None
        self._slowness: tuple[str, float] | None = None

    def start(self) -> None:
        """Start a stage."""
        self._started = self._last = self._clock()
        self._event = None

    def update(self, event: ProgressEvent) -> None:
        """Take what was finished into account."""
        self._event, self._last = event, self._clock()
        (num_bytes, seconds), (bytes_left, _) = event.work_done, event.work_left
        busy = self._last - self._started - seconds
        if num_bytes > 0 and busy > 0:
            self._slowness = (event.stage, busy / num_bytes * (num_bytes + bytes_left))

    def of_stage(self) -> float | None:
        """Return the seconds left of the stage; None where nothing says how fast its parts are, or they are overdue."""
        left = self._estimate()
        return left if left is None or left >= 1.0 or self._is_done() else None

    def _is_done(self) -> bool:
        return self._event is not None and self._event.num_done == self._event.num_parts

    def _estimate(self) -> float | None:
        """Return the seconds left of the stage as they were estimated; below 1 where a part takes longer."""
        if self._event is None:
            return None
        (num_bytes, seconds), (bytes_left, seconds_left) = self._event.work_done, self._event.work_left
        if not bytes_left and not seconds_left:
            return 0.0 if self._is_done() else None
        busy = self._last - self._started - seconds
        of_bytes: float | None = busy / num_bytes * bytes_left if num_bytes and busy > 0 else None
        if of_bytes is None:  # as much slower than measured as the stage before
            of_bytes = self._as_measured(self._event.stage) if bytes_left else 0.0
        return None if of_bytes is None else of_bytes + seconds_left - (self._clock() - self._last)

    def _as_measured(self, stage: str) -> float | None:
        """Return the seconds that the bytes of a stage take, by the stage that was last seen at work; None before any was."""
        if self._slowness is None:
            return None
        measured, seconds = self._slowness
        return seconds * STAGES[measured].speed / STAGES[stage].speed

    def of_build(self) -> float | None:
        """Return the seconds left of this stage and of all after it, which are as much slower than measured as this one is."""
        of_stage = self.of_stage()
        if of_stage is None or self._event is None or self._slowness is None:
            return None
        later = list(STAGES)[STAGES.names.index(self._event.stage) + 1 :]
        of_bytes = sum(self._as_measured(stage.name) or 0.0 for stage in later)
        return of_stage + of_bytes + sum(kind.seconds for stage in later for kind in stage.parts)

    def share_done(self) -> float:
        """Return the share of the work of the stage that is done, 0-1."""
        left = self._estimate()
        if self._event is None or left is None:
            return 0.0
        left = left if self._is_done() else max(1.0, left)
        busy = self._last - self._started
        return busy / (busy + left) if busy + left > 0 else 1.0


def clock_text(seconds: float | None) -> str:
    """Format seconds left as minutes and seconds; empty where they are not known."""
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02} left"
