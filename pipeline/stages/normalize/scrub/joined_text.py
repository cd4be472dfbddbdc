"""Joined text: a text as the compiler reads its literals, and the way back to where each character is in the file.

Literals side by side are one, with blanks, comments, a plus or the sign of a stream between them; a backslash at the end of a
line joins two lines; a numeric escape is its character; an initializer of single characters is a word. What is found only there is
divided in the file: it has a finding for each of its parts, all of one value.

Source: C++23 [lex.phases], [lex.string].
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import re2

from pipeline.stages.normalize.scrub.finding import Finding

_COMMENT = r"//[^\n]*\n|/\*(?:[^*]|\*+[^*/])*\*+/"
_BETWEEN = rf"(?:\s|\\\n|{_COMMENT})*"
_TOKEN = r"[A-Za-z0-9+/=_.\-]"
CUTS = (
    rf'"\){{1,2}}[ \t]*\+\s*(?:[A-Za-z_][A-Za-z_:]{{0,24}}\()?(?:u8|[uUL])?"'
    rf'|(?:\)[A-Za-z_]{{0,16}})?"{_BETWEEN}(?:(?:\+|<<){_BETWEEN})?(?:u8|[uUL])?(?:R"[A-Za-z_]{{0,16}}\(|")'
    rf"|\\\n{_TOKEN}"
    r"|\\(?:x[0-9a-fA-F]{2}|[01][0-7]{2}|u00[0-7][0-9a-fA-F]|U000000[0-7][0-9a-fA-F])"
    r"|'[^'\\\n]'(?:\s*,\s*'[^'\\\n]'){5,}"
)
"""Expression of every place where the compiler reads something else than what is written; a joined line before a token alone."""
_ESCAPE = re.compile(r"\\.")
_BLANKS = {"\\n": " \n", "\\r": " \r", "\\t": " \t"}
_CHARACTER = re.compile(r"'([^'\\\n])'")
_BOUNDARY = "\n;\n"
_IN_TOKEN = re.compile(rf"(?<={_TOKEN})\\\n(?={_TOKEN})")


@dataclass(frozen=True)
class _Edit:
    """A stretch of the text and what is read there. One that `divides` is kept in the file: it holds quotes or a line end."""

    start: int
    end: int
    read: str
    divides: bool


def find_divided(text: str, find: Callable[[str], Iterable[Finding]]) -> list[Finding]:
    """Return what `find` finds only where a text is joined: a finding for each part of it."""
    edits = list(_edits(text))
    if not edits:
        return []
    edits = list(_with_cuts_between(text, edits))
    joined, places = _joined(text, edits)
    findings = list(find(joined))
    shifts = _shifts(edits) if findings else []
    return [piece for found in findings for piece in _pieces(edits, places, shifts, found)]


def _with_cuts_between(text: str, edits: list[_Edit]) -> Iterator[_Edit]:
    """Yield the edits, and one for each stretch that is far from any of them: nothing is searched there again."""
    kept_to = 0
    for edit in edits:
        near = _line_start(text, edit.start)
        if near > kept_to:
            yield _Edit(kept_to, near, _BOUNDARY, divides=True)
        yield edit
        kept_to = max(kept_to, _line_end(text, edit.end))
    if kept_to < len(text):
        yield _Edit(kept_to, len(text), _BOUNDARY, divides=True)


def _line_start(text: str, place: int) -> int:
    """Return where the line before that of a place begins."""
    end = text.rfind("\n", 0, place)
    return text.rfind("\n", 0, end) + 1 if end >= 0 else 0


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return end if end >= 0 else len(text)


def _joined(text: str, edits: list[_Edit]) -> tuple[str, list[int]]:
    """Return the text with its edits, and the place of each of them in it."""
    parts, places, position, length = [], [], 0, 0
    for edit in edits:
        kept = text[position : edit.start]
        places.append(length + len(kept))
        length += len(kept) + len(edit.read)
        parts += [kept, edit.read]
        position = edit.end
    return "".join([*parts, text[position:]]), places


def _shifts(edits: list[_Edit]) -> list[int]:
    """Return for each edit, and for the end, what a place before it in the joined text is less than in the text."""
    return list(accumulate((edit.end - edit.start - len(edit.read) for edit in edits), initial=0))


def _pieces(edits: list[_Edit], places: list[int], shifts: list[int], found: Finding) -> Iterator[Finding]:
    """Yield the parts of a finding in the joined text; none, if no edit is inside or before it: the text itself has it then."""
    first = max(0, bisect_left(places, found.start) - 1)
    while first > 0 and places[first - 1] + len(edits[first - 1].read) > found.start:
        first -= 1
    shift = shifts[first]  # from places in the joined text to places in the text
    start: int | None = None
    for index in range(first, len(edits)):
        edit, place = edits[index], places[index]
        if place >= found.end:
            break
        if place + len(edit.read) > found.start or (not edit.read and place >= found.start):
            start = found.start + shift if start is None else start
            if edit.divides:
                if start < edit.start:
                    yield Finding(start, edit.start, found.value)
                start = edit.end
            elif place < found.start:
                start = edit.start
        shift = shifts[index + 1]
    end = found.end + shift
    if start is not None and start < end:
        yield Finding(start, end, found.value)


def _edits(text: str) -> Iterator[_Edit]:
    content = text.encode()
    is_ascii = len(content) == len(text)
    position, characters = 0, 0
    for match in _cuts().finditer(content):
        start, end = match.span()
        if not is_ascii:
            characters += len(content[position:start].decode())
            position, start, end = start, characters, characters + len(content[start:end].decode())
        yield from _edits_of(text, start, end)


def _edits_of(text: str, start: int, end: int) -> Iterator[_Edit]:
    """Yield the edits of one place, by its first character."""
    if text[start] == "'":
        for before, after in pairwise(_CHARACTER.finditer(text, start, end)):
            yield _Edit(before.end(1), after.start(1), "", divides="\n" in text[before.end(1) : after.start(1)])
    elif text.startswith("\\\n", start):
        if _IN_TOKEN.match(text, start):
            yield _Edit(start, start + len("\\\n"), "", divides=True)
    elif text[start] == "\\":
        digits = text[start + 1 : end]
        number = int(digits.lstrip("xuU"), 8 if digits[0] in "01" else 16)
        if number >= ord(" "):
            yield _Edit(start, end, chr(number), divides=False)
    else:
        yield _Edit(start, end, "", divides=True)


@cache
def _cuts() -> Any:
    return re2.compile(CUTS)


def with_blanks_of_escapes(line: str) -> str:
    """Return a line with the line ends and tabulators that its escapes stand for, each behind a blank: places stay the same."""
    return _ESCAPE.sub(lambda escape: _BLANKS.get(escape[0], escape[0]), line)
