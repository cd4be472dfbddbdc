"""Defined passwords: words with numbers that a macro stands for go, also where another macro quotes them; names of code stay."""

import pytest

from pipeline.stages.normalize.scrub.credentials.text_credentials import find_text_credentials

WORD, LEET, PHRASE = "Copper" + "Falcon372", "v3lv3t_" + "8299", "winter-" + "velvet-72"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"#define MQTT_PWD {WORD}", WORD),
        (f"#define WIFI_PASSWORD {LEET} /* of the lab */", LEET),
        (f"# define DB_PASSWD {PHRASE}", PHRASE),
        (f"#define PASSWD STR({WORD})", WORD),
        (f"#define PASSWD STRINGIFY({LEET})", LEET),
        (f"#define PASSWD _T({PHRASE})", PHRASE),
    ],
)
def test_a_word_with_a_number_is_found(line: str, value: str) -> None:
    assert [line[found.start : found.end] for found in find_text_credentials(line)] == [value]


@pytest.mark.parametrize(
    "line",
    [
        "#define PASSWD STR(PASSWD_VALUE)",
        "#define MQTT_PWD MQTT_CLIENT_PWD_2",
        "#define USER_PWD user_pwd2",
        "#define DEFAULT_PWD STR(MY_PWD_12)",
        "#define DB_PASSWORD STR(my_macro_12)",
        "#define USB_PWD portb12",
        "#define PASSWORD read-input-2",
        "#define PASSWORD string32",
        "#define password getcwd22",
        "#define SET_PASSWORD set_password_v22",
    ],
)
def test_names_of_code_stay(line: str) -> None:
    assert list(find_text_credentials(line)) == []
