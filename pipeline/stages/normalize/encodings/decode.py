"""Decoding of files: ASCII, byte order mark, strict UTF-8, then the legacy encoding whose text is likely.

Never a replacement character. UTF-8 that is damaged, was encoded twice or read in the wrong encoding before is refused,
and so is a text of no likely encoding.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import re2

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.damaged_utf8 import find_doubling
from pipeline.stages.normalize.encodings.legacy_encodings import guess_encoding, is_likely, without_formats
from pipeline.stages.normalize.encodings.misread_text import find_misreading
from pipeline.stages.normalize.encodings.mixed_words import find_flaw_of_legacy, find_mixed_word
from pipeline.stages.normalize.encodings.shifted_text import decode_ascii

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf_8"),
    (codecs.BOM_UTF32_LE, "utf_32_le"),
    (codecs.BOM_UTF32_BE, "utf_32_be"),
    (codecs.BOM_UTF16_LE, "utf_16_le"),
    (codecs.BOM_UTF16_BE, "utf_16_be"),
)
"""Marks at the beginning of a text with the encodings that they say; one that begins with another stands before it."""
_CONTROL = re2.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x{9f}]")
"""A control character that is not white space."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text with LF line ends, its original encoding, and the edits that were made."""

    text: str
    encoding: str
    edits: tuple[str, ...]


def decode(content: bytes) -> Decoded | Drop:
    """Return the text of a file, or the drop.

    The reason is `binary` for NUL bytes and control characters, `undecodable` if no encoding fits, or more than one.
    """
    found = _find_text(content)
    if isinstance(found, Drop):
        return found
    text, encoding, edits = found
    control = _first_control(text)
    if control is not None:
        position, character = control
        return Drop("binary", f"control character U+{ord(character):04X} at character {position}")
    if not text.isascii() and (flaw := _find_flaw(text, encoding)) is not None:
        return Drop("undecodable", flaw)
    text, line_edits = _unify_line_ends(text)
    return Decoded(text, encoding, (*edits, *line_edits))


def decoded_again(content: bytes, decoded: Decoded) -> str | None:
    """Return the text of a file by the encoding and edits that are recorded of it; None if that loses or invents anything."""
    raw = text_after_mark(content, decoded.encoding, decoded.edits)
    return None if raw is None else _unify_line_ends(raw.text)[0]


class MarkedText(NamedTuple):
    """The text of a file after its byte order mark, with the line ends that it has, and the bytes of the mark."""

    text: str
    num_mark_bytes: int


def text_after_mark(content: bytes, encoding: str, edits: Sequence[str]) -> MarkedText | None:
    """Return the text of a file by the recorded encoding and edits, its line ends as they are; None if that is not exact."""
    mark = (
        next((mark for mark, _ in BYTE_ORDER_MARKS if content.startswith(mark)), b"") if "bom_removed" in edits else b""
    )
    try:
        raw = content[len(mark) :].decode(encoding)
    except (LookupError, UnicodeDecodeError):
        return None
    return MarkedText(raw, len(mark)) if raw.encode(encoding) == content[len(mark) :] else None


def _find_text(content: bytes) -> tuple[str, str, tuple[str, ...]] | Drop:
    if content.isascii():
        return decode_ascii(content)
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _decode_marked(content[len(mark) :], encoding)
    try:
        return content.decode("utf_8"), "utf_8", ()
    except UnicodeDecodeError:
        return _detect(content)


def _decode_marked(content: bytes, encoding: str) -> tuple[str, str, tuple[str, ...]] | Drop:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        return Drop("undecodable", f"byte order mark of {encoding}, but byte {error.start} is invalid")
    if encoding != "utf_8" and not is_likely(text):
        return Drop("undecodable", f"byte order mark of {encoding}, but words of its text are likely in no language")
    edits = ("bom_removed",) if encoding == "utf_8" else ("bom_removed", f"decoded_from_{encoding}")
    return text, encoding, edits


def _detect(content: bytes) -> tuple[str, str, tuple[str, ...]] | Drop:
    if 0 in content:
        return Drop("binary", f"NUL at byte {content.index(0)}")
    guess = guess_encoding(content)
    if guess.encoding is None:
        return Drop("undecodable", guess.detail)
    return content.decode(guess.encoding), guess.encoding, (f"decoded_from_{guess.encoding}",)


def _find_flaw(text: str, encoding: str) -> str | None:
    """Return what shows that a text, or the bytes that it is from, were in another encoding."""
    flaw = find_doubling(text) or find_misreading(text) or find_mixed_word(text)
    if flaw is None and not encoding.startswith("utf_"):
        shown = find_flaw_of_legacy(without_formats(text))
        flaw = None if shown is None else f"the likeliest legacy encoding is {encoding}, but {shown}"
    return flaw


def _first_control(text: str) -> tuple[int, str] | None:
    content = text.encode("utf-8", "surrogatepass")
    match = _CONTROL.search(content)
    if match is None:
        return None
    position = len(content[: match.start()].decode("utf-8", "surrogatepass"))
    return position, text[position]


def _unify_line_ends(text: str) -> tuple[str, tuple[str, ...]]:
    edits = []
    if "\r\n" in text:
        text, edits = text.replace("\r\n", "\n"), ["crlf_to_lf"]
    if "\r" in text:
        text, edits = text.replace("\r", "\n"), [*edits, "cr_to_lf"]
    return text, tuple(edits)
