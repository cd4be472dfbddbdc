"""Runs of tokens of a text, found by one expression: what two texts share is a share of these.

They share nothing with the lexers, whose tokens may differ in a literal or an operator: a share is close to theirs, and not equal.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import re2

_STRING = rb"\"(?:[^\"\\\n]|\\[\s\S])*"
_BUT_BLOCKS = (
    rb"//(?:[^\n\\]|\\[\s\S])*|" + _STRING + rb"\"|" + _STRING + rb"|'(?:[^'\\\n]|\\[\s\S])'|\w+(?:\.\w+)*"
    rb"|->\*?|\+\+|--|<<=?|>>=?|[<>=!+*/%&|^-]=|&&|\|\||::|\.\.\.|[^\s\w\\]"
)
"""A string that does not end ends with its line: looked for at each quote, its end would take square time."""
_TOKENS = re2.compile(rb"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|/\*[\s\S]*|" + _BUT_BLOCKS)
_AFTER_OPEN_COMMENT = re2.compile(_BUT_BLOCKS)
_SHORTEST_BLOCK = len(b"/**/")
_COMMENTS = (b"//", b"/*")
_MAX_KNOWN = 32
"""Texts whose tokens are kept: a keeper is compared with one copy after another."""


@lru_cache(maxsize=_MAX_KNOWN)
def tokens_of(text: bytes) -> tuple[bytes, ...]:
    """Return the tokens of a text without its comments."""
    return tuple(token for token in _found(text) if not token.startswith(_COMMENTS))


def tokens_of_comments(text: bytes) -> list[bytes]:
    """Return the tokens within the comments of a text."""
    comments = (token for token in _found(text) if token.startswith(_COMMENTS))
    return [token for comment in comments for token in _found(comment.strip(b"/*"))]


def _found(text: bytes) -> list[bytes]:
    """Return the tokens of a text and its comments. What begins as a comment that does not end is none, and no later one ends."""
    found: list[bytes] = _TOKENS.findall(text)
    if found and found[-1].startswith(b"/*") and not (found[-1].endswith(b"*/") and len(found[-1]) >= _SHORTEST_BLOCK):
        found += _AFTER_OPEN_COMMENT.findall(found.pop())
    return found


def runs_of(tokens: Sequence[bytes], length: int) -> set[int]:
    """Return the runs of so many tokens, as hashes within this process."""
    return set(map(hash, zip(*(tokens[first:] for first in range(length)), strict=False)))


def without_include_directives(tokens: Sequence[bytes]) -> list[bytes]:
    """Return tokens without those of include directives, which unrelated files share."""
    left: list[bytes] = []
    end = b""
    for index, token in enumerate(tokens):
        if end:
            end = b"" if token == end or token[:1] == b'"' else end
        elif token == b"#" and b"include" in tokens[index + 1 : index + 2]:
            end = b">"
        else:
            left.append(token)
    return left


def jaccard_of(first: Collection[int], second: Collection[int]) -> float:
    """Return the share that both of two sets have of what either has; 0 of nothing."""
    num_shared = len({*first} & {*second})
    return num_shared / max(1, len(first) + len(second) - num_shared)
