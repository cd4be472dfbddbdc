"""Who watches a build: a listener for progress that also hears of each finished stage."""

from typing import Protocol

from pipeline.progress import Progress
from pipeline.stages import StageResult


class Watcher(Protocol):
    """Hears what a build does. Bars on a terminal are one; `Nobody` is the default."""

    def progress(self, progress: Progress) -> None:
        """A part was finished."""

    def finished(self, result: StageResult, seconds: float) -> None:
        """A stage was finished, blocked or not."""


class Nobody:
    """A watcher that sees nothing."""

    def progress(self, progress: Progress) -> None: ...

    def finished(self, result: StageResult, seconds: float) -> None: ...
