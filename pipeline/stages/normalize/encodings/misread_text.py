"""Misread text: valid UTF-8 of words in no language, which are words of one when read as another encoding.

Somebody read a file in the wrong encoding and wrote it as UTF-8: `Jьrgen` for `Jürgen`, `мУп║` for `释放`. Only a text whose own
words are likely in no language is tried, so that none is refused because another could be made of its bytes.
"""

from itertools import pairwise
from typing import NamedTuple

import re2

from pipeline.stages.normalize.encodings.legacy_encodings import (
    IMPOSSIBLE,
    cost_of,
    has_broken_word,
    is_letter,
    without_formats,
)

_EAST_ASIAN_ENCODINGS = ("cp932", "gbk", "cp949")
MISREAD_AS = (
    *("cp1252", "cp1251", "koi8_r", "cp437", "cp866", "cp850", "mac_roman", "cp1250", "cp1253", "mac_cyrillic"),
    *_EAST_ASIAN_ENCODINGS,
)
"""Encodings that a text is mistaken for; where Chinese, Japanese or Korean is made of it, it was UTF-8."""
READ_FROM = (
    *(
        "utf_8",
        "cp1252",
        "cp1250",
        "iso8859_2",
        "cp1251",
        "koi8_u",
        "cp866",
        "cp1125",
        "iso8859_5",
        "mac_cyrillic",
        "cp855",
    ),
    *("cp1253", "iso8859_7", "cp737", "cp1254", "cp1257", "iso8859_4", "cp775", "cp850", "cp852", "cp865", "mac_roman"),
    *(
        "mac_latin2",
        "mac_greek",
        "mac_turkish",
        "cp857",
        "cp1255",
        "cp1256",
        "cp874",
        "cp932",
        "gb18030",
        "big5",
        "euc_jp",
        "cp949",
    ),
    *("hp_roman8", "kz1048", "ptcp154", "iso8859_9", "iso8859_10", "iso8859_13", "cp1258", "iso8859_16"),
)
"""Encodings that it may have been in."""

MIN_MEAN_COST = 5.0
"""Mean cost of a character from which the words of a text may be in no language."""
MAX_COST_BEFORE = 6.5
"""Mean cost of a character at most in the text that it was."""
MIN_SAVED, MIN_SAVED_SHARE = 12.0, 0.4
MIN_SAVED_IN_BROKEN, MIN_SAVED_SHARE_IN_BROKEN = 4.0, 0.2
"""Cost that must be saved by it, in natural units, and as a share; and where a word is broken, if all characters fit."""
MAX_LOST_SHARE = 0.1
"""Characters that need not fit."""

_MAX_WORDS, _MAX_CHARACTERS, _MIN_ROW, _MIN_ASCENDING, _MIN_CHART = 60, 1_000, 6, 5, 12
"""Words and characters of a text that are judged, so that its length adds no time; the shortest rows of characters."""
_LOST = 14.0
"""Cost of a character or byte that does not fit."""
MIN_WITHIN_WORDS, MIN_SHARE_WITHIN_WORDS = 2, 0.5
"""Ideographs, syllables, half-width katakana and private characters within Latin words: so many, most of all that the text has."""
_EAST_ASIAN = r"[\p{Han}\p{Hangul}\p{Co}\x{ff61}-\x{ff9f}]"
_EAST_ASIAN_RUNS = re2.compile(_EAST_ASIAN + "+")
_WITHIN_WORDS = re2.compile(f"[A-Za-z]{{2}}{_EAST_ASIAN}{{1,3}}[a-z]|[A-Za-z]{_EAST_ASIAN}{{1,3}}[a-z]{{2}}")
_FOREIGN_WORDS = re2.compile(r"[A-Za-z]*[^\x00-\x7f][^\x00-\x40\x5b-\x60\x7b-\x7f]*")

_BETWEEN_ASCII = re2.compile(r"[\x01-\x7f\x{a0}\x{2007}\x{202f}]+")
"""Words of ASCII with blanks between them at which no line is broken, as web pages have them."""


class _Misreading(NamedTuple):
    """A text that another may have been before it was read as it is, at its cost."""

    cost: float
    read_as: str
    was: str
    before: str
    is_whole: bool


def find_misreading(text: str) -> str | None:
    """Return what shows that a text was read in the wrong encoding before; None for a text in a language, or of signs alone."""
    within = _WITHIN_WORDS.findall(text)
    if len(within) >= MIN_WITHIN_WORDS and len(within) > MIN_SHARE_WITHIN_WORDS * len(_EAST_ASIAN_RUNS.findall(text)):
        return f"text that was read in an East Asian encoding: {len(within)} words such as {within[0][:20]!r}"
    found = dict.fromkeys(_FOREIGN_WORDS.findall(without_formats(text)))
    words = [word for word in found if len(word) > 1 and not _is_row(word) and not _BETWEEN_ASCII.fullmatch(word)]
    joined = "\n".join(words[:_MAX_WORDS])[:_MAX_CHARACTERS]
    cost, num_foreign = cost_of(joined)
    if cost < MIN_MEAN_COST * num_foreign:
        return None
    most = (1 - MIN_SAVED_SHARE) * cost - MIN_SAVED
    most_of_whole = most
    if has_broken_word(joined):
        most_of_whole = (1 - MIN_SAVED_SHARE_IN_BROKEN) * cost - MIN_SAVED_IN_BROKEN
    best = min((each for each in _readings(joined, most_of_whole) if each.is_whole or each.cost <= most), default=None)
    if best is None:
        return None
    _, read_as, was, before, _ = best
    return f"text in {was} that was read as {read_as}: {words[0][:20]!r} stands for {before.split(chr(10))[0][:20]!r}"


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


def _readings(text: str, max_cost: float) -> list[_Misreading]:
    """Return what a text may have been, below a cost."""
    found = []
    for read_as in MISREAD_AS:
        content = text.encode(read_as, "ignore")
        num_lost = len(text) - len(content.decode(read_as, "ignore"))
        if num_lost > MAX_LOST_SHARE * len(text):
            continue
        for was in READ_FROM if read_as not in _EAST_ASIAN_ENCODINGS else READ_FROM[:1]:
            before = content.decode(was, "ignore")
            lost = _LOST * (num_lost + len(content) - len(before.encode(was, "ignore")))
            if lost <= max_cost and before != text and _is_of_letters(before):
                cost, num_foreign = cost_of(before)
                if cost + lost <= min(max_cost, MAX_COST_BEFORE * num_foreign):
                    found.append(_Misreading(cost + lost, read_as, was, before, not lost))
    return found


def _is_of_letters(text: str) -> bool:
    foreign = [character for character in text if not character.isascii()]
    return 2 * sum(map(is_letter, foreign)) > len(foreign) and not IMPOSSIBLE.search(text)
