"""Misread text: what was read in the wrong encoding before is named with both encodings; words and signs of languages are not."""

import pytest

from pipeline.stages.normalize.encodings import misread_text
from pipeline.stages.normalize.encodings.legacy_encodings import cost_of
from pipeline.stages.normalize.encodings.misread_text import find_misreading

RUSSIAN = "// возвращает длину строки без нулевого байта\n"
GERMAN = "// Jürgen Groß prüft die Größe der Schnittstelle\n"
SOUND = [
    RUSSIAN,
    GERMAN,
    "// α β γ δ ε θ λ μ π σ φ, Δx and σ² in µm\n",
    "// ┌──┐ │ a │ └──┘\n",
    "// Mae'r ffeil wedi'i hagor â llaw: tŷ a dŵr\n",
    "// aéiou ÀÁÂÃÄÅÆÇÈÉ\n",
    "// äëïöü\n",
    "// 在if中for的循环, 在while中else的分支; x轴y轴\n",
    "// returns\u00a0the index of\u00a0it: do\u00a0not\u00a0use, see\u00a0also 10\u202f000\u2007items\n",
    "// a\u00a0non\u00a0breaking\u202fspace\n",
    "// €‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\n",
    "// юабцдефгхийклмнопярстужвьызшэщчъ\n",
    "// Ѓорѓи Ќосев, Ђорђе Његош, Київ, кВт\n",
    "// ľščťžýáíéúäô, áëñ, ñäö\n",
    "// Bellman–Ford, Lempel–Ziv–Welch\n",
    "// μs, λI, kΩ, ax²+by²\n",
    "// ┌┴─┐\n",
    "// 读取失败, 王小明, 饕餮魑魅魍魉\n",
    "// 山田太郎 読み込み失敗\n",
    "// 김철수 읽기 실패\n",
    "// A字B, x轴y, 데이터x, C语言c, n次n\n",
    "// lireÉtat, Сopy of it\n",
    "// we don´t know whether it isn´t\n",
]


@pytest.mark.parametrize(
    ("text", "was", "read_as"),
    [
        (GERMAN, "cp1252", "cp1251"),
        (GERMAN, "cp850", "koi8_r"),
        (RUSSIAN, "cp1251", "cp1252"),
        (RUSSIAN, "cp866", "koi8_r"),
        ("// ошибка чтения\n", "cp1251", "koi8_r"),
        ("// ошибка чтения\n", "koi8_r", "cp1251"),
        ("// žádný řádek\n", "iso8859_2", "cp1252"),
        ("// données périmées\n", "cp1252", "mac_roman"),
        ("// ungültiger Schlüssel\n", "mac_roman", "cp1252"),
    ],
)
def test_both_encodings_are_named(text: str, was: str, read_as: str) -> None:
    found = find_misreading(text.encode(was).decode(read_as)) or ""
    assert f"that was read as {read_as}" in found
    assert text.split()[1][:4] in found


@pytest.mark.parametrize(
    ("text", "was", "read_as"),
    [
        ("読み込み失敗", "euc_jp", "gbk"),
        ("この関数は次のレコードが正しいかどうかを確認し", "euc_jp", "gbk"),
        ("읽기 실패", "cp949", "gbk"),
        ("这个函数检查下一条记录", "gb18030", "cp949"),
        ("這個函式檢查下一筆記錄是否正確", "big5", "cp1252"),
        ("山田太郎", "utf_8", "cp932"),
        ("王小明", "utf_8", "gbk"),
    ],
)
@pytest.mark.parametrize("sound", ["", "// written by Andreé Ünal für später\n"])
def test_texts_of_east_asia_in_another_encoding_are_named_among_sound_lines_too(
    text: str, was: str, read_as: str, sound: str
) -> None:
    wrong = text.encode(was).decode(read_as, "ignore")
    assert " that was read as " in (find_misreading(f"{sound}// {wrong}\n") or "")


@pytest.mark.parametrize("encoding", ["cp932", "gbk"])
def test_latin_words_that_were_read_in_an_east_asian_encoding_are_shown(encoding: str) -> None:
    text = "// Le tampon dépassé entraîne une erreur".encode("cp1252").decode(encoding, "ignore")
    assert "that was read in an East Asian encoding: " in (find_misreading(text) or "")


@pytest.mark.parametrize("text", ["große Blöcke, länger", "t\u00e4glich", "Gr\u00f6\u00dfe"])
@pytest.mark.parametrize("encoding", ["gbk", "cp949"])
def test_one_rare_character_within_a_latin_word_is_enough(text: str, encoding: str) -> None:
    wrong = text.encode("cp850" if encoding == "cp949" else "cp1252").decode(encoding, "ignore")
    assert find_misreading(f"// {wrong}\n") is not None


@pytest.mark.parametrize("text", SOUND)
def test_what_languages_use_was_read_well(text: str) -> None:
    assert find_misreading(text) is None


def test_the_time_does_not_grow_with_the_length_of_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    def cost(text: str) -> tuple[float, int]:
        lengths.append(len(text))
        return cost_of(text)

    monkeypatch.setattr(misread_text, "cost_of", cost)
    assert find_misreading("Jь" * 100_000) is not None
    assert 1 < len(lengths) < 1_000
    assert max(lengths) <= 1_000
