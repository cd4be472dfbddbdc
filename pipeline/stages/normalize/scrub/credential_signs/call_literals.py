"""CallLiteral: a literal among the arguments of a call or the elements of an initializer, with its position.

Calls are read by their brackets, commas and literals alone, for a bounded number of characters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?:u8|[uUL])?R"[A-Za-z_]{0,16}\((?P<raw>[^"\n]*)\)[A-Za-z_]{0,16}["]"""
    r"""|\\{1,3}"(?P<escaped>[^"\\\n]*)\\{1,3}"|(?:u8|[uUL@])?"(?P<value>(?:[^"\\\n]|\\.)*)["]"""
    r"""|'(?P<single>[^'"\\\n]*)'|(?P<bracket>[()\[\]{}])|(?P<comma>,)|(?P<end>;)|[^"'()\[\]{},;\\R]+|["'\\R]"""
)
_NO_QUOTE = re.compile(r"""\\.|'["]'""")
"""An escape, and a quote as a character: neither begins or ends a literal."""
_MAX_CHARACTERS = 1_200
_OPENING = frozenset("([{")


@dataclass(frozen=True)
class CallLiteral:
    """A literal: its place, its value, how many commas and open brackets are before it, and the code just before it."""

    start: int
    end: int
    value: str
    position: int
    depth: int
    before: str


def arguments_of(text: str, start: int, closes: bool = True) -> Iterator[CallLiteral]:
    """Yield the literals from a place after an opening bracket to the one that closes it; with `closes` off to a semicolon.

    Positions count the commas outside of inner brackets.
    """
    position, depth, before_start = 0, 0, start
    for token in _TOKEN.finditer(text, start, min(len(text), start + _MAX_CHARACTERS)):
        group = token.lastgroup
        if group in ("raw", "escaped", "value", "single"):
            yield CallLiteral(*token.span(group), token[group], position, depth, text[before_start : token.start()])
            before_start = token.end()
        elif group == "bracket":
            depth += 1 if token[0] in _OPENING else -1
            if depth < 0 and closes:
                return
        elif group == "comma":
            position += depth == 0
            before_start = token.end() if depth <= 0 else before_start
        elif group == "end" and not closes:
            return


def is_in_literal(before: str) -> bool:
    """Return whether what follows the beginning of a line is inside a literal of double quotes, by the number of them."""
    return _NO_QUOTE.sub("", before).count('"') % 2 == 1
