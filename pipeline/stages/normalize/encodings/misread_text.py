"""Misread text: valid UTF-8 of words in no language, which are words of one when read as another encoding.

Somebody read a file in the wrong encoding and wrote it as UTF-8: `Jьrgen` for `Jürgen`, `мУп║` for `释放`. Only a text whose own
words are likely in no language is tried, so that none is refused because another could be made of its bytes.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import re2

from pipeline.stages.normalize.encodings.legacy_encodings import (
    IMPOSSIBLE,
    cost_of,
    has_broken_word,
    is_letter,
    without_formats,
)

_EAST_ASIAN_ENCODINGS = ("cp932", "gbk", "cp949", "big5")
_OF_EAST_ASIA = ("utf_8", "gb18030", "euc_jp", "cp949", "big5", "cp932")
MISREAD_AS = (
    *("cp1252", "cp1251", "koi8_r", "cp437", "cp866", "cp850", "mac_roman", "cp1250", "cp1253", "mac_cyrillic"),
    *_EAST_ASIAN_ENCODINGS,
)
"""Encodings that a text is mistaken for, beside UTF-8, which bytes of another may be by chance.

Where Chinese, Japanese or Korean is made of it, it was UTF-8 or in another of them.
"""
_READ_FROM_NAMES = """
    utf_8 cp1252 cp1250 iso8859_2 cp1251 koi8_u cp866 cp1125 iso8859_5 mac_cyrillic cp855 cp1253 iso8859_7 cp737
    cp1254 cp1257 iso8859_4 cp775 cp850 cp852 cp865 mac_roman mac_latin2 mac_greek mac_turkish cp857 cp1255 cp1256
    cp874 cp932 gb18030 big5 euc_jp cp949 hp_roman8 kz1048 ptcp154 iso8859_9 iso8859_10 iso8859_13 cp1258 iso8859_16
    iso8859_6 cp860 cp861 cp863
"""
READ_FROM = tuple(_READ_FROM_NAMES.split())
"""Encodings that it may have been in."""

MIN_MEAN_COST, MIN_MEAN_COST_OF_CYRILLIC = 5.0, 4.4
"""Mean cost of a character from which the words of a text may be in no language."""
MAX_COST_BEFORE, MAX_COST_OF_UTF_8 = 6.5, 9.4
"""Mean cost of a character at most in the text that it was."""
MIN_SAVED, MIN_SAVED_SHARE = 12.0, 0.4
MIN_SAVED_OF_WHOLE, MIN_SAVED_SHARE_OF_WHOLE = 10.0, 0.3
MIN_SAVED_IN_BROKEN, MIN_SAVED_SHARE_IN_BROKEN = 4.0, 0.2
MIN_SAVED_OF_SCRIPT, MIN_SAVED_SHARE_OF_SCRIPT = 5.0, 0.15
"""Cost that must be saved by it, in natural units, and as a share.

It is less if all characters fit, and then where a word is broken, and between encodings of Cyrillic letters or of East Asia, where
words in the wrong one are likely in no language.
"""
MAX_LOST_SHARE = 0.1
"""Characters that need not fit."""

_MAX_WORDS, _MAX_CHARACTERS, _MIN_ROW, _MIN_ASCENDING, _MIN_CHART = 60, 1_000, 6, 5, 12
"""Words and characters of a text that are judged, so that its length adds no time; the shortest rows of characters."""
MIN_COST_OF_LINE, MIN_MEAN_COST_OF_LINE = 20.0, 6.0
"""Cost of a line, and of its characters in the mean, from which it is tried alone."""
COST_OF_RARE = 14.0
"""Cost of an ideograph or a syllable that is in no table, as a letter beyond ASCII and the one after it become."""
MIN_BYTES_OF_LINE, _MAX_LINES, _MAX_ODD_LINES = 8, 400, 8
MAX_CUT, _MIN_BEFORE_CUT, _CUT = 2, 1, 8.0
"""Bytes of a character of UTF-8 that was cut, the characters before it that show so, and its cost."""
_LOST = 14.0
"""Cost of a character or byte that does not fit."""
MIN_WITHIN_WORDS, MIN_SHARE_WITHIN_WORDS = 2, 0.5
"""Ideographs, syllables, half-width katakana and private characters within Latin words: so many, most of all that the text has."""
_EAST_ASIAN = r"[\p{Han}\p{Hangul}\p{Co}\x{ff61}-\x{ff9f}]"
_EAST_ASIAN_RUNS = re2.compile(_EAST_ASIAN + "+")
_WITHIN_WORDS = re2.compile(f"[A-Za-z]{{2}}{_EAST_ASIAN}{{1,3}}[a-z]|[A-Za-z]{_EAST_ASIAN}{{1,3}}[a-z]{{2}}")
_INSIDE_WORDS = re2.compile(f"[A-Za-z]({_EAST_ASIAN})[a-z]")
_FOREIGN_WORDS = re2.compile(r"[A-Za-z]*[^\x00-\x7f][^\x00-\x40\x5b-\x60\x7b-\x7f]*")

_FOREIGN_PIECES = re2.compile(r"[^\x00-\x20]*[^\x00-\x7f][^\x00-\x20]*")
_CYRILLIC, _LETTERS = re2.compile(r"\p{Cyrillic}"), re2.compile(r"[^\x00-\x7f\PL]")
_EAST_ASIAN_LETTERS = re2.compile(r"[\p{Han}\p{Hangul}\x{3041}-\x{30ff}\x{ff61}-\x{ff9f}]")
_LONG_CYRILLIC = re2.compile(r"\p{Cyrillic}{4}")
_ACCENTS = re2.compile(r"[\n\x{80}-\x{24f}\x{2000}-\x{2bff}]+")
"""Letters of Latin script without any of ASCII, as lists of letters have them."""
_SCRIPTS = ((_CYRILLIC, _LONG_CYRILLIC), (_EAST_ASIAN_LETTERS, _EAST_ASIAN_LETTERS))
"""Letters of a script, and the words of them that tell an encoding from another of the script."""
_INNER_CAPITALS, _FOREIGN_CAPITALS_WITHIN = re2.compile(r"\p{Ll}\p{Lu}"), re2.compile(r"\p{Ll}[^\x00-\x7f\P{Lu}]\p{Ll}")
_BETWEEN_ASCII = re2.compile(r"[\x01-\x7f\x{a0}\x{2007}\x{202f}]+")
"""Words of ASCII with blanks between them at which no line is broken, as web pages have them."""


class _Misreading(NamedTuple):
    """A text that another may have been before it was read as it is, at its cost."""

    cost: float
    read_as: str
    was: str
    before: str
    is_whole: bool
    text: str


def find_misreading(text: str) -> str | None:
    """Return what shows that a text was read in the wrong encoding before; None for a text in a language, or of signs alone."""
    within = _WITHIN_WORDS.findall(text)
    if len(within) >= MIN_WITHIN_WORDS and len(within) > MIN_SHARE_WITHIN_WORDS * len(_EAST_ASIAN_RUNS.findall(text)):
        return f"text that was read in an East Asian encoding: {len(within)} words such as {within[0][:20]!r}"
    inside = _INSIDE_WORDS.findall(text)
    if 2 * len(inside) > len(_EAST_ASIAN_RUNS.findall(text)) and all(map(_is_rare, inside)):
        return f"text that was read in an East Asian encoding: {inside[0]!r} is within a word of Latin letters"
    text = without_formats(text)
    best = _best_reading(text)
    if best is None:
        best = next(filter(None, (_best_reading(line, is_line=True) for line in _odd_lines(text))), None)
    if best is None:
        return None
    return (
        f"text in {best.was} that was read as {best.read_as}: {best.text.split(chr(10))[0][:20]!r} stands for"
        f" {best.before.split(chr(10))[0][:20]!r}"
    )


def _is_rare(character: str) -> bool:
    """Return whether no language writes a character often enough to have it in its table."""
    return cost_of(character)[0] >= COST_OF_RARE


def _odd_lines(text: str) -> list[str]:
    """Return the lines whose words cost the most, of several that are not ASCII: one may be misread among sound ones."""
    lines = list(dict.fromkeys(line for line in text.split("\n") if not line.isascii()))
    if len(lines) < 2:
        return []
    costs = [cost_of(line[:_MAX_CHARACTERS]) for line in lines[:_MAX_LINES]]
    odd = [
        (-cost, line)
        for line, (cost, num_foreign) in zip(lines, costs, strict=False)
        if cost >= max(MIN_COST_OF_LINE, MIN_MEAN_COST_OF_LINE * num_foreign)
    ]
    return [line for _, line in sorted(odd)[:_MAX_ODD_LINES]]


def _best_reading(text: str, *, is_line: bool = False) -> _Misreading | None:
    """Return the cheapest of what a text may have been; None if its words are likely, or not more likely so."""
    found = dict.fromkeys(_FOREIGN_WORDS.findall(text))
    if is_line and sum(len(word.encode()) for word in found if not _ACCENTS.fullmatch(word)) < MIN_BYTES_OF_LINE:
        return None
    words = [word for word in found if len(word) > 1 and not _is_row(word) and not _BETWEEN_ASCII.fullmatch(word)]
    joined = "\n".join(words[:_MAX_WORDS])[:_MAX_CHARACTERS]
    cost, num_foreign = cost_of(joined)
    is_cyrillic = _is_mostly(_CYRILLIC, joined)
    if cost < (MIN_MEAN_COST_OF_CYRILLIC if is_cyrillic else MIN_MEAN_COST) * num_foreign:
        return None
    is_east_asian = _is_mostly(_EAST_ASIAN_LETTERS, joined)
    return min(
        (
            each
            for each in _readings(joined, text, cost)
            if each.read_as not in _EAST_ASIAN_ENCODINGS or is_east_asian
            if each.cost <= _most_cost(each, cost)
        ),
        default=None,
    )


def _most_cost(reading: _Misreading, cost: float) -> float:
    """Return the most that a text may have cost before it was misread, by what tells that it was."""
    share, least = MIN_SAVED_SHARE, MIN_SAVED
    has_capitals = len(_FOREIGN_CAPITALS_WITHIN.findall(reading.text)) >= MIN_WITHIN_WORDS
    if reading.is_whole and (has_capitals or has_broken_word(reading.text)):
        share, least = MIN_SAVED_SHARE_IN_BROKEN, MIN_SAVED_IN_BROKEN if reading.read_as != "utf_8" else 0.0
    elif reading.is_whole and any(
        words.search(reading.text) and _is_mostly(letters, reading.text) and _is_mostly(letters, reading.before)
        for letters, words in _SCRIPTS
    ):
        share, least = MIN_SAVED_SHARE_OF_SCRIPT, MIN_SAVED_OF_SCRIPT
    elif reading.is_whole and _is_mostly(_LETTERS, reading.text) and not _ACCENTS.fullmatch(reading.text):
        share, least = MIN_SAVED_SHARE_OF_WHOLE, MIN_SAVED_OF_WHOLE
    return (1 - share) * cost - least


def _is_mostly(script: Any, text: str) -> bool:
    return 2 * len(script.findall(text)) > len(text) - len(text.encode("ascii", "ignore"))


def _is_row(word: str) -> bool:
    """Return whether a word is a table of characters: most follow each other by their numbers, or all ascend, as in `äëïöü`."""
    steps = [ord(second) - ord(first) for first, second in pairwise(word)]
    if len(word) > _MIN_ROW and 2 * steps.count(1) > len(word):
        return True
    if len(word) >= _MIN_ASCENDING and min(steps) > 0 and not any(map(str.isascii, word)):
        return True
    return len(word) > _MIN_CHART and any(_is_chart(word.encode(encoding, "ignore")) for encoding in MISREAD_AS)


def _is_chart(content: bytes) -> bool:
    """Return whether bytes are in the order of their numbers, as in a table of what an encoding has."""
    return len(content) > _MIN_CHART and all(first < second for first, second in pairwise(content))


def _readings(words: str, text: str, max_cost: float) -> Iterator[_Misreading]:
    """Yield what the words of a text may have been, below a cost.

    The second byte of a character of East Asia may be a sign of ASCII.
    """
    pieces = "\n".join(dict.fromkeys(_FOREIGN_PIECES.findall(text)))[:_MAX_CHARACTERS]
    is_of_names = 2 * len(words) <= _MAX_CHARACTERS and has_broken_word(words)
    for read_as in (*MISREAD_AS, "utf_8") if is_of_names else MISREAD_AS:
        for was in READ_FROM if read_as not in _EAST_ASIAN_ENCODINGS else _OF_EAST_ASIA:
            # A letter of two bytes beside ASCII ones may be one that looks as theirs.
            if read_as == "utf_8" and (was in _OF_EAST_ASIA or len(words) - len(words.encode("ascii", "ignore")) < 2):
                continue
            shown = pieces if was in _OF_EAST_ASIA and read_as not in _EAST_ASIAN_ENCODINGS else words
            content = shown.encode(read_as, "ignore")
            num_lost = len(shown) - len(content.decode(read_as, "ignore"))
            if num_lost > MAX_LOST_SHARE * len(shown):
                continue
            before = content.decode(was, "ignore")
            num_bad = len(content) - len(before.encode(was, "ignore"))
            is_cut = was == "utf_8" and not num_lost and 0 < num_bad <= MAX_CUT and len(before) > _MIN_BEFORE_CUT
            lost = _CUT if is_cut else _LOST * (num_lost + num_bad)
            has_capitals = len(_INNER_CAPITALS.findall(before)) > len(_INNER_CAPITALS.findall(shown))
            if lost <= max_cost and before != shown and read_as != was and not has_capitals and _is_of_letters(before):
                cost, num_foreign = cost_of(before)
                most = (MAX_COST_OF_UTF_8 if was == "utf_8" else MAX_COST_BEFORE) * num_foreign
                if cost + (0.0 if is_cut else lost) <= most and cost + lost <= max_cost:
                    yield _Misreading(cost + lost, read_as, was, before, is_cut or not lost, shown)


def _is_of_letters(text: str) -> bool:
    foreign = [character for character in text if not character.isascii()]
    return 2 * sum(map(is_letter, foreign)) > len(foreign) and not IMPOSSIBLE.search(text)
