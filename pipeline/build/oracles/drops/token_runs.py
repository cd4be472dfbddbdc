"""Runs of tokens of a text, found by one expression: what two texts share is a share of these.

They share nothing with the lexers, whose tokens may differ in a literal or an operator: a share is close to theirs, and not equal.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

_STRING = rb"\"(?:[^\"\\\n]|\\[\s\S])*+"
_NOT_ASCII = rb"[\xc2-\xf4][\x80-\xbf]{1,3}"
"""A character of several bytes in UTF-8."""
_BUT_BLOCKS = (
    rb"//(?:[^\n\\]|\\[\s\S])*+|"
    + _STRING
    + rb"\"|"
    + _STRING
    + rb"|'(?:[^'\\\n\x80-\xff]|"
    + _NOT_ASCII
    + rb"|\\[\s\S])'|\w+(?:\.\w+)*"
    rb"|->\*?|\+\+|--|<<=?|>>=?|[<>=!+*/%&|^-]=|&&|\|\||::|\.\.\.|" + _NOT_ASCII + rb"|[^\s\w\\]"
)
"""A string that does not end ends with its line: looked for at each quote, its end would take square time."""
_TOKENS = re.compile(rb"/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/|/\*[\s\S]*|" + _BUT_BLOCKS)
"""A comment that does not end is one to the end of the text: its prose is no code, of which a short file may have less."""
_RAW_TOO = re.compile(rb"((?:u8|[uUL])?R\"[^()\\\s\"]{0,16}\()|" + _TOKENS.pattern)
_MAX_RAW_WITHOUT_END = 16
"""Raw strings without an end, each looked for in the rest of the text, after which none is."""
_COMMENTS = (b"//", b"/*")
_INCLUDE = (b"#", b"include")
_MAX_TOKENS_OF_NAME = 60
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
    """Return the tokens of a text and its comments."""
    found: list[bytes] = _TOKENS.findall(text) if b'R"' not in text else list(_with_raw(text))
    return found


def _with_raw(text: bytes) -> Iterator[bytes]:
    """Yield the tokens of a text with raw strings, each of which is one to the end that its beginning names."""
    at: int | None = 0
    num_without_end = 0
    while at is not None:
        start, at = at, None
        for match in _RAW_TOO.finditer(text, start):
            token = match[0]
            is_raw = match[1] is not None and num_without_end < _MAX_RAW_WITHOUT_END
            close = b")" + token[token.index(b'"') + 1 : -1] + b'"' if is_raw else b""
            end = text.find(close, match.end()) if is_raw else -1
            num_without_end += is_raw and end < 0
            if end >= 0:
                at = end + len(close)
                yield text[match.start() : at]
                break
            yield token


def runs_of(tokens: Sequence[bytes], length: int) -> set[int]:
    """Return the runs of so many tokens, as hashes within this process."""
    return set(map(hash, zip(*(tokens[first:] for first in range(length)), strict=False)))


def without_include_directives(tokens: tuple[bytes, ...]) -> list[bytes]:
    """Return tokens without those of include directives, which unrelated files share."""
    left: list[bytes] = []
    place = 0
    while place < len(tokens):
        if tokens[place : place + 2] != _INCLUDE:
            left.append(tokens[place])
            place += 1
            continue
        place += 2
        named = tokens[place : place + _MAX_TOKENS_OF_NAME]
        # Between brackets, or one token: a string, or a macro.
        place += 1 + (named.index(b">") if named[:1] == (b"<",) and b">" in named else 0)
    return left


def jaccard_of(first: Collection[int], second: Collection[int]) -> float:
    """Return the share that both of two sets have of what either has; 0 of nothing."""
    num_shared = len({*first} & {*second})
    return num_shared / max(1, len(first) + len(second) - num_shared)
