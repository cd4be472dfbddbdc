"""What a rule answers when a file must leave: the reason that is counted, and the evidence for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """`reason` is the drop reason; `detail` holds the measured value and limit, or the lines that were found.

    `license`, where known.

    `is_copyleft` says that the file, or what it inherits, was seen to be under copyleft: its copies elsewhere are held
    too. `is_own` says that the file itself, or a statement about this one file, says so.
    """

    reason: str
    detail: str
    license: str | None = None
    is_copyleft: bool = False
    is_own: bool = False
