"""C and C++ text as tokens and comments: where they are, and a 64-bit hash of each token.

Total: what is no token of the language is one by its character, what is not closed ends with its line or with the text. A
raw string is one token by its content, whatever its delimiter; of one that is not closed nothing is taken as raw, nor of
any behind it. A token's hash is FNV-1a over its bytes, finished by MurmurHash3's mixer. The loops are in `lexer_loops`,
which is loaded with the first text.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_RAW_STRING = re.compile(r'((?:u8?|[LU])?R)"([^ ()\\\t\n\x80-\U0010ffff]{0,16})\(([\s\S]*)\)\2"\Z')
_MIN_SEMICOLONS = 2
_NUM_TEXTS = 4
"""Texts whose tokens are cached: the steps that need the tokens of a text follow each other."""


@dataclass(frozen=True, eq=False)
class Lexed:
    """Tokens and comments of a text. `data` are its bytes, `kinds` the kind of each.

    `hashes` are those of the tokens, `token_spans` and `comment_spans`, shape (number, 2), their places in the bytes.
    """

    data: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    token_spans: NDArray[np.int64]
    comment_spans: NDArray[np.int64]

    def in_characters(self, spans: NDArray[np.int64]) -> NDArray[np.int64]:
        """Spans of bytes as spans of characters."""
        if self.kinds is self.data:
            return spans
        num_characters = np.concatenate([[0], np.cumsum(self.data & 0xC0 != 0x80)])
        return np.asarray(num_characters[spans], np.int64)


@lru_cache(maxsize=_NUM_TEXTS)
def lexed(text: str) -> Lexed:
    """Return the tokens and comments of a text."""
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    return _lex(data, data if len(data) == len(text) else _kinds(text, data))


def tokens(text: str) -> list[str]:
    """Return the tokens of a text as strings. Raw strings are given without their delimiters."""
    found = lexed(text)
    words = [text[start:end] for start, end in found.in_characters(found.token_spans).tolist()]
    return [_RAW_STRING.sub(r'\1"\3"', word) if word.endswith('"') else word for word in words]


def blanked(content: bytes) -> bytes:
    """Return a text in UTF-8 with a space for each byte of its comments and literals. Line ends stay."""
    return _blanked(content)[0].tobytes()


def shortened(content: bytes) -> bytes:
    """Return a text in UTF-8 with one space for each of its comments and literals."""
    bare, is_kept = _blanked(content)
    return bare[is_kept].tobytes()


def token_hashes(text: str) -> NDArray[np.uint64]:
    """Return the hash of each token, in order."""
    return lexed(text).hashes


def comment_spans(text: str) -> NDArray[np.int64]:
    """Start and end of each comment, in characters, shape (number, 2)."""
    found = lexed(text)
    return found.in_characters(found.comment_spans)


def raw_literal_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each raw string literal outside comments, in characters."""
    if 'R"' not in text:
        return []
    found = lexed(text)
    spans = found.in_characters(found.token_spans[found.data[found.token_spans[:, 1] - 1] == ord('"')]).tolist()
    return [(start, end) for start, end in spans if _RAW_STRING.match(text[start:end])]


def num_visible_in_comments(text: str, start: int = 0) -> int:
    """Count the characters of the comments that begin at `start` or later, without blanks, tabs and line ends."""
    found = lexed(text)
    counts = _loops().num_visible(found.data, found.comment_spans)
    return int(counts[found.in_characters(found.comment_spans)[:, 0] >= start].sum())


def comment_hashes(text: str) -> NDArray[np.uint64]:
    """Return the hashes of the tokens in all comments, without markers and margins: code that was commented out is found.

    Comments with hardly a semicolon are prose, and have none.
    """
    found = lexed(text)
    length = int(np.diff(found.comment_spans).sum()) + len(found.comment_spans)
    data, kinds = np.empty(length, np.uint8), np.empty(length, np.uint8)
    length, num_semicolons = _loops().bare_comments(found.data, found.kinds, found.comment_spans, data, kinds)
    if num_semicolons < _MIN_SEMICOLONS:
        return np.empty(0, np.uint64)
    return _lex(_read_only(data[:length]), _read_only(kinds[:length])).hashes


@cache
def _loops() -> Any:
    from pipeline.cpp import lexer_loops

    return lexer_loops


@lru_cache(maxsize=1)
def _blanked(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return what the loop of that name finds. All characters beyond ASCII count as letters."""
    data = np.frombuffer(content, np.uint8)
    found = _lex(data, data if content.isascii() else _read_only(np.minimum(data, _loops().WORD)))
    bare, is_kept = _loops().blanked(found.data, found.kinds, found.token_spans, found.comment_spans)
    return bare, is_kept


def _lex(data: NDArray[np.uint8], kinds: NDArray[np.uint8]) -> Lexed:
    num = len(data)
    hashes, spans, comments = np.empty(num, np.uint64), np.empty((num, 2), np.int64), np.empty((num, 2), np.int64)
    num_tokens, num_comments = _loops().lex(data, kinds, hashes, spans, comments)
    return Lexed(data, kinds, hashes[:num_tokens].copy(), spans[:num_tokens].copy(), comments[:num_comments].copy())


def _kinds(text: str, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the kind of each byte of a text. Characters beyond ASCII are classed as Python's `re` does."""
    kinds = _loops()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    distinct, places = np.unique(codes, return_inverse=True)
    of_distinct = [code if code < 0x80 else _kind(chr(code)) for code in distinct.tolist()]
    of_characters = np.array(of_distinct, np.uint8)[places]
    is_first = data & 0xC0 != 0x80
    of_bytes = of_characters[np.cumsum(is_first) - 1]
    of_bytes[~is_first & (of_bytes == kinds.DIGIT)] = kinds.WORD
    of_bytes[~is_first & (of_bytes == kinds.SIGN)] = kinds.REST_OF_SIGN
    return _read_only(of_bytes)


def _kind(character: str) -> int:
    kinds = _loops()
    if character.isdecimal():
        return int(kinds.DIGIT)
    return int(kinds.WORD if character.isalnum() else kinds.SPACE if character.isspace() else kinds.SIGN)


def _read_only(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Make an array read-only, as the bytes of a string are: the loops would be compiled once more for a writable one."""
    values.flags.writeable = False
    return values
