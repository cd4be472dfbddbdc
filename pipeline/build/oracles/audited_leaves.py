"""Oracle of leaves: whether each begins where a token may, and is the child of its parent that the depths before it allow.

It shares no code with the parser: tokens are those of the marks of a text, and siblings are counted along the leaves.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from pipeline.build.oracles.code_marks import CodeMarks

_BLANKS = b" \t\r\n\f\v\\"
_LARGEST_SIBLING, _LARGEST_DEPTH = 63, 255
_ALL = (1 << (_LARGEST_SIBLING + 1)) - 1
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_OPERATORS = frozenset(b"-> ++ -- == <= != || :: += -= *= /= |= &= << &&".split())
"""Operators of two characters that no leaf ends within. Two templates may close with `>>`."""
_LONGEST_ESCAPE = 10
_BEFORE_GAP, _NOT_AFTER_GAP = _WORD | {ord(")")}, frozenset(bytes([each]) for each in b")];,=+-*/<>.&|?:{(")
_FEW = 64
"""Bytes of a leaf in which its token begins; with more blanks before it there may be a gap."""


def torn_leaves(starts: Sequence[int], text: bytes, marks: CodeMarks) -> Iterator[int]:
    """Yield where a leaf begins within a token, or after a blank, which is the next one's: in code, comments and plain literals.

    Leaves of a directive and of a raw literal are not judged, and the blanks after comments, which may end a directive.
    """
    directives = [(start, _end_of_blanks(text, end)) for start, end, _ in marks.directives]
    spans = sorted(
        [(*span, _in_directive) for span in directives]
        + [(start, _end_of_blanks(text, end), _in_comment) for start, end in marks.comments]
        + [(*span, _in_literal) for span in marks.literals],
        key=lambda span: span[:2],
    )
    first_of = [span[0] for span in spans]
    for place in starts:
        index = bisect_right(first_of, place - 1) - 1
        start, end, is_torn_in = spans[index] if index >= 0 else (0, 0, _in_directive)
        if place and (is_torn_in(text, start, end, place) if place <= end else _is_torn(text, place)):
            yield place


def _end_of_blanks(text: bytes, end: int) -> int:
    while end < len(text) and text[end] in _BLANKS:
        end += 1
    return end


def _in_directive(text: bytes, start: int, end: int, place: int) -> bool:
    return False


def _in_comment(text: bytes, start: int, end: int, place: int) -> bool:
    return place < start + len(text[start:end].rstrip(_BLANKS))


def _in_literal(text: bytes, start: int, end: int, place: int) -> bool:
    """Return whether a place is not an edge of a literal, of its quotes or of an escape in it."""
    is_raw = text[start : start + 1] == b"R"
    is_edge = place in (start + 1, end - 1, end) or text[place] == ord("\\")
    return not (is_raw or is_edge or b"\\" in text[max(start, place - _LONGEST_ESCAPE) : place])


def _is_torn(text: bytes, place: int) -> bool:
    """Return whether a place in code is after a blank, or within a word or an operator. What is after a digit may be its suffix."""
    before, here = text[place - 1 : place], text[place : place + 1]
    is_in_word = _WORD.issuperset(before + here) and len(here) > 0 and before.isdigit() <= here.isdigit()
    return before in _BLANKS or is_in_word or before + here in _OPERATORS


def gaps_of(starts: Sequence[int], text: bytes) -> list[bool]:
    """Return before which leaves a child without bytes may be that the parser has put there: a semicolon, after a word."""
    return [
        text[start - 1] in _BEFORE_GAP and text[start : start + _FEW].lstrip(_BLANKS)[:1] not in _NOT_AFTER_GAP
        for start in starts
    ]


def num_misplaced_siblings(depths: Sequence[int], siblings: Sequence[int], gaps: Sequence[bool]) -> int:
    """Count the leaves that no tree has where those before them are, by depths and indices among the children of their parents.

    A leaf that is no first child follows the node of its depth, at a gap one child later. One that is follows a node above it, of
    which nothing tells which: `possible` holds for each depth, as bits, the indices that the last node there may have.
    """
    if max(depths, default=0) >= _LARGEST_DEPTH:
        return 0
    possible, last, found = [1] * _LARGEST_DEPTH, -1, 0
    for depth, sibling, is_gap in zip(depths, siblings, gaps, strict=True):
        if sibling:
            following = _next(possible[depth]) if depth <= last else 0
            found += not (following | (_next(following) if is_gap else 0)) >> sibling & 1
        else:
            for each in range(min(last + 1, depth)):
                following = _next(possible[each])
                possible[each] |= following | (_next(following) if is_gap else 0) | (each > 0)
            for each in range(min(last + 1, depth), depth):
                possible[each] = 1
        possible[depth] = 1 << sibling
        last = depth
    return found


def _next(indices: int) -> int:
    """Return the indices after some: after the largest it is that again."""
    return (indices << 1 | indices & 1 << _LARGEST_SIBLING) & _ALL
