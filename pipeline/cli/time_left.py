"""TimeLeft: an estimate of the seconds that a build still takes, from the work that its parts have done so far."""

import time
from collections.abc import Callable
from dataclasses import replace

from pipeline.build.build import ProgressEvent
from pipeline.build.engines.stage_work import NO_WORK, Work, part_ends
from pipeline.contracts.stage import Stage
from pipeline.stages.stages import STAGES

_ENOUGH_WORK, _ENOUGH_SECONDS = 0.1, 0.3
"""Work of a stage beside its first part that says how fast the rest is: at least that share of it, and that many seconds."""
_WEIGHT_OF_EARLIER = 0.5
"""Seconds of work by which the stages before count in the slowness of the one that runs."""


class TimeLeft:
    """Seconds left of the stage that runs, and of the build. Both fall while nothing is finished, and rise where a part is overdue.

    Slowness is the seconds that work took, in those that it took where the full slice was measured. The first part of a stage waits
    for what is compiled or read for the first time, and nothing is said until others tell more. A stage to come is as slow as the
    fastest so far. Of the first stage nothing follows for others, as it waits for the network.
    """

    def __init__(self, num_workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._num_workers, self._clock = num_workers, clock
        self._slowness: float | None = None
        self._share = 0.0
        self._event: ProgressEvent | None = None
        self._started = self._last = clock()
        self.start()

    def start(self) -> None:
        """Start a stage."""
        if self._event is not None and self._says_of_others():
            earlier, self._slowness = self._slowness, None  # which counts in the least already
            own = self._own_slowness(self._last, self._event.work.done)
            self._slowness = earlier if own is None else min(own, earlier or own)
        self._started = self._last = self._clock()
        self._event = None
        self._first: tuple[float, float] | None = None
        self._next = 0.0

    def update(self, event: ProgressEvent) -> None:
        """Take what was finished into account."""
        work = event.work
        self._share = work.share or self._share
        if work.done + work.left > 0 and not work.share:  # parts of sources that the stage has not asked for yet
            work = replace(work, left=work.left + self._of_sources(STAGES[event.stage]))
        self._event, self._last = replace(event, work=work), self._clock()
        if self._first is None and work.done > 0:  # other workers have begun parts as large
            self._first = self._last, max(work.done, min(self._next, work.done + work.left))
        self._next = work.next

    def of_stage(self) -> float | None:
        """Return the seconds left of the stage; None where nothing says how fast its parts are."""
        if self._event is None or self._event.work == NO_WORK:  # nothing had to be made until now
            return None
        if not self._event.work.left:
            return 0.0
        slowness, done = self._now(self._event.work)
        return None if slowness is None else slowness * (self._event.work.done + self._event.work.left - done)

    def of_build(self) -> float | None:
        """Return the seconds left of this stage and of all after it."""
        of_stage = self.of_stage()
        if of_stage is None or self._event is None:
            return None
        later = list(STAGES)[STAGES.names.index(self._event.stage) + 1 :]
        if not later:
            return of_stage
        slowness = self._slowness
        if slowness is None and self._says_of_others():
            slowness, _ = self._now(self._event.work)
        if slowness is None:
            return None
        tails = (part_ends([0.0, *(kind.seconds for kind in stage.parts)], self._num_workers) for stage in later)
        return of_stage + slowness * (sum(map(self._of_sources, later)) + sum(map(max, tails)))

    def share_done(self) -> float:
        """Return the share of the work of the stage that is done, 0-1."""
        if self._event is None:
            return 0.0
        done, in_all = self._event.work.done, self._event.work.done + self._event.work.left
        return done / in_all if in_all else float(self._event.num_done == self._event.num_parts)

    def _says_of_others(self) -> bool:
        return self._event is not None and self._event.stage != STAGES.names[0]

    def _now(self, work: Work) -> tuple[float | None, float]:
        """Return how slow the stage is, and the work that is done by now: at most that of the parts that are being made."""
        found = self._own_slowness(self._last, work.done)
        if found is None and (found := self._slowness) is None:
            return None, work.done
        now = self._clock()
        if now - self._last <= found * work.next:
            return found, work.done + (now - self._last) / found
        done = work.done + work.next
        overdue = self._own_slowness(now, done) or self._since(self._started, 0.0, now, done)
        return max(found, overdue), done

    def _own_slowness(self, until: float, done: float) -> float | None:
        """Return how slow this stage is, since its start or its first part; None where too little of that is known."""
        if self._event is None or self._first is None:
            return None
        work, begin = self._event.work, STAGES[self._event.stage].start_seconds if self._event.work.share else 0.0
        enough = max(_ENOUGH_SECONDS, _ENOUGH_WORK * (work.done + work.left))
        since = [
            self._since(start, done_then, until, done)
            for start, done_then, waits in ((self._started, 0.0, begin), (*self._first, 0.0))
            if done - done_then >= max(enough, 2 * waits)
        ]
        return min(since, default=None)

    def _since(self, start: float, done_then: float, until: float, done: float) -> float:
        """Return the seconds that work took since a moment, in those of the full slice. The stages before count a little."""
        earlier = 0.0 if self._slowness is None else _WEIGHT_OF_EARLIER
        return (until - start + earlier * (self._slowness or 0.0)) / (done - done_then + earlier)

    def _of_sources(self, stage: Stage) -> float:
        """Return the work of the parts of the sources of a stage that reads what the stages so far have read."""
        of_bytes = self._share * stage.of_full.seconds / self._num_workers
        return stage.start_seconds + of_bytes if of_bytes else 0.0


def clock_text(seconds: float | None) -> str:
    """Format seconds left as minutes and seconds; empty where they are not known."""
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02} left"
