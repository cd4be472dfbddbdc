"""Lexer of C and C++: tokens and comments by one compiled loop, leading comments beside include guards, raw strings.

Any text is read: a character that begins no token is one by itself, and what is not closed ends with its line or the text. A
raw string is one token by its content, whatever its delimiter; after one that is not closed, no string counts as raw.
"""

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.lexing.lexer import Lexed, Lexer, SpanArray, bytes_of, lexed, loops

_RAW_STRING = re.compile(r'((?:u8?|[LU])?R)"([^ ()\\\t\n\x80-\U0010ffff]{0,16})\(([\s\S]*)\)\2"\Z')
_LEADING = re.compile(
    r"[ \t\n\f\v]*(?:"
    r"(?P<comment>/\*[\s\S]*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)"
    # An include guard may precede the license, also one that depends on the compiler.
    r"|#[ \t]*if[^\n]*\n[ \t]*#[ \t]*pragma[ \t]+once[ \t]*\n[ \t]*#[ \t]*endif[^\n]*(?=\n)"
    r"|#[ \t]*(?:(?:pragma[ \t]+once|ifndef[ \t]+\w+|define[ \t]+\w+)[ \t]*|if[ \t]+!defined[^\n]*)(?=\n))"
)


class CppLexer(Lexer):
    """The lexer of C and C++."""

    def lex(self, text: str) -> Lexed:
        """Return the tokens and comments of a text."""
        data = bytes_of(text)
        return Lexed(text, data, *_scan(data, data if len(data) == len(text) else _kinds(text, data)))

    def leading_comments(self, text: str) -> list[tuple[int, int]]:
        """Return the comments before the first code. Include guards are skipped; `//` lines that follow each other are one."""
        found, position = [], 0
        while match := _LEADING.match(text, position):
            position = match.end()
            if match["comment"]:
                found.append(match.span("comment"))
        return found

    def raw_literals(self, text: str) -> list[tuple[int, int]]:
        """Return the raw string literals outside comments."""
        if 'R"' not in text:
            return []
        found = lexed(self, text)
        spans = found.in_characters(found.tokens[found.data[found.tokens[:, 1] - 1] == ord('"')]).tolist()
        return [(start, end) for start, end in spans if _RAW_STRING.match(text[start:end])]


CPP_LEXER = CppLexer()


def blanked(content: bytes) -> bytes:
    """Return a text in UTF-8 with a space for each byte of its comments and literals. Line ends stay."""
    return _blanked(content)[0].tobytes()


def shortened(content: bytes) -> bytes:
    """Return a text in UTF-8 with one space for each of its comments and literals."""
    bare, is_kept = _blanked(content)
    return bare[is_kept].tobytes()


@lru_cache(maxsize=1)
def _blanked(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return what the loop of that name finds. All characters beyond ASCII count as letters."""
    data = np.frombuffer(content, np.uint8)
    kinds = data if content.isascii() else _read_only(np.minimum(data, loops().WORD))
    _, tokens, comments = _scan(data, kinds)
    bare, is_kept = loops().blank(data, kinds, tokens, comments)
    return bare, is_kept


def _scan(data: NDArray[np.uint8], kinds: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], SpanArray, SpanArray]:
    """Return the hashes of the tokens, and the places of tokens and comments: `kinds` are those of the bytes."""
    num = len(data)
    hashes, tokens, comments = np.empty(num, np.uint64), np.empty((num, 2), np.int64), np.empty((num, 2), np.int64)
    num_tokens, num_comments = loops().lex(data, kinds, hashes, tokens, comments)
    return hashes[:num_tokens].copy(), tokens[:num_tokens].copy(), comments[:num_comments].copy()


def _kinds(text: str, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the kind of each byte of a text. Characters beyond ASCII are classed as Python's `re` does."""
    kinds = loops()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    distinct, places = np.unique(codes, return_inverse=True)
    of_distinct = [code if code < 0x80 else _kind_of_character(chr(code)) for code in distinct.tolist()]
    of_characters = np.array(of_distinct, np.uint8)[places]
    is_first = data & 0xC0 != 0x80
    of_bytes = of_characters[np.cumsum(is_first) - 1]
    of_bytes[~is_first & (of_bytes == kinds.DIGIT)] = kinds.WORD
    of_bytes[~is_first & (of_bytes == kinds.SIGN)] = kinds.REST_OF_SIGN
    return _read_only(of_bytes)


def _kind_of_character(character: str) -> int:
    kinds = loops()
    if character.isdecimal():
        return int(kinds.DIGIT)
    return int(kinds.WORD if character.isalnum() else kinds.SPACE if character.isspace() else kinds.SIGN)


def _read_only(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Make an array read-only, as the bytes of a string are: the loops would be compiled once more for a writable one."""
    values.flags.writeable = False
    return values
