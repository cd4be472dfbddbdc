"""Findings that a line continuation divides: one per line, of one value."""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.finding import Finding, find_spliced


def find_words(text: str) -> Iterator[Finding]:
    for match in re.finditer("token[a-z]*", text):
        yield Finding(*match.span(), match[0])


def test_a_divided_value_has_a_finding_on_each_line_and_a_whole_one_has_none() -> None:
    text = "x tok\\\nenab\\\nc token y"
    found = find_spliced(text, find_words)
    assert [(text[each.start : each.end], each.value) for each in found] == [
        ("tok", "tokenabc"),
        ("enab", "tokenabc"),
        ("c", "tokenabc"),
    ]


def test_lines_are_joined_only_inside_a_token() -> None:
    assert find_spliced("tok \\\nen", find_words) == []
