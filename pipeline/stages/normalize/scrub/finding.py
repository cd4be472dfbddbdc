"""Finding: a stretch of text to be replaced; LiteralEnds, which keep it in a literal; Replacement, a stretch and its text.

What opens, closes and divides the code stays as it was: a finding begins inside of no escape, and ends before the sign that closes
a raw literal, before a quote that is escaped, and before brackets that were opened before it on its line.

Source: C++23 [lex.ccon], [lex.string]; a hexadecimal escape takes every digit that follows.
"""

import re
from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]+|[0-7]{1,3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_BACKSLASHES = re.compile(r"\\{1,64}\Z")
_OPENS = re.compile(r'R"(?P<delimiter>[^\s()\\"]{0,16})\(')
_CLOSES = re.compile(r'\)(?P<delimiter>[^\s()\\"]{0,16})"')
_MAX_CLOSING = len(')"') + 16
_QUOTES = ("'", '"', "`")
_OPENINGS = {")": "(", "]": "[", "}": "{"}
_NUM_CHARACTERS_BEFORE = 300
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


class LiteralEnds:
    """Signs that end literals of one text. It is read for the raw ones at the first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._openings: dict[str, list[int]] | None = None

    def within(self, finding: Finding) -> Finding:
        """Return a finding without the rest of an escape before it, and without the end of the literal that it is in."""
        start = past_escape(self._text, finding.start)
        end = self._before_quote(start, self._before_raw_end(start, finding.end))
        end = self._before_brackets(start, end)
        if (start, end) == (finding.start, finding.end):
            return finding
        is_whole = finding.value == self._text[finding.start : finding.end]
        value = self._text[finding.start : end] if is_whole else finding.value
        return replace(finding, start=start, end=end, value=value, tail=finding.tail if end == finding.end else "")

    def _before_raw_end(self, start: int, end: int) -> int:
        place = self._text.find(")", start, end)
        while 0 <= place < end:
            closing = _CLOSES.match(self._text, place, place + _MAX_CLOSING)
            if closing and self._is_open(start, closing["delimiter"]):
                return place
            place = self._text.find(")", place + 1, end)
        return end

    def _is_open(self, place: int, delimiter: str) -> bool:
        """Return whether the last raw literal of a delimiter that is opened before a place is not closed before it."""
        if self._openings is None:
            self._openings = {}
            for opening in _OPENS.finditer(self._text):
                self._openings.setdefault(opening["delimiter"], []).append(opening.end())
        openings = self._openings.get(delimiter, [])
        number = bisect(openings, place)
        return number > 0 and self._text.find(f'){delimiter}"', openings[number - 1], place) < 0

    def _before_quote(self, start: int, end: int) -> int:
        """Return where a stretch ends before the backslash of a quote after it."""
        if self._text[end - 1 : end] != "\\" or self._text[end : end + 1] not in ("'", '"'):
            return end
        backslashes = _BACKSLASHES.search(self._text, max(start, end - 64), end)
        return end - 1 if backslashes and len(backslashes[0]) % 2 == 1 else end

    def _before_brackets(self, start: int, end: int) -> int:
        """Return where a stretch ends before the brackets that were opened before it: all of a literal may end in one."""
        text, first = self._text, max(0, start - _NUM_CHARACTERS_BEFORE)
        if text[end - 1 : end] not in _OPENINGS or (
            text[start - 1 : start] in _QUOTES and text[end : end + 1] in _QUOTES
        ):
            return end
        first = max(first, text.rfind("\n", first, start) + 1)
        while end > start and (opening := _OPENINGS.get(closing := text[end - 1])):
            is_of_value = text.count(opening, start, end) >= text.count(closing, start, end)
            if is_of_value or text.count(opening, first, start) <= text.count(closing, first, start):
                return end
            end -= 1
        return end


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
