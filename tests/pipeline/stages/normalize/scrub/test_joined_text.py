"""Divided values: what is read as one has a finding for each of its parts, with the value of all."""

import re
from collections.abc import Iterable

import pytest

from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.joined_text import find_divided, with_blanks_of_escapes

PARTS = {
    'f("tok" "enab" "c");': ["tok", "enab", "c"],
    'f("tok"/* " */"enabc");': ["tok", "enabc"],
    'f("tok" // it is "one"\n  u8"enabc");': ["tok", "enabc"],
    'f("tok" + "enabc");': ["tok", "enabc"],
    'f(R"(tok)" LR"x(enabc)x");': ["tok", "enabc"],
    r'f("t\x6fkenabc");': [r"t\x6fkenabc"],
    r'f("\164okenabc" "d");': [r"\164okenabc", "d"],
    r'f("\u0074oken" "\x61");': [r"\u0074oken", r"\x61"],
    "f('t', 'o', 'k','e','n','a','b','c','d','e','f','g','h','i','j','k');": [
        "t', 'o', 'k','e','n','a','b','c','d','e','f','g','h','i','j','k"
    ],
    "{'t','o','k','e','n','a','b','c','d',\n 'e','f','g','h','i','j','k'}": [
        "t','o','k','e','n','a','b','c','d",
        "e','f','g','h','i','j','k",
    ],
    "tok\\\nenab\\\nc token": ["tok", "enab", "c"],
    "tok \\\nen": [],
    '"tokenabc" "tokend"': ["tokenabc", "tokend"],
    '"tokenabc";\n"tokend"': [],
    'é "tok" é "enabc"': [],
    'é "tok" "enabc"': ["tok", "enabc"],
}


def find_words(text: str) -> Iterable[Finding]:
    return [Finding(*match.span(), match[0]) for match in re.finditer("token[a-z]+", text)]


@pytest.mark.parametrize(("text", "parts"), PARTS.items())
def test_each_part_of_a_divided_value_is_found(text: str, parts: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_divided(text, find_words)] == parts


def test_parts_have_the_value_of_the_whole() -> None:
    assert {each.value for each in find_divided('f("tok" "enab" "c");', find_words)} == {"tokenabc"}


def test_escapes_of_blanks_are_read_as_these_and_other_escapes_stay() -> None:
    line = r'"a\nb\tc\rd\\ne\"f\x41"'
    assert with_blanks_of_escapes(line) == '"a \nb \tc \rd' + r'\\ne\"f\x41"'
