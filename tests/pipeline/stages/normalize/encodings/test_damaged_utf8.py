"""Damaged UTF-8: bad bytes are named by their offsets, and what was encoded twice by what it stands for."""

import pytest

from pipeline.stages.normalize.encodings.damaged_utf8 import describe_damage, find_doubling

FRENCH = "// déjà vu, été, naïve\n"
NOT_DOUBLED = [
    "目录",
    "究極",
    "ΕΠΙΛΟΓΗ",
    "без еднаквите редове",
    "はビットのみです",
    "чем",
    "Eþíópía",
    "« commité »",
    "đóng",
    "shows â€™ when ’ was read as cp1252",
    "Ã© in place of é",
    "«IRMÃ», NÃO, IRMÃ…",
    "the Å’s of Ångström",
    "À Á Â Ã Ä Å Æ Ç",
    "«В»",
    "CAFÉ»",
    "descrição, operações, instruções: índice e ícone não são válidos",
]

LOST = [
    "// \ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd\ufffd",
    "// the thread\ufffds state",
    "// Copyright Andr\ufffd Weil",
    "// (\ufffd\ufffd\ufffd, \ufffd\ufffd)",
    'puts("\ufffd\ufffd\ufffd\ufffd");',
    "// \ufffd 2003 Foo",
    "// U+FFFD\n" + "// \ufffd\ufffd \ufffd\ufffd\ufffd\n" * 9,
]
NOT_LOST = [
    'const char bad[] = u8"\ufffd";',
    "case 0x80: return '\ufffd'; case 0x81: return '\ufffd';",
    "// emits U+FFFD (\ufffd) for a byte that is not valid",
    "// the replacement character `\ufffd`",
    "// what is no text is replaced by \ufffd here",
    'EXPECT_EQ("q\ufffd\ufffd", decoded); // two of U+FFFD',
]


def test_bad_bytes_are_named_by_their_offsets() -> None:
    content = FRENCH.encode()
    found = describe_damage(content + b"\xff// \xe9\n")
    at = len(content)
    assert found == f"UTF-8 with damage: 2 of 12 bytes beyond ASCII are invalid, at bytes {at}, {at + 4}"


@pytest.mark.parametrize("encoding", ["cp1252", "cp1251", "cp437", "koi8_r", "mac_roman", "cp932", "gbk", "big5"])
def test_what_was_encoded_twice_is_said(encoding: str) -> None:
    twice = "// r\u00e9sum\u00e9 cr\u00e9\u00e9 et pr\u00e9par\u00e9\n".encode().decode(encoding, "ignore")
    assert "encoded twice" in (find_doubling(twice) or "")


@pytest.mark.parametrize("sound", ["", "// written by Andreé Ünal für später\n"])
@pytest.mark.parametrize(
    ("word", "encoding"),
    [
        *(("é", "cp1252"), ("ñ", "cp1252"), ("à la", "latin_1"), ("ú", "cp1252"), ("õ", "cp1252"), ("sûr", "cp1252")),
        *(("Győr", "cp1252"), ("řez", "cp1252"), ("Příliš", "cp1250"), ("naïve", "mac_roman"), ("© 2003", "latin_1")),
    ],
)
def test_one_word_that_was_encoded_twice_is_found(word: str, encoding: str, sound: str) -> None:
    twice = word.encode().decode(encoding)
    assert "encoded twice" in (find_doubling(f"{sound}// after {twice}, as there\n") or "")


@pytest.mark.parametrize("text", LOST)
def test_a_replacement_character_where_a_word_was_is_a_loss(text: str) -> None:
    assert "the text was lost before" in (find_doubling(f"int a;\n{text}\n") or "")


@pytest.mark.parametrize("text", NOT_LOST)
def test_a_replacement_character_that_is_meant_is_no_loss(text: str) -> None:
    assert find_doubling(f"int a;\n{text}\n") is None


@pytest.mark.parametrize("text", NOT_DOUBLED)
def test_words_of_languages_were_encoded_once(text: str) -> None:
    assert find_doubling(f"// {text}\n") is None
