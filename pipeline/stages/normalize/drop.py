"""Drop: the reason for which a file is dropped."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drop:
    """The decision to drop a file.

    `reason` is the drop reason; `detail` has the measured value and limit, or the lines that were found; `license` is the
    expression that was found, if any.
    """

    reason: str
    detail: str
    license: str | None = None
