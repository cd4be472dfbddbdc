"""Mixed words: what a wrong encoding puts into words is found, and what people write in two scripts, or as signs, is not."""

import pytest

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.decode import decode
from pipeline.stages.normalize.encodings.mixed_words import find_flaw_of_legacy, find_mixed_word
from pipeline.stages.normalize.text_gates.gibberish import find_gibberish

GREEK = "// Ο βρόχος τελειώνει όταν δεν υπάρχουν άλλα στοιχεία, και επιστρέφει το μήκος της συμβολοσειράς σε byte\n" * 3


@pytest.mark.parametrize(
    "text",
    [
        "Author: Jьrgen GroЯmann",
        "Author: Franзois Lefиvre",
        "// pޒkaz",
        "Author: £ukasz ¯ó³kiewski",
        "Author: ŽR“c‘¾˜Y",
        "Author: »³ÅÄÂÀÏº",
        "Author: ±èÃ¶¼ö",
        "Author: ³¯¤j¤å",
    ],
)
def test_what_was_saved_after_a_wrong_decoding_is_refused(text: str) -> None:
    found = decode(f"/* {text} */\nint a;\n".encode())
    assert isinstance(found, Drop)
    assert found.reason == "undecodable"


@pytest.mark.parametrize(
    "text",
    [
        "µs, Ω, Δx, π_2, λx, 5 kΩ, nµm, dθdt",
        "GPU-вычисления, x-координата, USB-порт, C++-код, APIфункция",
        "Сору of it, сору the rest",  # letters that look alike are typed for each other
        "[a-zA-Zа-яА-ЯёЁ0-9]",
        "係数αを掛け、Δxを足す",
        "m³ab, 1º, 2ª, x²+y², ±5 °C, ½ × £20, «Âge», ¿qué?",
        "¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈ",
        "¡¢£€¥Š§š©ª«¬\u00ad®¯°±²³Žµ¶·ž¹º»ŒœŸ¿ÀÁÂÃ",
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»",
        "l’été – “naïve” … d’où",
    ],
)
def test_what_people_write_in_utf_8_stays(text: str) -> None:
    assert find_mixed_word(text) is None
    assert not isinstance(decode(f"// {text}\n".encode()), Drop)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GREEK + "/* Franηois Lefθvre */\n", "cp1253"),
        ("// ¿ball\n", "cp1252"),
        ("// メモжを\n", "cp932"),
        ("// tamaño máximo, straße, größe, çok, før, åpen, æøå, þorn\n", "cp1252"),
        ("// ab±cd Größe\n", "cp1252"),
    ],
)
def test_of_a_legacy_encoding_it_refuses_what_the_gate_or_a_reader_finds(text: str, encoding: str) -> None:
    assert find_flaw_of_legacy(text) is not None
    assert isinstance(decode(text.encode(encoding)), Drop)


def test_a_name_of_another_language_in_a_page_is_refused_before_the_gate_blocks_the_build() -> None:
    text = GREEK + "/* Franηois Lefθvre */\n"
    assert find_gibberish(text, "cp1253")
    assert isinstance(decode(text.encode("cp1253")), Drop)


@pytest.mark.parametrize(
    "text",
    ["// ¿qué hace? ¡Cuidado!\n", "// GPU-вычисления, 5 кВт\n", "// 角度を計算する\n", "// Größe: 5 m², 3×4\n"],
)
def test_what_is_written_in_legacy_encodings_stays(text: str) -> None:
    assert find_flaw_of_legacy(text) is None
