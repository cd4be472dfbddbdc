"""Lexer: the rules by which the texts of a language are read, and what cleaning needs of them: tokens, comments, literals.

A language names its lexer in `pipeline.lexing.languages`; its module is imported with the first text. Only what differs from
language to language is declared or overridden; everything else follows from the places of tokens and comments.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SpanArray = NDArray[np.int64]
"""Start and end of stretches of a text, shape (number, 2)."""

_LICENSE_WORDS = re.compile(r"copyright|licen[cs]e|spdx-|all rights reserved|public domain|redistribut", re.IGNORECASE)
_MIN_SIGNS_OF_CODE = 2
_NUM_TEXTS = 4
"""Texts whose tokens are cached: the steps that need the tokens of a text follow each other."""


@dataclass(frozen=True, eq=False)
class Lexed:
    """Tokens and comments of a text, by their places in its bytes. A token's hash is 64-bit FNV-1a, then MurmurHash3's mixer."""

    text: str
    data: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    tokens: SpanArray
    comments: SpanArray

    @classmethod
    def from_characters(
        cls, text: str, tokens: Iterable[tuple[int, int]], comments: Iterable[tuple[int, int]]
    ) -> "Lexed":
        """Hash the tokens of a text: for a lexer that finds the places of tokens and comments in its characters."""
        data = bytes_of(text)
        starts = np.append(np.flatnonzero(data & 0xC0 != 0x80), len(data))
        in_bytes = [starts[np.array([*spans], np.int64).reshape(-1, 2)] for spans in (tokens, comments)]
        return cls(text, data, loops().hashes_of_spans(data, in_bytes[0]), *in_bytes)

    def in_characters(self, spans: SpanArray) -> SpanArray:
        """Return spans of bytes as spans of characters."""
        if len(self.data) == len(self.text):
            return spans
        num_characters = np.concatenate([[0], np.cumsum(self.data & 0xC0 != 0x80)])
        return np.asarray(num_characters[spans], np.int64)


class Lexer(ABC):
    """Rules by which the texts of a language are read. Spans are of characters, if nothing else is said."""

    line_markers: tuple[str, ...] = ("//",)
    """Beginnings of comments that end with their line."""
    block_markers: tuple[str, str] = ("/*", "*/")
    """Beginning and end of other comments; both empty if there are none."""
    sign_of_code: str = ";"
    """Character that comments of code hold more than once, and prose hardly ever."""

    @abstractmethod
    def lex(self, text: str) -> Lexed:
        """Return the tokens and comments of any text, also of one that is not valid in the language."""

    def leading_comments(self, text: str) -> list[tuple[int, int]]:
        """Return the comments before the first code, in order. Those on following lines are one comment."""
        found = lexed(self, text)
        is_leading = found.comments[:, 0] < (found.tokens[0, 0] if len(found.tokens) else len(found.data))
        joined: list[tuple[int, int]] = []
        for start, end in found.in_characters(found.comments[is_leading]).tolist():
            follows = joined and text[joined[-1][1] : start].strip(" \t") == "\n"
            joined.append((joined.pop()[0] if follows else start, end))
        return joined

    def raw_literals(self, text: str) -> list[tuple[int, int]]:
        """Return the literals of several lines, in which nothing is a comment: the tokens that hold a line end."""
        found = lexed(self, text)
        return [(start, end) for start, end in found.in_characters(found.tokens).tolist() if "\n" in text[start:end]]

    def token_hashes(self, text: str) -> NDArray[np.uint64]:
        """Return the hash of each token, in order."""
        return lexed(self, text).hashes

    def comments(self, text: str) -> list[tuple[int, int]]:
        """Return all comments, in order."""
        found = lexed(self, text)
        return [(start, end) for start, end in found.in_characters(found.comments).tolist()]

    def leading_comments_end(self, text: str) -> int:
        """Return the end of the comments before the first code; 0 if there are none."""
        return max((end for _, end in self.leading_comments(text)), default=0)

    def license_header_end(self, text: str) -> int:
        """Return the end of the last leading comment that names a copyright or license; 0 if there is none."""
        spans = self.leading_comments(text)
        return max((end for start, end in spans if _LICENSE_WORDS.search(text, start, end)), default=0)

    def num_visible_in_comments(self, text: str, start: int = 0) -> int:
        """Count the characters of the comments that begin at `start` or later, without blanks, tabs and line ends."""
        found = lexed(self, text)
        counts = loops().num_visible(found.data, found.comments)
        return int(counts[found.in_characters(found.comments)[:, 0] >= start].sum())

    def comment_hashes(self, text: str) -> NDArray[np.uint64]:
        """Return the hashes of the tokens in all comments, without markers and margins: commented-out code is found.

        Comments with fewer than two of `sign_of_code` are prose, and have none.
        """
        found = lexed(self, text)
        bare = np.empty(int(np.diff(found.comments).sum()) + len(found.comments), np.uint8)
        length = loops().bare_comments(found.data, found.comments, *_marker_tables(self), bare)
        content = bare[:length].tobytes()
        if content.count(self.sign_of_code.encode()) < _MIN_SIGNS_OF_CODE:
            return np.empty(0, np.uint64)
        return self.lex(content.decode("utf-8", "surrogatepass")).hashes


@lru_cache(maxsize=_NUM_TEXTS)
def lexed(lexer: Lexer, text: str) -> Lexed:
    """Return what `lex` finds, from a cache for the last few texts."""
    return lexer.lex(text)


def bytes_of(text: str) -> NDArray[np.uint8]:
    """Return the bytes of a text in UTF-8, read-only."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


@cache
def loops() -> Any:
    """Return the compiled loops, imported with the first text."""
    from pipeline.lexing import lexer_loops

    return lexer_loops


@cache
def _marker_tables(lexer: Lexer) -> tuple[NDArray[np.bool_], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return which bytes are margins of comments, and the beginning and end of a block comment."""
    opening, closing = (bytes_of(marker) for marker in lexer.block_markers)
    is_margin = np.zeros(256, np.bool_)
    is_margin[bytes_of(" \t" + "".join((*lexer.line_markers, *lexer.block_markers)))] = True
    return is_margin, opening, closing
