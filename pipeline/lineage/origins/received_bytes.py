"""ReceivedBytes: which bytes of a file, as it was received, each byte of its normalized text comes from.

The edits that normalizing made are made again, by the same code, and recorded: removal of a byte order mark, decoding, line ends,
placeholders. Nothing is aligned or guessed: a text that does not come out equal has no map.

Shapes: N characters of a text, later its bytes.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.stages.normalize.encodings.decode import text_after_mark
from pipeline.stages.normalize.scrub.finding import Replacement, with_replacements

_Integers = npt.NDArray[np.int64]
Scrub = Callable[[str, Callable[[Sequence[Replacement]], None]], str]
"""Scrubs a text as normalizing did, and records the edits of each pass over it."""

_LINE_END = re.compile(r"\r\n?")
_PLACEHOLDER = "<redacted-"
_OF_BYTES = {"ascii", "utf_8"}
"""Encodings whose bytes are those of the normalized text."""
_UNIT_BYTES = {"utf_16_le": 2, "utf_16_be": 2, "utf_32_le": 4, "utf_32_be": 4}


class ByteChange(IntEnum):
    """Kind of change of a byte of a text. The later one counts where two were made."""

    NONE = 0
    DECODED = 1
    LINE_END = 2
    QUOTED_INCLUDE = 3
    PLACEHOLDER = 4


class ReceivedStretch(NamedTuple):
    """Bytes `start` to `end` of a file as it was received, and what was changed in them, in words."""

    start: int
    end: int
    changes: tuple[ByteChange, ...]


class ReceivedBytes:
    """For each of the N bytes of a normalized text the stretch of the file that it comes from, and what was changed there."""

    def __init__(self, starts_N: _Integers, ends_N: _Integers, changes_N: npt.NDArray[np.uint8]) -> None:
        self._starts_N, self._ends_N, self._changes_N = starts_N, ends_N, changes_N

    def stretch(self, start: int, end: int) -> ReceivedStretch:
        """Return the stretch that bytes `start` to `end` of the text come from. It holds one byte at least."""
        kinds = np.unique(self._changes_N[start:end]).tolist()
        changes = tuple(ByteChange(kind) for kind in kinds if kind)
        return ReceivedStretch(int(self._starts_N[start]), int(self._ends_N[end - 1]), changes)


def received_bytes(
    content: bytes, encoding: str, edits: Sequence[str], text: str, scrub: Scrub | None = None
) -> ReceivedBytes | None:
    """Return the map of a text that was made of the bytes of a file by the recorded encoding and edits, and by `scrub` if any.

    None where the same steps give another text: it was made by other rules.
    """
    raw = text_after_mark(content, encoding, edits)
    if raw is None:
        return None
    origins = _Origins(len(raw.text))
    line_ends = [Replacement(match.start(), match.end(), "\n") for match in _LINE_END.finditer(raw.text)]
    origins.edit(line_ends, ByteChange.LINE_END)
    found = with_replacements(raw.text, line_ends)
    if scrub is not None:
        found = scrub(found, origins.scrub)
    if found != text:
        return None
    offsets = _offsets(content, raw.text, raw.num_mark_bytes, encoding)
    return origins.in_bytes(text, content, offsets, encoding in _OF_BYTES)


class _Origins:
    """For each character of a text that is being edited, the characters of the decoded file that it comes from."""

    def __init__(self, num_characters: int) -> None:
        self._starts_N = np.arange(num_characters)
        self._ends_N = self._starts_N + 1
        self._changes_N = np.zeros(num_characters, np.uint8)

    def scrub(self, edits: Sequence[Replacement]) -> None:
        """Record the edits of one pass of the scrubber."""
        is_of_placeholders = any(edit.text.startswith(_PLACEHOLDER) for edit in edits)
        self.edit(edits, ByteChange.PLACEHOLDER if is_of_placeholders else ByteChange.QUOTED_INCLUDE)

    def edit(self, edits: Sequence[Replacement], change: ByteChange) -> None:
        """Record edits in order of place, of stretches that are not empty: what replaces one comes from all of it."""
        if not edits:
            return
        starts_E, ends_E = (np.array([edit[place] for edit in edits]) for place in range(2))
        sizes_E = np.array([len(edit.text) for edit in edits])
        is_kept_N = np.ones(len(self._starts_N), bool)
        for start, end in zip(starts_E.tolist(), ends_E.tolist(), strict=True):
            is_kept_N[start:end] = False
        kept_N = np.flatnonzero(is_kept_N)
        order_N = np.argsort(np.concatenate([kept_N, np.repeat(starts_E, sizes_E)]), kind="stable")

        def after(column_N: npt.NDArray[Any], added_E: npt.NDArray[Any]) -> npt.NDArray[Any]:
            """Return a column of the new text."""
            return np.concatenate([column_N[kept_N], np.repeat(added_E, sizes_E)])[order_N]

        self._starts_N, self._ends_N, self._changes_N = (
            after(self._starts_N, self._starts_N[starts_E]),
            after(self._ends_N, self._ends_N[ends_E - 1]),
            after(self._changes_N, np.full(len(edits), change, np.uint8)),
        )

    def in_bytes(
        self, text: str, content: bytes, offsets: tuple[_Integers, _Integers], is_of_bytes: bool
    ) -> ReceivedBytes:
        """Return the map from bytes of the text to bytes of the file, in which the characters begin and end at `offsets`."""
        starts_N, ends_N = offsets[0][self._starts_N], offsets[1][self._ends_N - 1]
        codes_N = _codes(text)
        sizes_N = _utf_8_sizes(codes_N)
        file_N = np.frombuffer(content, np.uint8)
        is_plain_N = self._changes_N == ByteChange.NONE
        is_same_N = is_plain_N & (ends_N - starts_N == 1) & (codes_N < 0x80)
        is_same_N[is_same_N] = file_N[starts_N[is_same_N]] == codes_N[is_same_N]
        changes_N = self._changes_N.copy()
        if not is_of_bytes:
            changes_N[is_plain_N & ~is_same_N] = ByteChange.DECODED
        starts, ends, changes = np.repeat(starts_N, sizes_N), np.repeat(ends_N, sizes_N), np.repeat(changes_N, sizes_N)
        if is_of_bytes:
            places = np.arange(len(starts)) - np.repeat(np.cumsum(sizes_N) - sizes_N, sizes_N)
            is_plain = changes == ByteChange.NONE
            starts = np.where(is_plain, starts + places, starts)
            ends = np.where(is_plain, starts + 1, ends)
        return ReceivedBytes(starts, ends, changes)


def _offsets(content: bytes, raw: str, num_mark_bytes: int, encoding: str) -> tuple[_Integers, _Integers]:
    """Return where each character of a decoded file begins and ends in its bytes."""
    if encoding in _OF_BYTES:
        sizes_N = _utf_8_sizes(_codes(raw))
    elif encoding in _UNIT_BYTES:
        unit = _UNIT_BYTES[encoding]
        sizes_N = np.where((_codes(raw) >= 0x10000) & (unit == 2), 4, unit)
    else:
        starts_N, ends_N = _decoded_offsets(content[num_mark_bytes:], encoding, len(raw))
        return starts_N + num_mark_bytes, ends_N + num_mark_bytes
    ends_N = np.cumsum(sizes_N) + num_mark_bytes
    return ends_N - sizes_N, ends_N


def _decoded_offsets(content: bytes, encoding: str, num_characters: int) -> tuple[_Integers, _Integers]:
    """Return the same by decoding byte by byte: a character is of the bytes between the bounds around it.

    At a bound the decoder holds no bytes back. An encoding may write two characters in one sequence, or switch by bytes of none.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    bounds, number = [(0, 0)], 0
    for place in range(len(content)):
        number += len(decoder.decode(content[place : place + 1]))
        if not decoder.getstate()[0]:
            bounds.append((number, place + 1))
    number += len(decoder.decode(b"", final=True))
    bounds.append((number, len(content)))
    starts_N, ends_N = np.zeros(num_characters, np.int64), np.zeros(num_characters, np.int64)
    for (first, start), (last, end) in pairwise(bounds):
        starts_N[first:last], ends_N[first:last] = start, end
    return starts_N, ends_N


def _codes(text: str) -> _Integers:
    return np.frombuffer(text.encode("utf_32_le"), np.uint32).astype(np.int64)


def _utf_8_sizes(codes_N: _Integers) -> _Integers:
    return 1 + (codes_N >= 0x80) + (codes_N >= 0x800) + (codes_N >= 0x10000)
