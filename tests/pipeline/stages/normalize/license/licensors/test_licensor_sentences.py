"""Sentences of licensors: most are found wherever they stand, those of programs are not, and a finding names its words."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.stages.normalize.license.licensors.licensor_sentences import (
    MIN_IN_CODE,
    MIN_IN_HEADER,
    licensor_sentence,
    signs_of,
    stem,
)
from tests.pipeline.stages.normalize.license.given_evidence import licenses_of
from tests.pipeline.stages.normalize.license.test_read_comments import (
    after_includes,
    decided,
    in_block,
    in_lines,
    is_kept,
)
from tests.pipeline.stages.normalize.license.test_texts import MIT

LABELED = tomllib.loads((Path(__file__).parent / "labeled_sentences.toml").read_text())
FIRST_SEEN = LABELED["first_seen"]
LEARNED, HELD_OUT = ([each for style in LABELED[part].values() for each in style] for part in ("learned", "held_out"))


def within_code(comment: str) -> str:
    return f"#include <a.h>\n\nint f(void) {{\n  return 1;\n}}\n\n// {comment}\nint g(void) {{\n  return 0;\n}}\n"


@pytest.mark.parametrize(
    ("sentences", "shape", "least"),
    [
        # Shares that were found when the weights were learned, rounded down: none is a promise for words that nobody wrote yet.
        (LEARNED, in_lines, 0.75),
        (LEARNED, after_includes, 0.75),
        (LEARNED, within_code, 0.15),
        (HELD_OUT, in_block, 0.6),
        (HELD_OUT, within_code, 0.12),
        (FIRST_SEEN["limiting"], in_lines, 0.45),
    ],
)
def test_limits_in_any_words_are_found(sentences: list[str], shape: Callable[[str], str], least: float) -> None:
    found = [each for each in sentences if not is_kept(shape(each))]
    assert len(found) >= least * len(sentences)


@pytest.mark.parametrize("shape", [in_lines, after_includes, within_code])
def test_sentences_of_programs_limit_nothing(shape: Callable[[str], str]) -> None:
    refused = [each for each in LABELED["innocent"]["plain"] if not is_kept(shape(each))]
    assert len(refused) <= 0.07 * len(LABELED["innocent"]["plain"])


def test_a_finding_names_the_words_that_weigh_most() -> None:
    detail = decided(in_lines("Please note that only members of the consortium may build it.")).detail
    assert "only members of the consortium may build it" in detail
    assert "words that weigh most: " in detail
    assert "consortium" in detail.partition("words that weigh most: ")[2]


def test_words_that_a_text_explains_weigh_nothing() -> None:
    sentence = "Only the members of our guild may have this."
    assert licensor_sentence(sentence, None, MIN_IN_HEADER) is not None
    assert licensor_sentence(sentence, "/ some rest /", MIN_IN_HEADER) is None
    kept = licenses_of({"LICENSE": MIT.encode()}, "MIT").decide("a.c", in_block(MIT))
    assert kept.drop_reason is None


def test_code_needs_more_than_a_header() -> None:
    assert MIN_IN_CODE > MIN_IN_HEADER
    (found,) = filter(None, [licensor_sentence("Not for outsiders.", None, MIN_IN_HEADER)])
    assert is_kept(within_code("Not for outsiders."))
    assert not is_kept(in_lines("Not for outsiders."))
    assert MIN_IN_HEADER <= found.weight < MIN_IN_CODE


@pytest.mark.parametrize(
    ("word", "bare"),
    [
        ("sharing", "shar"),
        ("shared", "shar"),
        ("members", "memb"),
        ("copies", "cop"),
        ("its", "its"),
        ("uses", "use"),
        ("sells", "sell"),
    ],
)
def test_endings_are_cut(word: str, bare: str) -> None:
    assert stem(word) == bare


def test_names_of_code_and_pairs_of_words_are_signs() -> None:
    expected = {"w:shar", "b:do not", "c:negation", "p:negation>this", "^w:do", "n:4", "code:2"}
    assert expected <= signs_of("do not share this", 3)
    assert signs_of("", 0) == frozenset()
