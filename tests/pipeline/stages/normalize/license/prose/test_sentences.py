"""Weights of sentences: what a licensor says weighs, technical words weigh against it."""

import random
import re
import time
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain

import pytest

from pipeline.stages.normalize.license.prose import sentences
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


def _stretches() -> Iterator[bytes]:
    """Yield terms of the table, without their operators, among other words, in any order."""
    table = tomllib.loads((files(sentences.__package__) / sentences.TERMS_FILE).read_text(encoding="utf-8"))["words"]
    other = table.pop("other")
    terms = chain.from_iterable(each for part in (table, other) for each in part.values())
    plain = sorted({word for term in terms for word in re.findall("[a-z]+(?: [a-z]+)*", term)})
    chosen = random.Random(7)
    for _ in range(2_000):
        yield " ".join(chosen.choices([*plain, "the", "of", "N1", "/"], k=12)).encode()


def test_a_term_that_is_found_without_groups_has_the_weight_of_the_group_that_finds_it() -> None:
    for words in _stretches():
        weighed = [(match.span(), sentences._weight(match)) for match in sentences._weighed_words().finditer(words)]

        found = [(match.span(), sentences._weight_of(match[0])) for match in sentences._words().finditer(words)]
        assert found == weighed
