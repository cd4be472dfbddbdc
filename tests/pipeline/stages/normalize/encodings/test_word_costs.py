"""Word costs: those of the table, one pair of letters after the other, whatever the other words are."""

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.stages.normalize.encodings import word_costs as subject
from pipeline.stages.normalize.encodings.word_costs import word_costs

TABLE = tomllib.loads(Path(subject.__file__).with_name("letter_pairs.toml").read_text(encoding="utf-8"))
WORDS = ["été", "Größe", "ΟΔΟΣ", "Привет", "łÓdź", "目录", "目é", "ไฟล์", "\u212a", "İstanbul", "e\u0301"]


def cost_of_pairs(word: str, groups: list[str]) -> float:
    """Add up what the table says of pairs, letter by letter."""
    cost = 0.0 if word in (word.lower(), word.upper(), word.title()) else 5.0
    alphabet = {*"".join(groups), *" abcdefghijklmnopqrstuvwxyz"}
    levels = {group[at : at + 2]: level + 0.5 for level, group in enumerate(groups) for at in range(0, len(group), 2)}
    for first, second in pairwise(f" {word.lower()} "):
        if not (first + second).isascii():
            cost += levels.get(first + second, 8.0 if {first, second} <= alphabet else 12.0)
    return cost


def cost_of_characters(word: str, groups: list[str]) -> float:
    """Add up what the table says of characters."""
    levels = {character: level + 0.5 for level, group in enumerate(groups) for character in group}
    return sum(levels.get(character, 14.0) for character in word.lower() if not character.isascii())


@pytest.mark.parametrize("word", WORDS)
def test_a_word_costs_what_the_table_says_of_its_letters(word: str) -> None:
    expected = [cost_of_pairs(word, groups) for groups in TABLE["pairs"].values()]
    expected += [cost_of_characters(word, groups) for groups in TABLE["characters"].values()]
    assert word_costs([word])[0].tolist() == expected


def test_words_cost_the_same_beside_others() -> None:
    assert word_costs(WORDS).tolist() == [word_costs([word])[0].tolist() for word in WORDS]
    assert len(word_costs([])) == 0
