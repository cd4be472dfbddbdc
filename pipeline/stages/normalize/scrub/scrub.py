"""Scrubber: replaces secrets, e-mail addresses, network addresses and home folders by numbered placeholders.

Equal values in a document get the same number, in order of first occurrence; numbering continues after placeholders that
the text already has. The number of lines does not change and string literals stay closed. A text is scrubbed until
nothing is found, so that scrubbing twice changes nothing more. What a person waived stays.
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.core.change_text import changed_file
from pipeline.core.digests import text_sha256
from pipeline.lexing.language_lexers import lexer_of
from pipeline.lexing.lexer import lexed
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.detectors import DETECTORS, Detector, placeholders
from pipeline.stages.normalize.scrub.documented_samples import is_documented
from pipeline.stages.normalize.scrub.finding import Finding, LiteralEnds, Replacement, with_replacements
from pipeline.stages.normalize.scrub.hits import possible_finders
from pipeline.stages.normalize.scrub.joined_text import find_divided
from pipeline.stages.normalize.scrub.waiver import WaivedValues

MAX_ROUNDS = 8
_MAX_KNOWN = 1 << 20
"""Texts in which nothing was found that a scrubber remembers."""
_MIN_REPEATED, _MIN_MIXED_IN_TEXT, _MIN_MIXED, _MIN_LONG = 4, 6, 8, 16
"""Characters of a value that goes from its other places: of a literal; with letters and digits, in text, anywhere; without."""
_MAX_STRETCHES = 64
"""Values with one longest word that are looked for, by what is before and after it: there may be any number of them."""
_SIGN = re.compile(r"[!@#$%^&*?~+=|]")
_ESCAPED = re.compile(r"\\([\"'\\])")
_QUOTES = np.frombuffer(b"\"'", np.uint8)
_WORD = re.compile(r"[A-Za-z0-9]+|[^\W_A-Za-z0-9]+")
"""Letters and digits of one script: sentences without blanks have words of others beside a value."""
_ANGLED_INCLUDE = re.compile(r"^([ \t]*#[ \t]*include[ \t]*)<(<redacted-path-[0-9]+>[^>\n]*)>", re.MULTILINE)


@dataclass(frozen=True)
class Scrubbed:
    """A text with its findings replaced, and how many were, by placeholder word.

    `is_clean` is False if something was still found at the end.
    """

    text: str
    redactions: Mapping[str, int]
    is_clean: bool

    @property
    def num_redactions(self) -> int:
        """Number of stretches that were replaced."""
        return sum(self.redactions.values())


@dataclass(frozen=True)
class _Redaction:
    placeholder: str
    finding: Finding


class Scrubber:
    """Runs the detectors that ScrubParams switch on."""

    def __init__(self, params: ScrubParams) -> None:
        self._params = params
        self._detectors = [each for each in DETECTORS if each.is_on(params)]
        self._finders = [each.finder() for each in self._detectors]
        self._possible = possible_finders(tuple(each.expression() for each in self._detectors))
        self._pattern = re.compile(rf"<redacted-({'|'.join(placeholders())})-([0-9]+)>")
        self._clean: set[tuple[str, str]] = set()  # path and digest of texts in which nothing was found

    def scrub(
        self,
        path: str,
        text: str,
        waived: WaivedValues | None = None,
        record: Callable[[Sequence[Replacement]], None] = lambda edits: None,
    ) -> Scrubbed:
        """Replace findings until there are none but waived ones. `record` is given the edits of each pass over the text."""

        def after(edits: Sequence[Replacement]) -> str:
            record(edits)
            return with_replacements(text, edits)

        waived = waived or WaivedValues()
        numbers = _Numbers(text, self._pattern)
        counts = Counter[str]()
        for _ in range(MAX_ROUNDS):
            redactions = self._find(path, text, waived)
            if not redactions:
                if not waived and len(self._clean) < _MAX_KNOWN:
                    self._clean.add((path, text_sha256(text)))
                return Scrubbed(after(list(numbers.in_order(text))), counts, is_clean=True)
            counts.update(redaction.placeholder for redaction in redactions)
            text = after([numbers.replaced(redaction, text) for redaction in redactions])
            text = after(list(_quoted_includes(text)))
        is_clean = not self._find(path, text, waived)
        return Scrubbed(after(list(numbers.in_order(text))), counts, is_clean)

    def scan(self, path: str, text: str, waived: WaivedValues | None = None) -> int:
        """Return the number of findings in a text that are not waived; 0 for every text that `scrub` returned as clean.

        A text in which this very search has found nothing is not searched again.
        """
        if not waived and (path, text_sha256(text)) in self._clean:
            return 0
        return len(self._find(path, text, waived or WaivedValues()))

    def _find(self, path: str, text: str, waived: WaivedValues) -> list[_Redaction]:
        header_end: int | None = None
        ends = LiteralEnds(text)
        groups: list[list[_Redaction]] = [[] for _ in self._detectors]
        for place in sorted(self._possible.of(text)):
            detector = self._detectors[place]
            found = [each for each in self._finders[place](text) if not self._stays(detector, each.value)]
            if found and detector.stays_in_license_header and self._params.keep_addresses_in_license_header:
                header_end = _license_header_end(path, text) if header_end is None else header_end
                found = [each for each in found if each.start >= header_end]
            groups[place] = [_Redaction(detector.placeholder, ends.within(each)) for each in found]
        if not any(groups):
            return []
        spans = waived.spans(text, self._named(groups)) if waived else []
        groups = [_outside(spans, group) for group in groups]
        values = {
            redaction.finding.value: redaction.placeholder
            for detector, group in zip(self._detectors, groups, strict=True)
            for redaction in group
            if detector.is_repeated
        }
        return _disjoint([*groups, _outside(spans, _repeated(path, text, values))])

    def _stays(self, detector: Detector, value: str) -> bool:
        """Return whether a value was replaced before, or is a credential of documentation."""
        return self._pattern.fullmatch(value) is not None or (detector.is_repeated and is_documented(value))

    def _named(self, groups: list[list[_Redaction]]) -> list[tuple[tuple[str, ...], list[Finding]]]:
        """Return the findings of each detector with its name and its placeholder's."""
        return [
            ((detector.name, detector.placeholder), [each.finding for each in group])
            for detector, group in zip(self._detectors, groups, strict=True)
        ]


@lru_cache(maxsize=1)
def _kept_scrubber(params: ScrubParams, _detectors: tuple[Detector, ...]) -> Scrubber:
    return Scrubber(params)


def source_scrubber(params: ScrubParams) -> Scrubber:
    """Return the scrubber of the texts of sources, one in a process: a measure asks for texts that a part has just scrubbed."""
    return _kept_scrubber(params, tuple(DETECTORS))


def _license_header_end(path: str, text: str) -> int:
    """Return where the license header ends. A change has none: it begins with its subject, and with any lines of a file."""
    return lexer_of(path).license_header_end(text) if changed_file(path) == path else 0


class _Numbers:
    """The number of each value, counted per placeholder word."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._numbers: dict[tuple[str, str], int] = {}
        self._in_original = Counter[str]()
        for word, number in pattern.findall(text) if "<redacted-" in text else ():
            self._in_original[word] = max(self._in_original[word], int(number))
        self._last = Counter(self._in_original)

    def replaced(self, redaction: _Redaction, text: str) -> Replacement:
        """Return the edit that writes the placeholder of a finding in a text."""
        word, finding = redaction.placeholder, redaction.finding
        if (word, finding.value) not in self._numbers:
            self._last[word] += 1
            self._numbers[word, finding.value] = self._last[word]
        placeholder = f"<redacted-{word}-{self._numbers[word, finding.value]}>"
        end = finding.end - len(finding.tail)
        if finding.start < end and text[end : finding.end] == finding.tail:
            return Replacement(finding.start, end, placeholder)
        return Replacement(finding.start, finding.end, placeholder + finding.tail)

    def in_order(self, text: str) -> Iterator[Replacement]:
        """Yield the edits to new numbers in order of place: a later round may have found something earlier in the text."""
        last = Counter(self._in_original)
        given: dict[tuple[str, int], int] = {}

        for match in self._pattern.finditer(text) if self._numbers else ():
            word, number = match[1], int(match[2])
            if number <= self._in_original[word]:
                continue
            if (word, number) not in given:
                last[word] += 1
                given[word, number] = last[word]
            yield Replacement(match.start(), match.end(), f"<redacted-{word}-{given[word, number]}>")


def _repeated(path: str, text: str, values: Mapping[str, str]) -> list[_Redaction]:
    """Return the other places of values that were found, where they mean the same: as they were, without escapes, divided.

    A value is never between letters and digits, so that its longest word is a word of the text wherever it occurs.
    """
    readings = {_ESCAPED.sub(r"\1", value): value for value in values} | {value: value for value in values}
    stretches: dict[str, set[tuple[int, int]]] = {}  # of a word: where a value begins before it, and its length
    for reading in readings:
        words = _WORD.findall(reading)
        if len(reading) >= _MIN_REPEATED and words:
            word = max(words, key=len)
            of_word = stretches.setdefault(word, set())
            if len(of_word) < _MAX_STRETCHES:
                of_word.add((reading.index(word), len(reading)))
    if not stretches:
        return []
    code = _Code(path, text)
    found = [
        each
        for each in _places(text, stretches, readings)
        if _means_the_same(text, each.start, each.end, code)
        and (each.value == text[each.start : each.end] or code.has_none_of(each.start, each.end))
    ]
    found += find_divided(text, lambda joined: _told_places(joined, stretches, readings))
    return [_Redaction(values[each.value], each) for each in found]


def _places(text: str, stretches: Mapping[str, set[tuple[int, int]]], readings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the stretches around the words of a text that are readings of values."""
    for match in _WORD.finditer(text):
        for offset, length in sorted(stretches.get(match[0], ())):
            start = match.start() - offset
            reading = text[start : start + length] if start >= 0 else ""
            if reading in readings and len(reading) == length:
                yield Finding(start, start + length, readings[reading])


def _told_places(
    text: str, stretches: Mapping[str, set[tuple[int, int]]], readings: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield the places of values that mean the same anywhere."""
    for each in _places(text, stretches, readings):
        if _is_apart(text, each.start, each.end) and _is_told_anywhere(text[each.start : each.end]):
            yield each


def _means_the_same(text: str, start: int, end: int, code: "_Code") -> bool:
    """Return whether a place of a value is the value again, by how much of a word of its own the value is.

    Eight letters and digits mean the same anywhere. What has a sign, six letters and digits, or sixteen characters is no word of
    a language, but may be an expression of code: it goes from comments and literals. Any other may be a word: it goes where it
    is all of a literal.
    """
    value, before, after = text[start:end], text[start - 1 : start], text[end : end + 1]
    if not _is_apart(text, start, end):
        return False
    if _is_told_anywhere(value):
        return True
    is_mixed = _is_mixed(value)
    if before in ("'", '"', "`") and text[end : end + 4].lstrip("\\")[:1] == before:
        return True
    is_telling = (is_mixed and len(value) >= _MIN_MIXED_IN_TEXT) or len(value) >= _MIN_LONG or _SIGN.search(value)
    return bool(is_telling) and "_" not in (before, after) and not code.holds(start)


def _is_apart(text: str, start: int, end: int) -> bool:
    """Return whether a stretch is no part of a longer word."""
    return not (_continues(text[start - 1 : start], text[start]) or _continues(text[end : end + 1], text[end - 1]))


def _is_told_anywhere(value: str) -> bool:
    return len(value) >= _MIN_MIXED and _is_mixed(value)


def _is_mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _continues(character: str, edge: str) -> bool:
    """Return whether a character beside a value makes it a part of a longer word: a letter or digit, of the same script."""
    return character.isalnum() and (not edge.isalnum() or character.isascii() == edge.isascii())


class _Code:
    """The places of a text that are in no comment and no literal. The text is read at the first use."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._spans: list[tuple[int, int]] | None = None

    def holds(self, place: int) -> bool:
        """Return whether a place is one of code."""
        return self._end_at(place) <= place

    def has_none_of(self, start: int, end: int) -> bool:
        """Return whether a stretch is in one comment or literal."""
        return self._end_at(start) >= end

    def _end_at(self, place: int) -> int:
        """Return the end of the comment or literal that a place is in, or a place before it."""
        if self._spans is None:
            found = lexed(lexer_of(self._path), self._text)
            literals = found.tokens[np.isin(found.data[found.tokens[:, 1] - 1], _QUOTES)]
            self._spans = sorted(map(tuple, found.in_characters(np.concatenate([found.comments, literals])).tolist()))
        index = bisect(self._spans, place, key=lambda span: span[0]) - 1
        return self._spans[index][1] if index >= 0 else -1


def _outside(spans: list[tuple[int, int]], redactions: list[_Redaction]) -> list[_Redaction]:
    """Return the redactions that are in none of the waived stretches."""
    return [
        each
        for each in redactions
        if not any(start <= each.finding.start and each.finding.end <= end for start, end in spans)
    ]


def _disjoint(groups: Iterable[Iterable[_Redaction]]) -> list[_Redaction]:
    """Return redactions in order of place. Of overlapping ones keep that of the earlier group, then the earlier, the longer."""
    kept: list[_Redaction] = []
    for group in groups:
        for redaction in sorted(group, key=lambda each: (each.finding.start, -each.finding.end)):
            start, end = redaction.finding.start, redaction.finding.end
            position = bisect(kept, start, key=lambda other: other.finding.start)
            neighbors = kept[max(0, position - 1) : position + 1]
            is_apart = all(other.finding.end <= start or end <= other.finding.start for other in neighbors)
            if start < end and is_apart:
                kept.insert(position, redaction)
    return kept


def _quoted_includes(text: str) -> Iterator[Replacement]:
    """Yield the edits that quote an include of a placeholder: its own bracket would close an angled one."""
    for match in _ANGLED_INCLUDE.finditer(text):
        yield Replacement(match.end(1), match.end(1) + 1, '"')
        yield Replacement(match.end() - 1, match.end(), '"')
