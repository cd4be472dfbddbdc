"""Every word of a normalized text is mapped to the bytes of the file in which that word was written, whatever was changed."""

import re
from collections.abc import Callable, Sequence

import pytest

from pipeline.lineage.origins.received_bytes import ByteChange, ReceivedBytes, received_bytes
from pipeline.stages.normalize.encodings.decode import Decoded, decode
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.finding import Replacement
from pipeline.stages.normalize.scrub.scrub import Scrubber

ADDRESS = "mara.velez" + "@" + "harbor-lights.org"
FOLDER = "/home/" + "mvelez"
WORDS = re.compile(r"word[0-9]+")
ASCII_CODE = "".join(f"int word{number} = {number};\n" for number in range(40))
FOREIGN = "// Überprüfung der größten Länge, für jede Zeile außer der ersten\n"
CYRILLIC = "// Проверка длины каждой строки, кроме первой, и ширины всех столбцов таблицы\n"
JAPANESE = "// これは最初の行を除くすべての行の長さを確認するための関数です\n"
KOREAN = "// 이 함수는 첫 번째 줄을 제외한 모든 줄의 길이를 확인합니다\n"
TEXTS = {
    "ascii": ASCII_CODE,
    "utf_8": FOREIGN + ASCII_CODE + CYRILLIC + 'const char *word90 = "😀"; int word91;\n',
    "utf_8_sig": FOREIGN + ASCII_CODE,
    "cp1252": FOREIGN + ASCII_CODE + FOREIGN + "int word92;\n",
    "cp1251": CYRILLIC + ASCII_CODE + CYRILLIC + "int word92;\n",
    "cp932": JAPANESE + ASCII_CODE + JAPANESE + "int word92;\n",
    "iso2022_jp": JAPANESE + ASCII_CODE + JAPANESE + "int word92;\n",
    "cp949": KOREAN + ASCII_CODE + KOREAN + "int word92;\n",
    "utf_16": FOREIGN + ASCII_CODE + 'const char *word90 = "😀"; int word91;\n',
    "utf_32": FOREIGN + ASCII_CODE,
}
"""A text of each encoding that has words of its own between what the encoding writes otherwise."""


def _normalized(content: bytes, path: str = "a.cpp") -> tuple[str, ReceivedBytes]:
    decoded = decode(content)
    assert isinstance(decoded, Decoded)
    scrubber = Scrubber(ScrubParams())
    text = scrubber.scrub(path, decoded.text).text

    def scrub(found: str, record: Callable[[Sequence[Replacement]], None]) -> str:
        return scrubber.scrub(path, found, None, record).text

    found = received_bytes(content, decoded.encoding, decoded.edits, text, scrub)
    assert found is not None
    return text, found


def _place(text: str, word: str) -> tuple[int, int]:
    """Return the bytes of a word in the UTF-8 of a text."""
    start = len(text[: text.index(word)].encode())
    return start, start + len(word.encode())


def _unit(encoding: str) -> str:
    """Return the encoding in which a word within a file is written, without the mark."""
    return {"utf_16": "utf_16_le", "utf_32": "utf_32_le", "utf_8_sig": "utf_8"}.get(encoding, encoding)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", TEXTS)
def test_every_word_is_found_where_it_was_written(encoding: str, line_end: str) -> None:
    content = TEXTS[encoding].replace("\n", line_end).encode(encoding)
    text, found = _normalized(content)

    words = sorted(set(WORDS.findall(TEXTS[encoding])))
    assert len(words) >= 40
    for word in words:
        stretch = found.stretch(*_place(text, word))
        written = word.encode(_unit(encoding))
        assert content[stretch.start : stretch.end] == written, word
        assert stretch.start == content.index(written)


def test_a_line_end_is_all_that_was_written_for_it() -> None:
    content = b"int one;\r\nint two;\rint three;\nint four;\r\n" * 5
    text, found = _normalized(content)

    ends = [place for place, byte in enumerate(text.encode()) if byte == ord("\n")]
    stretches = [found.stretch(place, place + 1) for place in ends]

    assert [content[each.start : each.end] for each in stretches] == [b"\r\n", b"\r", b"\n", b"\r\n"] * 5
    assert [each.changes for each in stretches[:3]] == [(ByteChange.LINE_END,), (ByteChange.LINE_END,), ()]


def test_a_placeholder_is_of_the_bytes_that_it_replaces_and_what_is_around_it_is_unchanged() -> None:
    code = (
        f'// word1 {ADDRESS} word2\r\nchar *word3 = "{FOLDER}/key"; int word4;\r\n// {ADDRESS} word5\r\n' + ASCII_CODE
    )
    content = code.encode()
    text, found = _normalized(content)
    placeholders = list(re.finditer(r"<redacted-[a-z]+-[0-9]+>", text))

    assert len(placeholders) == 3
    stretches = [found.stretch(match.start(), match.end()) for match in placeholders]
    assert [each.changes for each in stretches] == [(ByteChange.PLACEHOLDER,)] * 3
    replaced = [content[each.start : each.end].decode() for each in stretches]
    assert replaced[0] == replaced[2] == ADDRESS
    assert replaced[1].startswith(FOLDER)
    for word in ("word1 ", "word2", "word3", "word4", "word5"):
        start, end = _place(text, word)
        stretch = found.stretch(start, end)
        assert (content[stretch.start : stretch.end].decode(), stretch.changes) == (word, ())


def test_an_include_of_a_replaced_folder_names_its_quotes() -> None:
    content = f"#include <{FOLDER}/word1.h>\nint word2;\n{ASCII_CODE}".encode()
    text, found = _normalized(content)

    start = text.index('"')
    assert text.startswith('#include "<redacted-path-1>')
    assert found.stretch(start, start + 1) == (
        content.index(b"<"),
        content.index(b"<") + 1,
        (ByteChange.QUOTED_INCLUDE,),
    )
    stretch = found.stretch(*_place(text, "word2"))
    assert content[stretch.start : stretch.end] == b"word2"


def test_a_byte_within_a_character_is_that_byte_in_utf_8_and_the_whole_character_elsewhere() -> None:
    text, found = _normalized(TEXTS["utf_8"].encode())
    at = text.index("Ü")
    assert found.stretch(at + 1, at + 2)[:2] == (at + 1, at + 2)

    content = TEXTS["cp1252"].encode("cp1252")
    text, found = _normalized(content)
    assert found.stretch(at + 1, at + 2) == (at, at + 1, (ByteChange.DECODED,))


def test_a_text_that_other_rules_made_has_no_map() -> None:
    content = ASCII_CODE.encode()

    assert received_bytes(content, "ascii", (), ASCII_CODE) is not None
    assert received_bytes(content, "ascii", (), ASCII_CODE.replace("word7", "word_7")) is None
    assert received_bytes(b"\xff\xfe", "utf_8", (), "") is None
