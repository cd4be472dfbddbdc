"""Text inside other text: the documents whose characters a larger one has, searched for the gate on what is kept.

Nothing here is shared with the rule that drops them (`containment.py`), so that neither hides a mistake of the other: it knows no
lexer, no tokens and no probes. Of each text without comments, includes and blanks, windows of 32 characters are hashed, and those
whose hash begins with five zeros are compared: the same ones in every document.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import re2
from numpy.typing import NDArray

from pipeline.stages.normalize.duplicates.spill import NumberSpill, Regroup, regrouped

_WIDTH = 32
_FIRST_BITS = np.uint64(64 - 5)
_MIN_WINDOWS = 48
"""Fewer samples tell little: about 1,500 characters."""
_MAX_HOLDERS = 20
"""A window that more documents have is boilerplate, and in no pair."""
_MIN_RATIO = 1.75
"""Documents of about one size are siblings, which near duplicates have a gate and limits for. Below half as much again in tokens a
rule lets siblings be; the ratio of characters differs from that of tokens. What a text repeats makes it no container: the ratio is
also that of the distinct windows."""
_COMMENT = rb"//[^\n]*|/\*(?:[^*]|\*+[^*/])*\*+/"
_INCLUDE = rb"(?m:^[ \t]*#[ \t]*include(?:[^\n/]|/[^*/\n])*)"
_LITERAL = rb""" "(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*' """.strip()
_LEFT_OUT = re2.compile(_COMMENT + b"|" + _INCLUDE)
_LEFT_OUT_TO_THE_END = re2.compile(b"|".join((_LITERAL, _COMMENT, rb"/\*(?s:.*)", _INCLUDE)))
"""The same where a comment has no end, and takes all that follows. It may begin in a literal, which is none."""
_BLANKS = b" \t\r\n\\"
_FACTOR = 0x9E3779B97F4A7C15
_BYTES_OF_INTERVAL = 1 << 27
"""Text of which one interval of values has about as many windows as fit into memory: one of 32 is sampled."""
_MAX_HELD = 1 << 20
_INTERVAL_BITS, _KEPT_BITS = 20, 39
"""The leading bits of a sampled hash, which has 59, and those below."""
_NUM_POWERS = 1 << 20
_FEW_POWERS = 1 << 14


@dataclass(frozen=True)
class TextInside:
    """A document of which a larger one has a share of the text. `part` and `whole` are places among the searched ones."""

    part: int
    whole: int
    share: float


def find_text_inside(
    texts: Callable[[], Iterable[bytes]], min_share: float, folder: Path | None = None, num_bytes: int = 0
) -> list[TextInside]:
    """Return the documents of which one larger document has `min_share` of the windows, once each, by their places.

    `texts` is called again where one seems to be found: samples do not say well how much a text says once.
    Windows of more text than fits into memory are kept in a folder; `num_bytes` says how much text there is about.
    """
    num_intervals = 1 if folder is None else 1 + num_bytes // _BYTES_OF_INTERVAL
    windows = _Windows(None if folder is None else NumberSpill(folder / "windows"), num_intervals)
    sizes, lengths = array("q"), array("q")
    for text in texts():
        bare = _bare(text)
        sizes.append(windows.add(_sample(bare)))
        lengths.append(len(bare))
    num_texts = len(sizes)
    regroup: Regroup = lambda pairs: pairs  # noqa: E731  # as it is
    if folder is not None:
        regroup = regrouped(
            folder / "pairs", num_intervals, lambda pair: pair // num_texts * num_intervals // num_texts
        )
    pairs = _pairs(windows.intervals(), _numbers(sizes), _numbers(lengths), regroup)
    found = [TextInside(part, whole, num_shared / sizes[part]) for part, whole, num_shared in pairs]
    found = [each for each in found if each.share >= min_share]
    wanted = {place for each in found for place in (each.part, each.whole)}
    distinct = _num_distinct(texts(), wanted) if wanted else {}
    best: dict[int, TextInside] = {}
    for each in found:
        is_larger = distinct[each.whole] >= _MIN_RATIO * distinct[each.part]
        if is_larger and (each.part not in best or each.share > best[each.part].share):
            best[each.part] = each
    return [best[part] for part in sorted(best)]


def _bare(text: bytes) -> bytes:
    return _without_comments(text).translate(None, _BLANKS)


def _num_distinct(texts: Iterable[bytes], wanted: Set[int]) -> dict[int, int]:
    """Return the numbers of distinct windows of the texts at some places."""
    return {place: len(np.unique(_hashes(_bare(text)))) for place, text in enumerate(texts) if place in wanted}


class _Windows:
    """The sampled hashes of all texts and whose they are, in memory, or on disk by intervals of their values."""

    def __init__(self, spill: NumberSpill | None, num_intervals: int) -> None:
        self._spill, self._num_intervals = spill, num_intervals
        self._values, self._num_values, self._sizes = [np.empty(0, np.uint64)], 0, array("q")
        self._first = 0

    def add(self, values: NDArray[np.uint64]) -> int:
        """Add the hashes of the next text, and return their number."""
        self._values.append(values)
        self._sizes.append(len(values))
        self._num_values += len(values)
        if self._spill is not None and self._num_values >= _MAX_HELD:
            self._flush(self._spill)
        return len(values)

    def intervals(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        """Yield the hashes of each interval and their texts."""
        if self._spill is None:
            yield self._held()
            return
        self._flush(self._spill)
        for number in range(self._num_intervals):
            values, owners = self._spill.read(number).reshape(-1, 2).T
            yield values.astype(np.uint64), owners

    def _held(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        owners = self._first + np.repeat(np.arange(len(self._sizes)), _numbers(self._sizes))
        return np.concatenate(self._values), owners

    def _flush(self, spill: NumberSpill) -> None:
        values, owners = self._held()
        numbers = values.astype(np.int64)
        spill.add((numbers >> _KEPT_BITS) * self._num_intervals >> _INTERVAL_BITS, np.stack([numbers, owners], axis=1))
        self._first += len(self._sizes)
        self._values, self._num_values, self._sizes = [np.empty(0, np.uint64)], 0, array("q")


def _numbers(values: "array[int]") -> NDArray[np.int64]:
    return np.frombuffer(values, np.int64) if values else np.empty(0, np.int64)


def _sample(bare: bytes) -> NDArray[np.uint64]:
    """Return the distinct sampled hashes of a text's windows, ascending."""
    values = _hashes(bare)
    sampled: NDArray[np.uint64] = np.unique(values[values >> _FIRST_BITS == 0])
    return sampled


def _hashes(bare: bytes) -> NDArray[np.uint64]:
    """Return the hashes of a text's windows. Of a text of over a mebibyte the beginning counts."""
    codes = np.frombuffer(bare[:_NUM_POWERS], np.uint8)
    if len(codes) <= _WIDTH:
        return np.empty(0, np.uint64)
    powers, inverses = _powers(len(codes))
    # Differences of sums of powers modulo 2^64, each moved to the same place.
    sums = np.cumsum(codes * powers[: len(codes)])
    values = (sums[_WIDTH:] - sums[:-_WIDTH]) * inverses[: len(sums) - _WIDTH]
    # The low bits of such a sum depend on few characters; the high ones of this product depend on all.
    hashes: NDArray[np.uint64] = (values ^ (values >> np.uint64(31))) * np.uint64(_FACTOR)
    return hashes


def _without_comments(text: bytes) -> bytes:
    """Return a text without what is left out."""
    bare = _without(_LEFT_OUT, text)
    return _without(_LEFT_OUT_TO_THE_END, text) if b"/*" in bare else bare


def _without(pattern: Any, text: bytes) -> bytes:
    """Return a text without matches that are no literals. The `sub` of RE2 expands what it puts in the place of each match."""
    kept: list[bytes] = []
    place = 0
    for match in pattern.finditer(text):
        start, end = match.span()
        if text[start] in b"\"'":
            continue
        kept.append(text[place:start])
        place = end
    return b"".join((*kept, text[place:]))


def _powers(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return at least so many powers of the factor, and of its inverse. Most texts need a few thousand, which take no time."""
    inverse = pow(_FACTOR, -1, 1 << 64)
    number = _FEW_POWERS if count <= _FEW_POWERS else _NUM_POWERS
    return _powers_of(_FACTOR, number), _powers_of(inverse, number)


@cache
def _powers_of(factor: int, number: int) -> NDArray[np.uint64]:
    powers: NDArray[np.uint64] = np.cumprod(np.full(number, factor, np.uint64), dtype=np.uint64)
    return powers


def _pairs(
    intervals: Iterable[tuple[NDArray[np.uint64], NDArray[np.int64]]],
    sizes: NDArray[np.int64],
    lengths: NDArray[np.int64],
    regroup: Regroup,
) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of documents, the smaller first, and how many windows they share, if the larger one can be a container.

    Of `sizes` of samples, a part has some; `lengths` are those of the texts without comments and blanks, which no sample estimates.
    """
    num_texts = max(1, len(sizes))
    for found in regroup(_meetings(values, owners, num_texts) for values, owners in intervals):
        pairs, counts = np.unique(found, return_counts=True)
        parts, wholes = np.divmod(pairs, num_texts)
        possible = (sizes[parts] >= _MIN_WINDOWS) & (lengths[wholes] >= _MIN_RATIO * lengths[parts])
        yield from zip(parts[possible].tolist(), wholes[possible].tolist(), counts[possible].tolist(), strict=True)


def _meetings(values: NDArray[np.uint64], owners: NDArray[np.int64], num_texts: int) -> NDArray[np.int64]:
    """Return the pairs of texts that share a window, once a window: `part * num_texts + whole`."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values[order]) != 0)))[: len(order)]
    num_holders = np.diff(np.append(starts, len(order)))
    found = [np.empty(0, np.int64)]
    for number in range(2, _MAX_HOLDERS + 1):
        groups = owners[order[starts[num_holders == number][:, None] + np.arange(number)]]
        firsts, seconds = np.nonzero(~np.eye(number, dtype=np.bool_))
        found.append((groups[:, firsts] * num_texts + groups[:, seconds]).ravel())
    return np.concatenate(found)
