"""TOML of somebody else: parsed like any other, and refused with one error, whatever is wrong with it."""

import pytest

from pipeline.core.toml_text import MAX_TOML_BYTES, parse_toml


def test_toml_is_parsed_with_and_without_a_byte_order_mark() -> None:
    content = '[[annotations]]\npath = ["a.c", "b.c"]\n"x.y".z = 1\n'
    assert parse_toml(content) == parse_toml(content.encode("utf-8-sig"))
    assert parse_toml(content)["annotations"][0]["x.y"] == {"z": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a = ", "Invalid value"),
        (b"a = '\xff'", "can't decode"),
        ("a = " + "[" * 50_000, "nested too deeply"),
        ("[" + "a." * 63 + "a]\n" + "b." * 63 + "b = 1", "nested too deeply"),
        ("[" + "a." * 50_000 + "a]", "a key of more than 64 parts"),
        ("a = {b = 1, " + "c." * 50_000 + "c = 1}", "a key of more than 64 parts"),
        ("a = " + "[" * 70 + "]" * 70, "nested too deeply"),
        ("a = " + "9" * 5_000, "limit"),
        ("a." * 50_000 + "a = 1", "a key of more than 64 parts"),
        ('"a" . ' * 50_000 + "a = 1", "a key of more than 64 parts"),
        ("#" * (MAX_TOML_BYTES + 1), "more than 4194304 characters"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_read_is_one_error(content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_toml(content)
