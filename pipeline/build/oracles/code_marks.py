"""CodeMarks: comments, literals, directives and brackets of a text in a language of C's family, found by one expression.

It knows nothing of a grammar: macros are taken for what they look like. A text is not judged whose brackets do not pair within
each branch of its conditionals, or a directive of which goes on in another line after a comment, where grammars end it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import re2

_LINE_COMMENT, _BLOCK_COMMENT = rb"//(?:[^\n\\]|\\[\s\S])*", rb"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/"
_BUT_COMMENTS = (
    rb'|(?P<raw>R"[^\s()\\"]{0,16}\()'
    rb"|(?P<literal>\"(?:[^\"\\\n]|\\[\s\S])*\"|'(?:[^'\\\n]|\\[\s\S])*')"
    rb"|(?P<number>\b\d[\w.]*(?:'[\w.]+)+)"
    rb"|(?P<directive>(?m:^)[ \t]*#)"
    rb"|(?P<bracket>[{}()])"
)
_MARK = re2.compile(rb"(?P<comment>" + _LINE_COMMENT + rb"|" + _BLOCK_COMMENT + rb")" + _BUT_COMMENTS)
_MARK_AFTER_BLOCKS = re2.compile(rb"(?P<comment>" + _LINE_COMMENT + rb")" + _BUT_COMMENTS)
"""Marks where no block comment ends any more: looked for at each that begins, its end would take square time."""
_COMMENT = re2.compile(_BLOCK_COMMENT)
_OF_DIRECTIVE = re2.compile(rb"(?:\"(?:[^\"\\\n]|\\[\s\S])*\"|[^\n\\/]|\\[\s\S]|/[^*\n])*")
"""The rest of the logical line of a directive, up to a comment in it."""
_CONDITION = re2.compile(rb"\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
_CLOSING = {ord("}"): ord("{"), ord(")"): ord("(")}
_MAX_KNOWN = 64
"""Texts whose marks are kept: several oracles ask for those of one text."""
Span = tuple[int, int]


@dataclass(frozen=True)
class CodeMarks:
    """The marks of one text: spans in bytes, and the brackets outside all of them, each pair with its depth in braces."""

    comments: tuple[Span, ...]
    literals: tuple[Span, ...]
    directives: tuple[tuple[int, int, int], ...]
    """Start, end and depth in brackets of each."""
    pairs: tuple[tuple[int, int, int], ...]
    """Places of an opening and its closing bracket, and how many pairs are around them, in the order of the closing ones."""
    is_paired: bool
    """False where brackets do not pair, in the text or in a branch of a conditional, or grammars differ on a directive."""

    def are_code(self, start: int, end: int) -> bool:
        """Return whether a stretch touches no comment, literal or directive."""
        spans = (*self.comments, *self.literals, *((first, last) for first, last, _ in self.directives))
        return not any(first < end and start < last for first, last in spans)


@lru_cache(maxsize=_MAX_KNOWN)
def marks_of(text: bytes) -> CodeMarks:
    """Find the marks of a text."""
    comments, literals = list[Span](), list[Span]()
    directives, pairs = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
    opened, branches, is_paired = list[int](), list[int](), True
    for kind, start, end in _marks(text):
        if kind == "comment":
            comments.append((start, end))
        elif kind in ("literal", "raw"):
            literals.append((start, end))
        elif kind == "directive":
            directives.append((start, end, len(opened)))
            is_paired &= _is_even(text[start:end], len(opened), branches)
            is_paired &= b"\\\n" not in text[start:end].partition(b"*/")[2]
        elif kind == "bracket" and text[start] not in _CLOSING:
            opened.append(start)
        elif kind == "bracket":
            is_closed = bool(opened) and text[opened[-1]] == _CLOSING[text[start]]
            is_paired &= is_closed
            if is_closed:
                pairs.append((opened.pop(), start, len(opened)))
    is_paired &= not opened and not branches
    return CodeMarks(tuple(comments), tuple(literals), tuple(directives), tuple(pairs), is_paired)


def _marks(text: bytes) -> Iterator[tuple[str, int, int]]:
    position, last_end = 0, text.rfind(b"*/")
    while match := (_MARK if position <= last_end else _MARK_AFTER_BLOCKS).search(text, position):
        kind, (start, end) = match.lastgroup.decode(), match.span()
        if kind == "raw":
            closing = b")" + match[0][2:-1] + b'"'
            at = text.find(closing, end)
            end = len(text) if at < 0 else at + len(closing)
        comments: list[tuple[str, int, int]] = []
        if kind == "directive":
            end, comments = _directive(text, end, last_end)
        yield kind, start, end
        yield from comments
        position = end


def _directive(text: bytes, start: int, last_end: int) -> tuple[int, list[tuple[str, int, int]]]:
    """Return where a directive ends that goes on at `start`, and the comments in it; after `last_end` none ends."""
    comments: list[tuple[str, int, int]] = []
    end = _line_end(text, start)
    while end <= last_end and (comment := _COMMENT.match(text, end)):
        comments.append(("comment", *comment.span()))
        end = _line_end(text, comment.end())
    return end, comments


def _line_end(text: bytes, place: int) -> int:
    return int(_OF_DIRECTIVE.match(text, place).end())


def _is_even(directive: bytes, depth: int, branches: list[int]) -> bool:
    """Return whether a branch ends at the depth at which its conditional began."""
    match = _CONDITION.match(directive)
    word = match[1] if match else b""
    if word.startswith(b"if"):
        branches.append(depth)
        return True
    if not word or not branches:
        return not word
    return (branches.pop() if word == b"endif" else branches[-1]) == depth
