"""Weights of sentences: what a licensor says weighs, technical words weigh against it."""

import time

import pytest

from pipeline.stages.normalize.license.prose.sentences import spoken, spoken_as_written


@pytest.mark.parametrize(
    ("words", "in_header", "in_code"),
    [
        ("this software is strictly confidential", True, True),
        ("the source code may not be used", True, False),
        ("the buffer may not be used by the caller", False, False),
        ("draws from the normal distribution of values", False, False),
        ("alle rechte vorbehalten", True, True),
    ],
)
def test_a_comment_in_code_needs_more_than_a_header(words: str, in_header: bool, in_code: bool) -> None:
    assert (spoken(words, True) is not None, spoken(words, False) is not None) == (in_header, in_code)


def test_words_on_both_sides_of_what_is_explained_are_not_one_sentence() -> None:
    assert spoken("the source code may not be used", True)
    assert spoken("the source code / may not be used", True) is None


def test_scripts_without_a_latin_alphabet_are_read_across_margins() -> None:
    assert spoken_as_written("/* 未经\n * 许可不得复制 */", False)
    assert spoken_as_written("// Все права\n// защищены.", False)
    assert spoken_as_written("// права на код", True)
    assert spoken_as_written("/* 计算两个数的和 */", True) is None


@pytest.mark.parametrize("comment", ["// запис исправан", "// сдвиг справа налево", "// градска управа"])
def test_a_word_that_holds_one_of_law_is_none(comment: str) -> None:
    assert spoken_as_written(comment, True) is None


def test_the_time_is_linear_in_the_words() -> None:
    words = "the software and its license " * 4_000
    start = time.process_time()
    spoken(words, True)
    once = time.process_time() - start
    spoken(words * 4, True)
    assert time.process_time() - start < 12 * once + 1
