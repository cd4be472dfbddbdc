"""Comments of C and C++ text, and the license header among the leading ones."""

import re
from collections.abc import Iterator

from pipeline.cpp.lexer import comment_spans

_LEADING = re.compile(
    r"[ \t\n\f\v]*(?:"
    r"(?P<comment>/\*[\s\S]*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)"
    # An include guard may stand before the license, also one that asks for the compiler.
    r"|#[ \t]*if[^\n]*\n[ \t]*#[ \t]*pragma[ \t]+once[ \t]*\n[ \t]*#[ \t]*endif[^\n]*(?=\n)"
    r"|#[ \t]*(?:pragma[ \t]+once|ifndef[ \t]+\w+|define[ \t]+\w+|if[ \t]+!defined[^\n]*)[ \t]*(?=\n))"
)
_LICENSE_WORDS = re.compile(r"copyright|licen[cs]e|spdx-|all rights reserved|public domain|redistribut", re.IGNORECASE)


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each comment.

    A `//` inside a string literal opens none; raw strings and line continuations are understood.
    """
    yield from map(tuple, comment_spans(text).tolist())


def leading_comments_end(text: str) -> int:
    """Return the end of the comments before the first code. Include guards are skipped."""
    position = end = 0
    while match := _LEADING.match(text, position):
        position = match.end()
        end = position if match["comment"] else end
    return end


def license_header_end(text: str) -> int:
    """Return the end of the last leading comment that names a copyright or license; 0 without one."""
    position = end = 0
    while match := _LEADING.match(text, position):
        position = match.end()
        if match["comment"] and _LICENSE_WORDS.search(match["comment"]):
            end = position
    return end
