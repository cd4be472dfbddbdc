"""Further merges are those that a plain count over all words finds, step by step."""

from collections import Counter
from itertools import pairwise

from pipeline.stages.tokenize.further_merges import further_merges, merged


def test_further_merges_are_those_of_a_count_over_all_words_at_each_step() -> None:
    words = {tuple(word): number for number, word in enumerate(["abab", "abc", "bcab", "ccc", "aaaa"], start=1)}
    current, expected = dict(words), []
    while True:
        counts: Counter[tuple[str, str]] = Counter()
        for word, number in current.items():
            for pair in pairwise(word):
                counts[pair] += number
        fitting = [(-count, pair) for pair, count in counts.items() if len("".join(pair)) <= 3]
        if not fitting:
            break
        expected.append(min(fitting)[1])
        current = {tuple(merged(word, expected[-1])): number for word, number in current.items()}

    assert list(further_merges(words, 3)) == expected


def test_a_pair_is_joined_from_the_left() -> None:
    assert merged("aaab", ("a", "a")) == ["aa", "a", "b"]
