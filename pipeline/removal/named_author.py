"""NamedAuthor: a person by an address or a name, found in the bytes of a file as texts spell it.

What says its encoding is read in it: UTF-8, a byte order mark, ISO 2022 in ASCII. Other bytes are read in every encoding that
normalize decodes, each that has the letters of the author, and in UTF-16 without a mark where they hold NUL.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from pipeline.core.errors import ParamsError
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.decode import BYTE_ORDER_MARKS, decode
from pipeline.stages.normalize.encodings.legacy_encodings import CANDIDATES
from pipeline.stages.normalize.encodings.shifted_text import decode_ascii

MIN_LETTERS, MAX_CHARACTERS = 4, 200
SUBJECT = "author from stdin"
"""The words for the author in messages: the text itself is in none."""
_LEGACY = tuple(encoding for names in CANDIDATES.values() for encoding in names.split())
_UNSPACED = r"\u0e00-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
"""Letters of scripts without blanks between words, and Korean ones, which particles follow: no letter beside one is of its word."""
_OF_UNSPACED = re.compile(f"[{_UNSPACED}]")
_LETTER = rf"[^\W_{_UNSPACED}]"
_PIECE = re.compile(rf"{_LETTER}+|[{_UNSPACED}]")
_BETWEEN = r"(?:[\s*/#;!>%\\._\u200b\ufeff-]|&nbsp;|&#160;){1,40}"
"""Between the words of a name: blanks, and the marks of a comment that goes on in the next line."""
_AT = r"(?:\\?@|\s{1,4}@\s{0,4}|@\s{1,4}|%40|&#0?64;|&commat;|\s?[\[({<]\s?(?:at|@)\s?[\])}>]\s?|\s{1,4}at\s{1,4}|_at_|-at-)"
_DOT = r"(?:\.|\s{1,2}\.\s{1,2}|&#0?46;|&period;|\s?[\[({<]\s?dot\s?[\])}>]\s?|\s{1,4}dot\s{1,4}|_dot_|-dot-)"
_TAG = r"(?:\+[\w.-]{1,40})?"
"""A tag, which a mail server drops of an address: `ada+lists@host.org`."""
_BEFORE_ADDRESS = rf"(?:(?<![^\W{_UNSPACED}])(?<![.+-])|(?<=[^\w.+-][_.+-])|(?<=\A[_.+-]))"
_AFTER_ADDRESS = rf"(?!_?{_LETTER}|[.-]{_LETTER})"
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_FOLDED_TO_TWO = re.compile("ss|fi|fl")
"""Letters that may be one in the bytes, where they are in no ASCII word."""


class NamedAuthor:
    """A person. Raises ParamsError for a text that is none, which does not quote it."""

    def __init__(self, author: str) -> None:
        text = unicodedata.normalize("NFC", author.strip())
        num_letters = sum(1 + bool(_OF_UNSPACED.match(each)) for each in text if each.isalnum())
        if num_letters < MIN_LETTERS or len(text) > MAX_CHARACTERS or not text.isprintable():
            found = f"it has {len(text)} characters, {sum(map(str.isalnum, text))} of them letters and digits"
            found += ", and its bytes are not UTF-8" if any("\udc80" <= each <= "\udcff" for each in text) else ""
            expected = f"one line with an address or a name, {MIN_LETTERS} letters at least"
            expected += f", or two of a script without blanks, {MAX_CHARACTERS} characters at most"
            remedy = "Write it to stdin: `python -m pipeline withdraw --author < FILE`."
            raise ParamsError(SUBJECT, found, expected, remedy)
        self._given = " ".join(text.split())
        self._text = _folded(self._given)

    def is_in(self, content: bytes) -> bool:
        """Return whether bytes name the person, in an encoding in which they are a text."""
        return any(map(self.is_named_by, self._readings(content)))

    def is_named_by(self, text: str) -> bool:
        """Return whether a text names the person: in any case, in any form of Unicode."""
        folded = _folded(text)
        return self._key in folded and self._expression.search(folded) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        words = self._text.split(" ")
        parts = [_spelled(words[0])]
        for before, after in pairwise(words):
            is_unspaced = _OF_UNSPACED.match(before[-1]) and _OF_UNSPACED.match(after[0])
            parts += [f"(?:{_BETWEEN})?" if is_unspaced else _BETWEEN, _spelled(after)]
        is_address = "@" in self._text
        before = _BEFORE_ADDRESS if is_address else _beside(self._text[0], r"(?<![^\W{}])(?<!\ufffd)")
        after = _AFTER_ADDRESS if is_address else _beside(self._text[-1], r"(?![^\W{}]|\ufffd)")
        return re.compile(before + "".join(parts) + after)

    @cached_property
    def _key(self) -> str:
        """The longest piece of the author that every spelling has: what lacks it is not searched."""
        return max(_PIECE.findall(self._text), key=len, default="")

    @cached_property
    def _encodings(self) -> tuple[str, ...]:
        """The legacy encodings that have the letters, one of those that write them alike."""
        spellings = (self._given, self._text, self._text.upper())
        found = dict[tuple[bytes | None, ...], str]()
        for encoding in _LEGACY:
            found.setdefault(tuple(_encoded(each, encoding) for each in spellings), encoding)
        return tuple(encoding for each, encoding in found.items() if any(each))

    @cached_property
    def _ascii_key(self) -> re.Pattern[bytes]:
        """The longest word of ASCII letters in the author, as legacy encodings and UTF-16 write it; empty if there is none."""
        word = max(_ASCII_WORD.findall(_FOLDED_TO_TWO.sub(" ", self._text)), key=len, default="")
        return re.compile(rb"\x00?".join(each.encode() for each in word), re.IGNORECASE)

    @cached_property
    def _letters(self) -> tuple[tuple[bytes, ...], ...]:
        """The letters of an author who has no ASCII ones and no capitals, in each encoding that has them."""
        is_found_so = not self._ascii_key.pattern and self._text.lower() == self._text.upper()
        letters = sorted(set(self._text) - {" "})
        encodings = ("utf-8", "utf-16-le", "utf-16-be", *self._encodings) if is_found_so else ()
        found = (tuple(_encoded(letter, encoding) or b"" for letter in letters) for encoding in encodings)
        return tuple(dict.fromkeys(found))

    def _may_be_in(self, content: bytes) -> bool:
        if self._letters:
            return any(all(letter in content for letter in letters) for letters in self._letters)
        return self._ascii_key.search(content) is not None

    def _readings(self, content: bytes) -> Iterator[str]:
        """Iterate over the texts that bytes may be. What is lost of one is a sign that is in no name."""
        mark, encoding = next((each for each in BYTE_ORDER_MARKS if content.startswith(each[0])), (b"", ""))
        content = content[len(mark) :]
        if encoding not in ("", "utf_8"):
            yield content.decode(encoding, "replace")
            return
        if b"\x00" in content and self._may_be_in(content):
            for start in (0, 1):
                yield from (content[start:].decode(each, "replace") for each in ("utf-16-le", "utf-16-be"))
        if b"\x1b$" in content and content.isascii():
            found = decode_ascii(content)
            yield "" if isinstance(found, Drop) else found[0]
        try:
            yield content.decode("utf-8")
        except UnicodeDecodeError:
            if self._may_be_in(content):
                yield content.decode("utf-8", "replace")  # cut, or mixed with another
                yield from (content.decode(each, "replace") for each in self._encodings)
                decoded = decode(content)  # of encodings that write the author alike, it may be another
                yield "" if isinstance(decoded, Drop) else decoded.text


def _folded(text: str) -> str:
    """Return a text in which letters that differ by case or by the form of Unicode alone are equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _encoded(text: str, encoding: str) -> bytes | None:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return None


def _beside(letter: str, expression: str) -> str:
    """Return the expression that no letter of the same word, or byte that may be one, is beside the first or last of a name."""
    return "" if _OF_UNSPACED.match(letter) else expression.format(_UNSPACED)


def _spelled(word: str) -> str:
    """Return the expression of a word: of an address as it is written for readers, and of an unspaced one with blanks within."""
    if "@" in word:
        local, at, host = word.rpartition("@")
        signs = {"@": _TAG + _AT, ".": _DOT}
        return "".join(signs.get(each, re.escape(each)) for each in (*local, *at, *host))
    pieces = (re.escape(each) + (r"\s?" if _is_within(word, place) else "") for place, each in enumerate(word))
    return "".join(pieces)


def _is_within(word: str, place: int) -> bool:
    return all(map(_OF_UNSPACED.match, word[place : place + 2])) and place + 1 < len(word)
