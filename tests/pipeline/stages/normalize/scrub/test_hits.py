"""Hits: lines are found once each, in characters, whatever letters stand before them."""

import pytest

from pipeline.stages.normalize.scrub.hits import condition, hit_lines


@pytest.mark.parametrize("before", ["", "int a;\n", "// Größe 邮箱\n", "\n\n"])
@pytest.mark.parametrize("after", ["", "\n", "\nx\n"])
def test_a_line_is_found_whole_and_once(before: str, after: str) -> None:
    line = "the key and the key"
    found = list(hit_lines(before + line + after, condition("key", "lock")))
    assert [(before + line + after)[start:end] for start, end in found] == [line]


def test_every_line_with_a_match_is_found() -> None:
    text = "key é\nno\nlock\nkey"
    assert [text[start:end] for start, end in hit_lines(text, condition("key", "lock"))] == ["key é", "lock", "key"]
