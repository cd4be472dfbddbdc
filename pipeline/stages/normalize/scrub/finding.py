"""Finding: a stretch of text to be replaced, which begins inside of no escape; and Replacement, the stretch and what it becomes.

Source: C++23 [lex.ccon]; a hexadecimal escape takes every digit that follows.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]+|[0-7]{1,3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_BACKSLASHES = re.compile(r"\\{1,64}\Z")
_MAX_LENGTH = len(r"\U0001F600")


@dataclass(frozen=True)
class Finding:
    """A stretch of text to be replaced. Equal values get the same placeholder; `tail` is written after it."""

    start: int
    end: int
    value: str = field(repr=False)
    tail: str = ""


def past_escape(text: str, place: int) -> int:
    """Return the end of the escape that a place is inside of, or the place itself."""
    last = text.rfind("\\", max(0, place - _MAX_LENGTH), place)
    before = _BACKSLASHES.search(text, max(0, last - 63), last + 1) if last >= 0 else None
    if before is None or len(before[0]) % 2 == 0:
        return place  # a pair of backslashes is one of the text
    escape = _ESCAPE.match(text, last)
    return max(place, escape.end()) if escape else place


class Replacement(NamedTuple):
    """Characters `start` to `end` of a text become `text`."""

    start: int
    end: int
    text: str


def with_replacements(text: str, replacements: Iterable[Replacement]) -> str:
    """Return a text after replacements that are in order of place and do not overlap."""
    pieces, position = [], 0
    for each in replacements:
        pieces += [text[position : each.start], each.text]
        position = each.end
    return "".join([*pieces, text[position:]]) if pieces else text
