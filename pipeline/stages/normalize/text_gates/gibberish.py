"""Gibberish: what wrongly decoded text looks like, and the search for it in kept texts.

The gate on what is stored searches with it, and nothing here is shared with the rules that decode, so that neither hides a mistake
of the other: it knows no bytes, no encodings and no frequencies, but the shapes that people see, and the alphabets of languages.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    import pyarrow as pa

_SHAPES = {
    "an accent of two characters": r"[a-z]Ã[\x{a0}-\x{bf}€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ]|Ã[©¨§¡³±¼¶¤ª®´ºº][a-z]"
    r"|(?m)(?:^|[\x00-\x40\x5b-\x7f])Ã[©¨§¡³±¼¶¤ª®´º](?:[\x00-\x7f]|$)|[a-z][ÅÄ][€‚„…†‡‰‹‘“”•–™›¡-©«-³¶¸¹»-¿][a-z]",
    "a sign after a letter that never has it": r"Â[©®°±§«»·µ²³¹¼½¾\x{a0}]|В[©®°±§]|Г[©±¶ј][a-z]",
    "a quotation mark of three characters": r"â€[™œ“”˜¦¢]|вЂ[™њќ”“¦]|ï»¿|п»ї",
    "Cyrillic of two characters": r"(?:[РС][\x{a0}-\x{bf}ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—™љ›њќћџЎўЈҐЁЄЇІіґёєјЅѕї]){4}"
    r"|(?:[ÐÑ][\x{80}-\x{bf}€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œžŸ]){3}",
    "a replacement mark read as Chinese": "锟斤拷|烫烫烫|屯屯屯",
    "Japanese read as Chinese": r"[\x{3041}-\x{30fa}]〖(?:[\x{3041}-\x{30fa}]|[^\pL])",
    "UTF-8 read as Japanese": r"(?:[縺繧繝][\x{3040}-\x{30ff}\x{4e00}-\x{9fff}\x{ff61}-\x{ff9f}]){3}"
    r"|[a-z]ﾃ[\x{ff61}-\x{ff9f}]|[a-z]ﾃ[a-z]",
}
_OF_ONE_CHARACTER = tuple(_SHAPES)[:3]
_ALONE = re2.compile(r"(?:^|[^A-Za-z\x80-\x{10ffff}])[^\x00-\x7fÃÂâÐÑ]{1,8}(?:$|[^A-Za-z\x80-\x{10ffff}])")
_LOST_WORDS = {"a replacement character in a word": r"[A-Za-z]\x{fffd}|\x{fffd}[\x{fffd}A-Za-z]"}
_MEANT = re2.compile(r"(?i)fffd|replac")
"""Words of a text that has replacement characters on purpose."""
_OTHER_SCRIPT = r"[\p{Cyrillic}\p{Greek}\p{Hebrew}\p{Arabic}]"
_SHAPES_OF_LEGACY = {
    "a control character": r"[\x{80}-\x{9f}]",
    "a character for private use": r"\p{Co}",
    "half-width katakana": r"[\x{ff61}-\x{ff9f}]",
    "a replacement character": r"\x{fffd}",
    "a word in two scripts": rf"(?m)(?:^|[^\w%\\.*-])[A-Za-z]+{_OTHER_SCRIPT}+(?:[A-Za-z]|$|[^\w])"
    rf"|{_OTHER_SCRIPT}[A-Za-z]+{_OTHER_SCRIPT}",
    "a sign within a word": r"(?:^|[^\\%A-Za-zÀ-ž])[A-Za-zÀ-ž]+[¤¦¨¯¼½¾¸¹º¿†‡‰¢£¥¬\x{2500}-\x{25ff}][a-zß-ž]"
    r"|[A-Za-zÀ-ž]{2}[±×÷²³][a-zß-ž]{2}",
    "capitals within a word": r"(?:^|[^\pL])(?:[а-џ][А-Я]{4}|[ά-ώ][Α-Ω]{4})",
}
_EUROPEAN = r"[\x{aa}\x{ba}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{24f}]"
_ALPHABETS = """
    àâæçéèêëîïôœùûüÿñªº  äöüßéàèç  áéíóúüñçªº  àèéìíîòóùúªº  àáâãçéêíóôõúüªº  éëïóöüáèàê  åäöéàüæø  æøåéèêóòôäöü  áðéíóúýþæö
    äöåšžéõü      ąćęłńóśźżé  áčďéěíňóřšťúůýž  áäčďéíĺľňóôŕšťúýžěř  áéíóöőúüű  ăâîșțşţé  čćđšž  äöõüšž  āčēģīķļņšūžōŗ  ąčęėįšųūž
    çğıöşüâîûİé
    àçèéíïòóúüª  ĉĝĥĵŝŭ  ëç  áéíóúâêîôûŵŷ  áàảãạăắằẳẵặâấầẩẫậéèẻẽẹêếềểễệíìỉĩịóòỏõọôốồổỗộơớờởỡợúùủũụưứừửữựýỳỷỹỵđ
"""
ALPHABETS = tuple(frozenset(each) for each in _ALPHABETS.split())
"""Letters beyond ASCII of languages in Latin script, each a word here."""

_SHAPE = re2.compile("|".join(f"({expression})" for expression in _SHAPES.values()))
_LOST_WORD = re2.compile("|".join(f"({expression})" for expression in _LOST_WORDS.values()))
_SHAPE_OF_LEGACY = re2.compile("|".join(f"({expression})" for expression in _SHAPES_OF_LEGACY.values()))
_LETTER = re2.compile(_EUROPEAN)
_FORMAT = re2.compile(r"%(?:\(\w{1,60}\)|\d{1,2}\$)?[-+#0'*.\d]{0,20}(?:hh|ll|[hlqjztL])?[A-Za-z]")
"""A conversion of printf, Python or strftime, whose last letter is no part of the word after it."""
_MIN_LETTERS, _MIN_SHARE = 8, 0.8


@dataclass(frozen=True)
class Gibberish:
    """A finding: what it looks like, and the line from 1 on which it begins."""

    name: str
    line: int


def find_gibberish(text: str, encoding: str) -> list[Gibberish]:
    """Return the first shape of wrongly decoded text of each expression; those of legacy encodings where UTF-8 uses them too."""
    if text.isascii():
        return []
    searched = [(_SHAPE, tuple(_SHAPES), text)]
    if "\ufffd" in text and _MEANT.search(text) is None:
        searched.append((_LOST_WORD, tuple(_LOST_WORDS), text))
    if not _is_of_unicode(encoding):
        searched.append((_SHAPE_OF_LEGACY, tuple(_SHAPES_OF_LEGACY), _FORMAT.sub(" ", text)))
    found = [
        Gibberish(names[match.lastindex - 1], 1 + shown.count("\n", 0, match.start()))
        for expression, names, shown in searched
        if (match := _first_match(expression, shown)) is not None
    ]
    if not _is_of_unicode(encoding) and not _is_of_one_alphabet(text):
        found.append(Gibberish("letters of no one language", 1))
    return found


def _first_match(expression: Any, text: str) -> Any:
    """Return the first match but for those on a line that has what they stand for by itself, as one about wrong decoding has."""
    for match in expression.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 :].split("\n", 1)[0]
        if (
            expression is not _SHAPE
            or match.lastindex > len(_OF_ONE_CHARACTER)
            or not _ALONE.search(line.replace(match[0], " "))
        ):
            return match
    return None


def gibberish_in_rows(documents: "pa.Table") -> Iterator[tuple[str, Gibberish]]:
    """Yield path and finding of the documents that look wrongly decoded."""
    for path, encoding, text in zip(
        documents["path"].to_pylist(), documents["encoding"].to_pylist(), documents["text"], strict=True
    ):
        yield from ((path, found) for found in find_gibberish(text.as_py(), encoding))


def _is_of_unicode(encoding: str) -> bool:
    return encoding.startswith(("ascii", "utf_"))


def _is_of_one_alphabet(text: str) -> bool:
    """Return whether most Latin letters beyond ASCII are in the alphabet of one language. A few letters tell nothing."""
    letters = [unicodedata.normalize("NFC", letter).lower() for letter in _LETTER.findall(text)]
    if len(letters) < _MIN_LETTERS:
        return True
    most = max(sum(letter in alphabet for letter in letters) for alphabet in ALPHABETS)
    return most >= _MIN_SHARE * len(letters)
