"""ProgressEvent: a notice that a part of a stage was finished. Command lines draw bars of it, Dagster logs it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ProgressEvent:
    """`num_done` of `num_parts` parts of a stage are stored; `num_bytes` of text were read for them.

    `part` is the one that was just finished, `unchanged` whether it was recognized and not made again.
    """

    stage: str
    num_done: int
    num_parts: int
    num_bytes: int
    part: str
    unchanged: bool


Listener = Callable[[ProgressEvent], None]


def silent(progress: ProgressEvent) -> None:
    """Ignore the event."""
