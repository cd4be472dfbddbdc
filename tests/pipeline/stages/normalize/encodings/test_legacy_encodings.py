"""Wrong text: of comments in their languages and encodings, damaged by rule, nearly none is kept; UTF-8 is never refused."""

import codecs
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise, permutations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.decode import decode

LANGUAGES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("labeled_comments.toml").read_text(encoding="utf-8")
)["language"]
CODE = "int f(int x) {{\n    // {}\n    return x;\n}}\n"
READ_AS = ["cp1252", "cp1250", "cp1251", "cp437", "cp850", "koi8_r", "mac_roman", "cp932", "gbk", "big5"]
MAX_WRONG, MIN_READ = 0.02, 0.88
MAX_MISREAD, MAX_JOINED = 0.12, 0.03
"""Signs alone, letters of both encodings and single bytes of a legacy encoding that became others tell too little."""
USED_SIGNS = {
    "emoji": "🎉 done 👩‍👩‍👧 ✅ 🇫🇷 👍🏽",
    "combining marks": "cafe\u0301 n\u0303 o\u0308 a\u030a",
    "box drawing": "┌──┬──┐ │ ok │ └──┴──┘ ╔══╗ ▀▄█",
    "mathematics": "∀x ∈ ℝ: ∑ αᵢ·xᵢ ≤ ∞, ∂f/∂x ≈ √2, σ² ± Δ°",
    "quotation": "«À» “É” „Spaß“ ‘x’ — … › CAFÉ» «IRMÃ»",
    "prices": "€ 5, £ 3, ¥ 100, 20 °C, 5 µm², © ® ™ ½",
    "half-width katakana": "ｶﾀｶﾅ",
    "private use": "\ue0a0 \uf015 icons",
    "a replacement character": 'const char bad[] = u8"\ufffd";',
    "Latin and Cyrillic": "C++-код, API-функция, x² и Δy",
    "names": "Łukasz Žižek, Åsa Öström, Ñandú, İstanbul, Đorđe",
    "a row of capitals": "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
}


def _texts(language: dict[str, Any]) -> list[str]:
    comments = language["comments"]
    return [CODE.format(text) for text in ("\n    // ".join(comments), *comments, *language["names"])]


def _in_encodings() -> Iterator[tuple[str, bytes, str]]:
    for language in LANGUAGES:
        for encoding in language["encodings"]:
            for text in _texts(language):
                yield f"in {encoding}", text.encode(encoding), text


def _damaged() -> Iterator[tuple[str, bytes, str]]:
    random = Random(18)
    for language in LANGUAGES:
        for text in _texts(language):
            content = text.encode()
            foreign = [at for at, byte in enumerate(content) if byte > 0x7F]
            for number in (1, 3, 10, 20):
                changed = bytearray(content)
                for at in random.sample(foreign, min(number, len(foreign) // 2)):
                    changed[at] = random.randrange(0x80, 0x100)
                yield "replaced", bytes(changed), text
                lost = set(random.sample(foreign, min(number, len(foreign) // 2)))
                yield "lost", bytes(byte for at, byte in enumerate(content) if at not in lost), text
            cut = next(at for at in reversed(foreign) if content[at] & 0xC0 == 0x80)
            yield "cut", content[:cut], text
            encoding = language["encodings"][0]
            half = text[: text.rindex("\n    return")]
            yield "mixed", content + half.encode(encoding), text + half
            yield "mixed", half.encode(encoding) * 2 + content, half * 2 + text
            yield "broken mark", codecs.BOM_UTF8[1:] + content, text
            for wide in ("utf_16_le", "utf_16_be"):
                encoded = text.encode(wide)
                yield f"{wide} without a mark", encoded, text
                at = random.randrange(len(encoded) // 4, len(encoded) // 2)
                mark = codecs.BOM_UTF16_LE if wide == "utf_16_le" else codecs.BOM_UTF16_BE
                yield f"{wide} with a byte lost", mark + encoded[:at] + encoded[at + 1 :], text
                yield f"{wide} with two lost", mark + encoded[:at] + encoded[at + 1 : -30] + encoded[-29:], text


def _doubled() -> Iterator[tuple[str, bytes, str]]:
    for language in LANGUAGES:
        for text in _texts(language):
            for encoding in READ_AS:
                twice = text.encode().decode(encoding, "ignore")
                if len(twice.encode(encoding)) == len(text.encode()):
                    yield f"twice through {encoding}", twice.encode(), text


def _misread() -> Iterator[tuple[str, bytes, str]]:
    for language in LANGUAGES:
        text = _texts(language)[0]
        for was, read_as in product(
            language["encodings"][:3], ["cp1252", "cp1251", "koi8_r", "cp437", "cp866", "mac_roman"]
        ):
            wrong = text.encode(was).decode(read_as, "replace")
            if wrong != text and "\ufffd" not in wrong and wrong.encode(read_as).decode(was, "replace") == text:
                yield f"{was} through {read_as}", wrong.encode(), text


def _joined() -> Iterator[tuple[str, bytes, str]]:
    """Yield files whose halves are in two encodings, and files in one with bytes replaced."""
    random = Random(19)
    for first, second in pairwise([*LANGUAGES, LANGUAGES[0]]):
        texts = _texts(first)[0], _texts(second)[0]
        halves = [text.encode(language["encodings"][0]) for text, language in zip(texts, (first, second), strict=True)]
        yield "two encodings", b"".join(halves), "".join(texts)
    for language in LANGUAGES:
        texts = [CODE.format(text) for text in language["comments"][:2]]
        for names in permutations(language["encodings"][:3], 2):
            halves = [text.encode(name) for text, name in zip(texts, names, strict=True)]
            yield "two encodings of one language", b"".join(halves), "".join(texts)
        for encoding in language["encodings"][:3]:
            content = bytearray(_texts(language)[0].encode(encoding))
            foreign = [at for at, byte in enumerate(content) if byte > 0x7F]
            for at in random.sample(foreign, min(6, len(foreign) // 4)):
                content[at] = random.randrange(0x80, 0x100)
            yield "legacy with damage", bytes(content), _decoded(content, encoding)


def _decoded(content: bytes, encoding: str) -> str:
    """Return what the bytes say in their encoding: that they were others, nobody can know."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return ""


_STEPS = {"damaged": 5, "misread": 4, "joined": 2}
"""Every so many cases of a kind are tried: each of these is read by many encodings. A text has 18 damages, so that 5 meets all."""


@cache
def _outcomes(kind: str) -> Counter[tuple[str, str]]:
    """Count the outcomes of the cases of a kind, by its rule: right, refused or wrong. Whole UTF-8 tells nothing."""
    made = {
        "encodings": _in_encodings,
        "damaged": _damaged,
        "doubled": _doubled,
        "misread": _misread,
        "joined": _joined,
    }[kind]
    found: Counter[tuple[str, str]] = Counter()
    for rule, content, text in islice(made(), 0, None, _STEPS.get(kind, 1)):
        if kind not in ("doubled", "misread") and _is_utf_8(content):
            continue
        decoded = decode(content)
        outcome = "refused" if isinstance(decoded, Drop) else "right" if decoded.text == text else "wrong"
        found[rule, outcome] += 1
    return found


def _is_utf_8(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize("kind", ["encodings", "damaged", "doubled"])
def test_nearly_no_wrong_text_is_kept(kind: str) -> None:
    outcomes = _outcomes(kind)
    wrong = {rule: number for (rule, outcome), number in outcomes.items() if outcome == "wrong"}
    assert sum(wrong.values()) <= MAX_WRONG * outcomes.total(), wrong


@pytest.mark.parametrize(("kind", "most"), [("misread", MAX_MISREAD), ("joined", MAX_JOINED)])
def test_little_is_kept_of_what_was_read_in_the_wrong_encoding_or_joined_of_two(kind: str, most: float) -> None:
    outcomes = _outcomes(kind)
    assert sum(number for (_, outcome), number in outcomes.items() if outcome == "wrong") <= most * outcomes.total(), (
        outcomes
    )


def test_most_sound_files_in_legacy_encodings_are_read() -> None:
    outcomes = _outcomes("encodings")
    assert len({rule for rule, _ in outcomes}) >= 30
    assert sum(number for (_, outcome), number in outcomes.items() if outcome == "right") >= MIN_READ * outcomes.total()


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("Éric Gärtner", "mac_roman"),
        ("Žydrūnas Šimkus", "iso8859_4"),
        ("Ģirts Kļava", "cp775"),
        ("นภา", "tis_620"),
        ("Jiří Dvořák", "mac_latin2"),
        ("Łukasz Gąsiorowski", "iso8859_16"),
        ("Ѓорѓи Ќосев", "cp1251"),
        ("помилка читання її", "cp1125"),
    ],
)
def test_a_name_alone_is_not_read_as_signs_or_ideographs_within_words(name: str, encoding: str) -> None:
    text = CODE.format(f"Author: {name}")
    found = decode(text.encode(encoding))
    assert isinstance(found, Drop) or found.text == text


def test_lines_in_another_encoding_than_most_are_refused_with_both() -> None:
    russian = ["проверяет, достаточно ли места в буфере", "ошибка чтения файла, попробуйте позже"]
    lines = [CODE.format(text).encode(name) for text, name in zip(russian, ("koi8_r", "cp1251"), strict=True)]
    found = decode(b"".join(lines))
    assert isinstance(found, Drop)
    assert found.detail in (
        f"mixed: {one}, and lines that are likely in {other} alone" for one, other in permutations(["koi8_r", "cp1251"])
    )


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language["name"])
@pytest.mark.parametrize("encoding", ["utf_8", "utf_8_sig", "utf_16", "utf_32"])
def test_what_a_language_uses_is_never_refused(language: dict[str, Any], encoding: str) -> None:
    refused = [text for text in _texts(language) if isinstance(decode(text.encode(encoding)), Drop)]
    assert refused == []


@pytest.mark.parametrize("signs", USED_SIGNS.values(), ids=USED_SIGNS)
def test_signs_in_utf_8_are_never_refused(signs: str) -> None:
    found = decode(CODE.format(signs).encode())
    assert not isinstance(found, Drop), found.detail
