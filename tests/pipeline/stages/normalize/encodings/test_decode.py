"""Bytes to text: the right encoding, every change recorded, nothing invented."""

import ast
import codecs
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.damaged_utf8 import READ_AS
from pipeline.stages.normalize.encodings.decode import Decoded, decode, decoded_again

FRENCH = "// résolution du système : méthode de Gauss, matrice carrée, réel donné à l'entrée\nint échelle;\n"
JAPANESE = "// 行列の固有値を計算する。入力は正方行列でなければならない。\nint main() { return 0; }\n" * 3

SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")

DECODED = {
    "ASCII": (b"int a;\n", "int a;\n", "ascii", ()),
    "nothing": (b"", "", "ascii", ()),
    "UTF-8": ("// é\n".encode(), "// é\n", "utf_8", ()),
    "UTF-8 after a mark": (codecs.BOM_UTF8 + b"int a;\n", "int a;\n", "utf_8", ("bom_removed",)),
    "UTF-16, little end first": (
        codecs.BOM_UTF16_LE + "// é\n".encode("utf-16-le"),
        "// é\n",
        "utf_16_le",
        ("bom_removed", "decoded_from_utf_16_le"),
    ),
    "UTF-16, big end first": (
        codecs.BOM_UTF16_BE + "// é\n".encode("utf-16-be"),
        "// é\n",
        "utf_16_be",
        ("bom_removed", "decoded_from_utf_16_be"),
    ),
    "UTF-32, whose mark begins like that of UTF-16": (
        codecs.BOM_UTF32_LE + "// é\n".encode("utf-32-le"),
        "// é\n",
        "utf_32_le",
        ("bom_removed", "decoded_from_utf_32_le"),
    ),
    "cp1252": (FRENCH.encode("cp1252"), FRENCH, "cp1252", ("decoded_from_cp1252",)),
    "ISO 2022, which is ASCII": (
        JAPANESE.encode("iso2022_jp"),
        JAPANESE,
        "iso2022_jp",
        ("decoded_from_iso2022_jp",),
    ),
    "bytes of GBK that are half UTF-8 by chance": (
        "// 释放内存\n".encode("gbk"),
        "// 释放内存\n",
        "gb18030",
        ("decoded_from_gb18030",),
    ),
    "letters after an escape": (
        'puts("\\nОшибка: %sфайл");\n'.encode("cp1251"),
        'puts("\\nОшибка: %sфайл");\n',
        "cp1251",
        ("decoded_from_cp1251",),
    ),
    "cp932": (JAPANESE.encode("cp932"), JAPANESE, "cp932", ("decoded_from_cp932",)),
    "Windows line ends": (b"a\r\nb\r\n", "a\nb\n", "ascii", ("crlf_to_lf",)),
    "old Macintosh line ends": (b"a\rb\r", "a\nb\n", "ascii", ("cr_to_lf",)),
    "both line ends": (b"a\r\nb\rc\n", "a\nb\nc\n", "ascii", ("crlf_to_lf", "cr_to_lf")),
    "all at once": (
        codecs.BOM_UTF16_LE + "é\r\n".encode("utf-16-le"),
        "é\n",
        "utf_16_le",
        ("bom_removed", "decoded_from_utf_16_le", "crlf_to_lf"),
    ),
    "page feeds and tabs": (b"a\f\v\tb\n", "a\f\v\tb\n", "ascii", ()),
}

REFUSED = {
    "a NUL in ASCII": (b"int a;\0", "binary", "control character U+0000 at character 6"),
    "a NUL in no encoding": (b"\x7fELF\x00\xff\xfe\x80", "binary", "control character U+007F at character 0"),
    "a NUL after UTF-8 bytes that fit": ("é\0".encode(), "binary", "control character U+0000 at character 1"),
    "a NUL among bytes of no encoding": (b"\xe9\xff\x00a", "binary", "NUL at byte 2"),
    "an escape character": (b"// \x1b[0m\n", "binary", "control character U+001B at character 3"),
    "a control character beyond ASCII": ("// \u0085\n".encode(), "binary", "control character U+0085 at character 3"),
    "a mark that is wrong": (
        codecs.BOM_UTF8 + b"\xff",
        "undecodable",
        "byte order mark of utf_8, but byte 0 is invalid",
    ),
}


@pytest.mark.parametrize(("content", "text", "encoding", "edits"), DECODED.values(), ids=DECODED)
def test_it_is_read(content: bytes, text: str, encoding: str, edits: tuple[str, ...]) -> None:
    decoded = decode(content)
    assert decoded == Decoded(text, encoding, edits)
    assert decoded_again(content, decoded) == decoded.text


@pytest.mark.parametrize(("content", "reason", "detail"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_its_place(content: bytes, reason: str, detail: str) -> None:
    if content.startswith(b"\x7fELF"):
        assert isinstance(decode(content), Drop)
        assert decode(content).reason == reason
    else:
        assert decode(content) == Drop(reason, detail)


def can_be_encoded_twice(text: str) -> bool:
    """Return whether a text holds a sequence of UTF-8 in the bytes of an encoding that UTF-8 is mistaken for."""
    return any(SEQUENCE.search(text.encode(encoding, "ignore")) for encoding in READ_AS)


MISREAD = re.compile(r"text in (\w+) that was read as (\w+): (['\"].*['\"]) stands for (['\"].*['\"])")


WITHIN_A_WORD = re.compile(
    r"text that was read in (?:an East Asian|another) encoding: (['\"].+['\"]) is within a word of Latin letters"
)


def is_shown_to_be_misread(drop: Drop, text: str) -> bool:
    """Return whether a drop names a word of the text, and the word that its bytes are in the encoding that it names.

    Or whether it names East Asian signs that the text has between Latin letters.
    """
    if within := WITHIN_A_WORD.fullmatch(drop.detail):
        signs = ast.literal_eval(within[1])
        return re.search(rf"[A-Za-z\u00c0-\u024f]{re.escape(signs)}[A-Za-z\u00c0-\u024f]", text) is not None
    named = MISREAD.fullmatch(drop.detail)
    if named is None:
        return False
    word, before = ast.literal_eval(named[3]), ast.literal_eval(named[4])
    return word in text and before.startswith(word.encode(named[2], "ignore").decode(named[1], "ignore"))


@example("Â\xa0")
@example("ò£µ")
@example("I\U000228aekÁĤ~ĭ")
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\n\f\v"), min_size=1))
def test_utf_8_comes_back_as_it_was(text: str) -> None:
    decoded = decode(text.encode())
    if isinstance(decoded, Drop):
        is_damaged = can_be_encoded_twice(text) or "\ufffd" in text
        assert is_damaged or is_shown_to_be_misread(decoded, text)
    else:
        assert decoded.text == (text[1:] if text.startswith("\ufeff") else text)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_loss_or_refused(content: bytes) -> None:
    decoded = decode(content)
    if isinstance(decoded, Decoded):
        assert decoded_again(content, decoded) == decoded.text
        assert "\r" not in decoded.text
    else:
        assert decoded.reason in {"binary", "undecodable"}
