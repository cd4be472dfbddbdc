"""Branches of #if whose brackets do not balance: no grammar can nest them. With spaces in their place, the rest parses.

#ifdef A                              the grammar sees two opening braces and one closing;
if (x) {            is read as        with one branch it sees one of each
#else                                     if (x) {
if (y) {
#endif
}                                     }
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from pipeline.lexing.cpp import blanked

MAX_NUM_LINES = 32
"""A conditional with a longer branch is kept: one that opens a brace for another to close is short, a header guard is not."""

# A directive's line with its continuations. One that is not ended goes to the end of the text: no search starts after it.
# It begins with a fixed character: a search for the start of a line stops at each line.
_DIRECTIVE = re.compile(
    rb"#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b(?:[^\\\n]|\\.|\\\Z)*(?:\n|\Z)", re.DOTALL
)
_SPACES = bytes(10 if byte == 10 else 32 for byte in range(256))
"""Table that makes a space of each byte but the line's end."""
_BEGIN = re.compile(rb"#[ \t]*if")
_CONTINUED = (b"\\\n", b"\\\r\n")
_OPENING = frozenset({b"if", b"ifdef", b"ifndef"})

ByteRange = tuple[int, int]


@dataclass(slots=True)
class Conditional:
    """One #if ... #endif by the byte ranges of its directive lines. Branch i is between directives i and i + 1."""

    directives: list[ByteRange] = field(default_factory=list)
    line_numbers: list[int] = field(default_factory=list)

    def branches(self) -> list[ByteRange]:
        """Return the byte ranges between the directives."""
        return [(before[1], after[0]) for before, after in pairwise(self.directives)]

    def longest_branch(self) -> int:
        """Return the number of lines of the longest branch."""
        return max(after - before - 1 for before, after in pairwise(self.line_numbers))


class Conditionals(NamedTuple):
    """The conditionals of a text, the inner ones first, and the text with spaces for its comments and literals."""

    bare: bytes
    found: Sequence[Conditional]


def conditionals_of(content: bytes) -> Conditionals:
    """Return the conditionals of a text. One that is not closed is left out."""
    if _BEGIN.search(content) is None:
        return Conditionals(content, ())
    bare = blanked(content)
    return Conditionals(bare, _conditionals(bare))


def unbalanced_branches(conditionals: Conditionals, errors: Sequence[ByteRange] = ()) -> list[ByteRange]:
    """Return the byte ranges to blank, ordered and disjoint: those of each conditional that has a branch out of balance.

    With `errors`, also those of conditionals that have a directive in one: no grammar allows them there. All directive lines
    are blanked, and all branches but the first; a single branch is blanked too.
    """
    bare = bytearray(conditionals.bare)
    blanked: list[ByteRange] = []
    for conditional in conditionals.found:  # inner ones come first, and outer ones are judged without them
        if conditional.longest_branch() > MAX_NUM_LINES:
            continue
        branches = conditional.branches()
        if all(_is_balanced(bare, *branch) for branch in branches) and not _touch(conditional.directives, errors):
            continue
        gone = branches if len(branches) == 1 else branches[1:]
        for start, end in (*conditional.directives, *gone):
            bare[start:end] = bare[start:end].translate(_SPACES)
            blanked.append((start, end))
    return _merged_ranges(blanked)


def with_spaces(content: bytes, ranges: Iterable[ByteRange]) -> bytes:
    """Return the text with a space for each byte in the ranges, which are ordered and disjoint. Line ends and length stay."""
    pieces = []
    at = 0
    for start, end in ranges:
        pieces += [content[at:start], content[start:end].translate(_SPACES)]
        at = end
    return b"".join([*pieces, content[at:]])


def _conditionals(bare: bytes) -> list[Conditional]:
    """Return the complete conditionals of a text without comments and strings, by their ends. Stray ones are left out."""
    complete: list[Conditional] = []
    stack: list[Conditional] = []
    line_number = at = 0
    for directive in _DIRECTIVE.finditer(bare):
        line = bare.rfind(b"\n", 0, directive.start()) + 1
        if bare[line : directive.start()].strip(b" \t") or bare[max(0, line - 3) : line].endswith(_CONTINUED):
            continue
        line_number += bare.count(b"\n", at, line)
        at = line
        if directive[1] in _OPENING:
            stack.append(Conditional())
        if stack:
            stack[-1].directives.append((line, directive.end()))
            stack[-1].line_numbers.append(line_number)
        if directive[1] == b"endif" and stack:
            complete.append(stack.pop())
    return complete


def _is_balanced(bare: bytearray, start: int, end: int) -> bool:
    return all(bare.count(left, start, end) == bare.count(right, start, end) for left, right in (b"{}", b"()"))


def _touch(ranges: Sequence[ByteRange], others: Sequence[ByteRange]) -> bool:
    return any(start < other_end and other_start < end for start, end in ranges for other_start, other_end in others)


def _merged_ranges(ranges: list[ByteRange]) -> list[ByteRange]:
    joined: list[ByteRange] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
