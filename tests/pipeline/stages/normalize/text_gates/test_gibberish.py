"""Gibberish: what is wrongly decoded looks so, and what languages write does not."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import BlockedError
from pipeline.stages.normalize.text_gates.gibberish import find_gibberish
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import code

LANGUAGES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "encodings" / "labeled_comments.toml").read_text(encoding="utf-8")
)["language"]
FRENCH = "// résumé des données déjà créées, à vérifier où l'élève s'est arrêté\n"

WRONG = {
    "accents": (FRENCH.encode().decode("cp1252", "ignore"), "utf_8", "an accent of two characters"),
    "an accent alone": ("// after Ã©, as there\n", "utf_8", "an accent of two characters"),
    "an accent at the end": ("// Ã±\n", "utf_8", "an accent of two characters"),
    "Hungarian": ("// GyÅ‘r\n", "utf_8", "an accent of two characters"),
    "Japanese in GBK": ("// このレコ〖ドが赖しい\n", "utf_8", "Japanese read as Chinese"),
    "French read as Japanese": ("// rﾃｩsumﾃｩ\n", "utf_8", "UTF-8 read as Japanese"),
    "copyright": ("// Â© 2003\n", "utf_8", "a sign after a letter that never has it"),
    "apostrophe": ("// itâ€™s\n", "utf_8", "a quotation mark of three characters"),
    "Russian": ("Проверяем цикл".encode().decode("cp1251", "ignore"), "utf_8", "Cyrillic of two characters"),
    "lost Chinese": ("// 锟斤拷\n", "utf_8", "a replacement mark read as Chinese"),
    "lost Russian": ("// \ufffd\ufffd\ufffd \ufffd\ufffd\n", "utf_8", "a replacement character in a word"),
    "a lost letter": ("// Andr\ufffd\n", "utf_8", "a replacement character in a word"),
    "katakana": ("// rｶsumｶ\n", "cp932", "half-width katakana"),
    "private use": ("// \ue000\n", "gb18030", "a character for private use"),
    "two scripts": ("// rщsumщ\n", "cp1251", "a word in two scripts"),
    "signs": ("// zpo¾dìní ¹íøka\n", "cp1252", "a sign within a word"),
    "Russian by another code page": ("// Чтение рТПЧЕТСЕФ, кВт\n", "cp1251", "capitals within a word"),
    "Greek": ("// επόμενο, πΕΡΙΟΧΗ\n", "cp1253", "capitals within a word"),
    "another alphabet": (FRENCH.encode("cp1252").decode("iso8859_4"), "iso8859_4", "letters of no one language"),
}


@pytest.mark.parametrize(("text", "encoding", "name"), WRONG.values(), ids=WRONG)
def test_wrong_text_is_found_on_its_line(text: str, encoding: str, name: str) -> None:
    found = {each.name: each.line for each in find_gibberish(f"int a;\n{text}", encoding)}
    assert found.get(name) in (1, 2), found


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language["name"])
def test_what_languages_write_is_no_gibberish(language: dict[str, Any]) -> None:
    text = "\n".join([*language["comments"], *language["names"]])
    assert {encoding: find_gibberish(text, encoding) for encoding in ("utf_8", "cp1252")} == {"utf_8": [], "cp1252": []}


def test_what_legacy_encodings_have_not_is_used_in_utf_8() -> None:
    assert find_gibberish("// ｶﾀｶﾅ \ue0a0 Δx API-функция\n", "utf_8") == []
    assert find_gibberish("// shows â€™ when ’ was read as cp1252, Ã© for é, Â© for ©\n", "utf_8") == []
    assert find_gibberish("// a\n// shows â€™ when ’ was read as cp1252\n", "utf_8") == []
    assert find_gibberish("// «IRMÃ» À Á Â Ã Ä Å, TAMBÉM NÃO\n", "utf_8") == []
    assert find_gibberish("// ă ł ø ã ő ğ ư ģ\n", "utf_8") == []
    assert find_gibberish('"\ufffd" // what else', "utf_8") == []
    assert find_gibberish('"q\ufffd\ufffd" // U+FFFD', "utf_8") == []
    assert find_gibberish("// 5 кВт, мРНК, ЗаписатьФайлХМЛ, запросХМЛ\n", "cp1251") == []


def test_formats_escapes_and_products_are_no_gibberish() -> None:
    assert find_gibberish('"\\nОшибка: %sфайл %ldб" // n×m, ±x\n', "cp1251") == []
    for format in ("%(value)s", "%(value)-5.2f", "%1$s", "%+d", "%#lx", "%'d", "%-10s", "%.3lf", "%H"):
        assert find_gibberish(f'"{format}квант", "{format}¼a"\n', "cp1251") == [], format
    assert [each.name for each in find_gibberish('"(value)sквант"', "cp1251")] == ["a word in two scripts"]
    assert [each.name for each in find_gibberish('"%(value)s rщsumщ"', "cp1251")] == ["a word in two scripts"]


def test_a_few_letters_tell_no_language_and_eight_do() -> None:
    letters = "ăłøãőğưģ"
    assert find_gibberish(" ".join(letters[:7]), "cp1252") == []
    assert [each.name for each in find_gibberish(" ".join(letters), "cp1252")] == ["letters of no one language"]


def test_what_is_wrongly_decoded_blocks_with_its_place(normalize: Normalize, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.stages.normalize.encodings.decode.find_doubling", lambda text: None)
    text = code("a") + "// Â© 2003\n"
    result = normalize({"one": {"a.cpp": text, "b.cpp": code("b")}}).result

    assert [verdict.gate for verdict in result.verdicts if not verdict.passed] == ["no_gibberish_is_left"]
    with pytest.raises(BlockedError, match=r"look wrongly decoded: a\.cpp:13 \(a sign after"):
        result.refuse_blocked("made")
