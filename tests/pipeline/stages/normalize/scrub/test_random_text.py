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


def test_letters_that_are_pairs_of_words_in_no_one_case_are_no_words() -> None:
    assert not is_wordy("z1ASHEpvcsoRItOuCUTJ8DE7")
    for value in ("YourAccountToken2ForTheServer", "HTTPServerConnectionReader", "Allocate2WayNodePartitionMemory"):
        assert is_wordy(value)
    assert not is_filler("9LXXxXvjxkJnA6blmW9NqQrm")


@pytest.mark.parametrize("value", ["thisIsAnIdentifierOfSomeLength", "an_ordinary_name_with_words", LETTERS])
def test_names_words_and_alphabets_are_not(value: str) -> None:
    assert not is_random(value)


@pytest.mark.parametrize("value", ["xxxxxxxxxxxxxxxxxxxxxxxx", "AKIAIOSFODNN7" + "EXAMPLE", "0000000000000000", "aaaa"])
def test_fillers_of_documentation_are_recognized(value: str) -> None:
    assert is_filler(value)


def test_a_margin_glued_to_random_characters_makes_no_filler_of_them() -> None:
    assert not is_filler("qR7vLx0PzTk3Wm9B" + "x" * 3_000)
    assert is_filler("password" + "x" * 3_000)


def test_random_letters_that_spell_a_word_are_no_filler() -> None:
    assert not is_filler("k9yOuRt3" + "LmQ7zXw2")
    assert is_filler("glpat-your-token-1a2b3c")
