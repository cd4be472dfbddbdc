"""Shifted text: words and signs in UTF-7, ISO 2022 and HZ are refused or read, sums of names are ASCII."""

import pytest

from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.shifted_text import decode_ascii

REFUSED = {
    "// H+AOk-l+AOg-ne": "UTF-7: other characters written in ASCII, such as 'H+AOk-l+AOg-ne'",
    "// r+AOk-serv+AOk i++": "UTF-7: other characters written in ASCII, such as 'r+AOk-serv+AOk'",
    "// gi+AOA presente": "UTF-7: other characters written in ASCII, such as 'gi+AOA'",
    "// W+APM-jcik": "UTF-7: other characters written in ASCII, such as 'W+APM-jcik'",
    "// +XHF1MFkqkM4 ": "UTF-7: other characters written in ASCII, such as '+XHF1MFkqkM4'",
    "// +BD8EQAQ+BDIENQRABDoEMA-": "UTF-7: other characters written in ASCII, such as '+BD8EQAQ+BDIENQRABDo'",
    "// 2003 +AKk- Foo": "UTF-7: other characters written in ASCII, such as '+AKk-'",
    "#include +ADw-stdio.h+AD4-": "UTF-7: other characters written in ASCII, such as '+ADw-'",
    "// ~{VPND~}": "HZ: Chinese written in ASCII",
    "/* ESC $ B is \x1b$B */": "escape sequences of ISO 2022, but of a text in no likely language",
}
SOUND = [
    "x = a+length-b+offset1 + i+hasArg+data+i+8; // C++ and ++count",
    "y = base+OFF-1+IBM-XT; s = t+u+v+w-x+AB-c; // 1+1/4-2",
    "z = p+ip4-1+TjI; // base64: +/+abcdefgh+ijklmnop",
    "char tilde = '~'; // ~{ is no begin",
    "f(+ADw-1);",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_means_other_characters_is_refused(text: str) -> None:
    assert decode_ascii(f"int a;\n{text}\n".encode()) == Drop("undecodable", REFUSED[text])


@pytest.mark.parametrize("text", SOUND)
def test_sums_of_names_mean_themselves(text: str) -> None:
    assert decode_ascii(f"{text}\n".encode()) == (f"{text}\n", "ascii", ())


def test_japanese_between_escapes_is_read() -> None:
    text = "// 行列の固有値を計算する。\n"
    assert decode_ascii(text.encode("iso2022_jp")) == (text, "iso2022_jp", ("decoded_from_iso2022_jp",))
