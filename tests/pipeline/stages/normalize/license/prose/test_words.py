"""Words of license prose: spellings, margins and names that do not count."""

import pytest

from pipeline.stages.normalize.license.prose.words import license_words, plain_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/* Copyright (c) 2020 A Person\n * The Licence */", "the license"),
        ("1. may be Cancelled, or\n(b) canceled", "may be canceled or canceled"),
        ("redis-\n * tribution", "redis tribution"),
        ("in no event shall THE AUTHORS be liable", "in no event shall someone be liable"),
        ("in no event shall the license be liable", "in no event shall the license be liable"),
    ],
)
def test_only_words_that_grant_or_limit_are_left(text: str, words: str) -> None:
    assert license_words(text) == words


def test_a_hyphen_at_a_line_end_may_divide_a_word_and_copyright_lines_can_be_kept() -> None:
    assert plain_words("redis-\ntribution", hyphen="") == "redistribution"
    assert plain_words("Copyright 2020 A", with_copyright_lines=True) == "copyright 2020 a"
