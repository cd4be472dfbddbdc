"""Waiver: a finding that a person decided to leave in one text; and WaivedValues, what waivers leave in it while it is scrubbed."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.stages.normalize.scrub.finding import Finding


@dataclass(frozen=True)
class Waiver:
    """A finding that stays: `word` is its placeholder's or the name of its detector. A `line` counts from 1."""

    word: str
    line: int | None = None
    value_sha256: str | None = None

    def covers(self, words: Iterable[str], line: int, value: str) -> bool:
        """Return whether the waiver is of a finding that has one of these names, begins on that line and has that value."""
        is_there = self.line in (None, line)
        return is_there and self.word in words and self.value_sha256 in (None, _digest(value))


class WaivedValues:
    """The values that waivers leave in one text. A value that was found once is known in every later round."""

    def __init__(self, waivers: Iterable[Waiver] = ()) -> None:
        self._waivers = tuple(waivers)
        self._values: set[tuple[Waiver, str]] = set()

    def __bool__(self) -> bool:
        return bool(self._waivers)

    def spans(self, text: str, named: Iterable[tuple[tuple[str, ...], Iterable[Finding]]]) -> list[tuple[int, int]]:
        """Return the stretches of a text that stay: its waived findings, and the values of those that were waived before.

        `named` are findings with their names.
        """
        found: list[tuple[int, int]] = []
        for words, findings in named:
            for finding in findings:
                waivers = self._of(words, _line(text, finding.start), finding.value)
                self._values.update((waiver, finding.value) for waiver in waivers)
                found += [(finding.start, finding.end)] if waivers else []
        return found + [
            span for waiver, value in sorted(self._values, key=str) for span in _places(text, waiver, value)
        ]

    def left(self, text: str) -> set[Waiver]:
        """Return the waivers whose values are in a finished text."""
        return {waiver for waiver, value in self._values if _places(text, waiver, value)}

    def _of(self, words: tuple[str, ...], line: int, value: str) -> list[Waiver]:
        return [waiver for waiver in self._waivers if waiver.covers(words, line, value)]


def _places(text: str, waiver: Waiver, value: str) -> list[tuple[int, int]]:
    """Return the stretches that are a value, on the line of the waiver if it names one."""
    found = []
    start = text.find(value) if value else -1
    while start >= 0:
        if waiver.line in (None, _line(text, start)):
            found.append((start, start + len(value)))
        start = text.find(value, start + len(value))
    return found


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
