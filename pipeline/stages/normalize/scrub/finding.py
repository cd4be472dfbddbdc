"""Finding: a stretch of text to be replaced."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """A stretch of text to be replaced. Equal values get the same placeholder; `tail` is written after it."""

    start: int
    end: int
    value: str = field(repr=False)
    tail: str = ""
