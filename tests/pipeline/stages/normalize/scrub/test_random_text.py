"""Random text: characters that a generator chose are told from words, names, sequences and fillers."""

import random
import string

import pytest

from pipeline.stages.normalize.scrub.random_text import is_filler, is_in_order, is_random, is_wordy

LETTERS = string.ascii_letters + string.digits


def test_random_characters_are_random_and_neither_words_nor_fillers() -> None:
    generator = random.Random(7)
    values = ["".join(generator.choices(LETTERS, k=32)) for _ in range(500)]
    assert sum(map(is_random, values)) >= 0.97 * len(values)
    assert sum(map(is_wordy, values)) <= 1
    assert not any(map(is_in_order, values))


@pytest.mark.parametrize("value", ["thisIsAnIdentifierOfSomeLength", "an_ordinary_name_with_words", LETTERS])
def test_names_words_and_alphabets_are_not(value: str) -> None:
    assert not is_random(value)


@pytest.mark.parametrize("value", ["xxxxxxxxxxxxxxxxxxxxxxxx", "AKIAIOSFODNN7" + "EXAMPLE", "0000000000000000", "aaaa"])
def test_fillers_of_documentation_are_recognized(value: str) -> None:
    assert is_filler(value)
