"""What a listener hears while a build runs. The core tells; command lines draw bars, the shell writes events."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`num_done` of `num_parts` parts of a stage are in the store; `num_bytes` of text went through them.

    `part` is the one that was just finished, `unchanged` whether it was recognized and not made again.
    """

    stage: str
    num_done: int
    num_parts: int
    num_bytes: int
    part: str
    unchanged: bool


Listener = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """A listener that hears nothing."""
