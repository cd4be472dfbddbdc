"""KnownCounts: what counts over tables have returned, so that an offense in one column is counted by what reads that column.

Offenses of a stage have in common all that they leave as it is. A count that is given equal tables again is not made again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_MAX_KNOWN = 4
"""Results that are kept of a count: those of the sound build, of the rows of each split of two sources."""
_Call = tuple[tuple[Any, ...], Any]


@dataclass
class KnownCounts:
    """The first results of each count, with the arguments that it was given."""

    known: dict[Callable[..., Any], list[_Call]] = field(default_factory=dict)

    def count(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return what a pure function returns, of equal arguments what it has returned before."""
        calls = self.known.setdefault(function, [])
        for earlier, result in calls:
            if earlier == given:
                return result
        result = function(*given)
        if len(calls) < _MAX_KNOWN:
            calls.append((given, result))
        return result
