"""Who watches a build: a listener for progress that also hears of each finished stage."""

from typing import Protocol

from pipeline.build.stages import StageResult
from pipeline.core.progress import Progress


class Watcher(Protocol):
    """Hears what a build and a training do. Bars on a terminal are one; `Nobody` is the default."""

    def progress(self, progress: Progress) -> None:
        """A part was finished."""

    def finished(self, result: StageResult, seconds: float) -> None:
        """A stage was finished, blocked or not."""

    def said(self, text: str) -> None:
        """The trainer said a line."""


class Nobody:
    """A watcher that sees nothing."""

    def progress(self, progress: Progress) -> None: ...

    def finished(self, result: StageResult, seconds: float) -> None: ...

    def said(self, text: str) -> None: ...
