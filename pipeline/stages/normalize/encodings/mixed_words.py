"""Mixed words: letters of another script, or signs, where no language writes them, which a wrong encoding makes.

In UTF-8 only what nobody writes counts; names in code, formulas and abbreviations mix scripts. Legacy encodings have no such
names, so that there every word in two scripts counts, and letters of no one language.
"""

from itertools import pairwise

import re2

from pipeline.stages.normalize.encodings.word_costs import most_in_one_alphabet

MIN_SIGNS = 2
"""Signs in places of none, in text without a blank."""
MIN_ACCENTED, MIN_IN_ALPHABET = 8, 0.8
"""Latin letters beyond ASCII that tell a language, and the share of them that one must have."""
_MIN_CHART = 5
_LOOKS_LATIN = "АВЕЅІЈКМНОРСТУХҮаеорсухіјѕһԁԛԝү"
"""Cyrillic letters that are typed for Latin ones."""
_OTHER = (
    r"(?:[\p{Armenian}\p{Hebrew}\p{Arabic}\p{Thaana}\p{Thai}]"
    rf"|[^\x00-\x{{3ff}}\x{{500}}-\x{{10ffff}}{_LOOKS_LATIN}])"
)
_WITHIN_LATIN = re2.compile(rf"[A-Za-z]+{_OTHER}{{1,2}}[a-z]{{2}}|[A-Za-z]{{2}}{_OTHER}{{1,2}}[a-z]")
_ACCENTED = r"[\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{24f}]"
_LETTER = r"[A-Za-z\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{24f}]"
_NEVER_WITHIN, _NEVER_BEFORE = "¡¢£¤¥¦¨©¬¯¶¸¹¼½¾¿‚ƒ„†‡ˆ‰‹“‘˜›", "±²¤¦¨¯¶¸¹¼½¾ˆ˜†‡‰³"
_SIGNS = re2.compile(
    rf"{_LETTER}[{_NEVER_WITHIN}]+{_LETTER}|[{_NEVER_BEFORE}]{_ACCENTED}|[¯˜ˆ¸¤]{_LETTER}|{_ACCENTED}[³²¹±º]|[³¹][a-z]{{2}}"
)
_PIECES = re2.compile(r"[^\x00-\x20]*[\x{a1}-\x{24f}\x{2c6}-\x{2dc}\x{2018}-\x{203a}][^\x00-\x20]*")
_OF_CHARTS = ("latin_1", "iso8859_15", "cp1252", "mac_roman", "cp437", "cp850")

_SCRIPTS = r"\p{Cyrillic}\p{Greek}\p{Hebrew}\p{Arabic}\p{Armenian}"
_IN_TWO_SCRIPTS = re2.compile(rf"[A-Za-z][{_SCRIPTS}]|[{_SCRIPTS}][A-Za-z]+[{_SCRIPTS}]")
_SIGN_BETWEEN = re2.compile(
    rf"{_LETTER}{{2}}[±×÷²³]{_LETTER}{{2}}|{_LETTER}[º¤¦¨¯¼½¾¸¹¿†‡‰¢£¥¬\x{{2500}}-\x{{25ff}}][a-zß-ž]"
)
_CAPITALS = re2.compile(r"(?:^|[^\pL])(?:[а-џ][А-Я]{4}|[ά-ώ][Α-Ω]{4})")
_IN_JAPANESE = re2.compile(r"[\x{3041}-\x{30fe}][\x{400}-\x{58f}ιου][\x{3041}-\x{30fe}]")
_OPENING = re2.compile(r"[¿¡][A-Za-z\x{c0}-\x{24f}]")
_SIGN_OF_END = {"¿": "?", "¡": "!"}
_MAX_SENTENCE = 500
_LATIN_BEYOND_ASCII = re2.compile(_ACCENTED)


def find_mixed_word(text: str) -> str | None:
    """Return what shows that a word was read in the wrong encoding before, in any encoding now; None if none does."""
    if (within := _WITHIN_LATIN.search(text)) is not None:
        return f"text that was read in another encoding: {within[0][:20]!r} is a word in two scripts"
    for piece in dict.fromkeys(_PIECES.findall(text)):
        if len(_SIGNS.findall(piece)) >= MIN_SIGNS and not _is_chart(piece):
            return f"text that was read in another encoding: {piece[:20]!r} has signs within words"
    return None


def find_flaw_of_legacy(text: str) -> str | None:
    """Return what shows that a text is not in the legacy encoding that was guessed; None if nothing does."""
    for expression, what in (
        (_IN_TWO_SCRIPTS, "is a word in two scripts"),
        (_SIGN_BETWEEN, "has a sign within a word"),
        (_CAPITALS, "has capitals within a word"),
        (_IN_JAPANESE, "has a foreign letter between kana"),
    ):
        if (found := expression.search(text)) is not None:
            return f"{found[0]!r} {what}"
    for opening in _OPENING.finditer(text):
        if _SIGN_OF_END[opening[0][0]] not in text[opening.end() : opening.end() + _MAX_SENTENCE]:
            return f"{opening[0]!r} begins a sentence that does not end"
    letters = _LATIN_BEYOND_ASCII.findall(text)
    if len(letters) >= MIN_ACCENTED and most_in_one_alphabet("".join(letters)) < MIN_IN_ALPHABET * len(letters):
        return "its letters are of no one language"
    return None


def _is_chart(piece: str) -> bool:
    """Return whether signs and letters beyond ASCII are in the order of an encoding, as in a table of it."""
    foreign = "".join(character for character in piece if not character.isascii())
    codes = (foreign.encode(encoding, "ignore") for encoding in _OF_CHARTS)
    return any(
        len(each) >= _MIN_CHART and sum(first < second for first, second in pairwise(each)) >= 0.8 * (len(each) - 1)
        for each in codes
    )
