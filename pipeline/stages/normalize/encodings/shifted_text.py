"""Shifted text: ASCII whose sequences stand for other characters, by escapes in ISO 2022, by signs in HZ and UTF-7."""

import re

import re2

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.legacy_encodings import cost_of, is_letter, is_likely

_BY_ESCAPES = ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_3", "iso2022_kr")
_UTF_7_START = re.compile(r"\+[A-Za-z0-9+/]{3}")
"""Beginning of all below: a search for one sign is much faster."""
_UTF_7_WORDS = re2.compile(r"[A-Za-z]*(?:\+[A-Za-z0-9+/]{3,}(?:-[A-Za-z]*)?)+")
_UTF_7_SIGNS = re2.compile(r"\+A[CDFH][A-Za-z0-9]-")
"""Signs of ASCII that mail programs encode too: `+ADw-` for `<`, `+ACI-` for a quote."""
MAX_COST_OF_UTF_7, MIN_UTF_7_SIGNS = (7.5, 9.4), 2
"""Mean cost of a character at most in a word that was written in UTF-7, and in one of many; signs of ASCII from which a text is."""
MAX_COST_WITHIN = 16.0
"""The same of a Latin letter after ASCII ones, with the mark of its end: names have rare ones."""
_MANY, _MAX_WORD = 3, 1_000
_SIGNS = frozenset("©®°±²³µ·§")


def decode_ascii(content: bytes) -> tuple[str, str, tuple[str, ...]] | Drop:
    """Return the text of ASCII, with encoding and edits, or the drop if it means other characters than it shows."""
    text = content.decode("ascii")
    if "\x1b$" in text:
        return _decode_escapes(content)
    if "~{" in text and "~}" in text and _is_hz(content):
        return Drop("undecodable", "HZ: Chinese written in ASCII")
    if _UTF_7_START.search(text) and (word := _find_utf_7(text)) is not None:
        return Drop("undecodable", f"UTF-7: other characters written in ASCII, such as {word[:20]!r}")
    return text, "ascii", ()


def _decode_escapes(content: bytes) -> tuple[str, str, tuple[str, ...]] | Drop:
    """Return the text of ASCII in which escape sequences switch to Japanese or Korean."""
    for encoding in _BY_ESCAPES:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if text.encode(encoding) == content and is_likely(text):
            return text, encoding, (f"decoded_from_{encoding}",)
    return Drop("undecodable", "escape sequences of ISO 2022, but of a text in no likely language")


def _is_hz(content: bytes) -> bool:
    try:
        return not content.decode("hz").isascii()
    except UnicodeDecodeError:
        return False


def _find_utf_7(text: str) -> str | None:
    """Return a word that is UTF-7 of a word in a language, or one of several signs; None for sums of names and numbers."""
    signs = _UTF_7_SIGNS.findall(text)
    if len(signs) >= MIN_UTF_7_SIGNS:
        return str(signs[0])
    words = dict.fromkeys(_UTF_7_WORDS.findall(text))
    return next((word for word in words if len(word) <= _MAX_WORD and _is_utf_7(word)), None)


def _is_utf_7(word: str) -> bool:
    try:
        meant = word.encode().decode("utf_7")
        meant.encode()
    except UnicodeError:  # of bits that are left over, or half a character
        return False
    foreign = [character for character in meant if not character.isascii()]
    # Without a mark at its end, or as one ideograph, it is three letters of any name.
    is_marked = "-" in word and (len(foreign) > 1 or foreign < ["\u2e80"])
    is_of_letters = all(is_letter(character) or (is_marked and character in _SIGNS) for character in foreign)
    is_within = word[0].isalpha() and foreign < ["\u0250"]
    if not foreign or not is_of_letters or not (is_marked or is_within or len(foreign) > 1):
        return False
    cost, num_foreign = cost_of(meant)
    most = MAX_COST_WITHIN if is_marked and is_within else MAX_COST_OF_UTF_7[len(foreign) >= _MANY]
    return cost <= most * num_foreign
