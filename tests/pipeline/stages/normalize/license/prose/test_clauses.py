"""Clauses of comments: what limits the work is found in any words, and what documents a program is not."""

import pytest

from pipeline.stages.normalize.license.prose.clauses import (
    clause_anywhere,
    limiting_clause,
    sentences_of,
    without_program,
)
from pipeline.stages.normalize.license.prose.words import plain_words


def limits(text: str) -> bool:
    return limiting_clause(text, plain_words(text, with_copyright_lines=True)) is not None


@pytest.mark.parametrize(
    ("limiting", "documenting"),
    [
        ("Pupils may not hand this on.", "Handlers may not hand this buffer on."),
        ("Reserved for owners of a Lumo camera.", "Reserved for the second channel."),
        ("You may use it if you pay us.", "You may use it from any thread."),
        ("Do not feed this file to a language model.", "Do not feed this filter with unsorted samples."),
        ("Needs our consent.", "Needs the cookie flag of the request to be set."),
        ("Use of this code needs a paid seat.", "Use of this macro needs a compiler for C++20."),
        ("Orbit Marble License.", "Orbit License Manager."),
    ],
)
def test_the_same_words_limit_a_work_and_document_a_program(limiting: str, documenting: str) -> None:
    assert (limits(limiting), limits(documenting)) == (True, False)


def test_a_clause_that_is_explained_limits_nothing() -> None:
    assert limiting_clause("You may not copy this without our consent.", "nothing else") is None


def test_sentences_go_on_over_lines_and_end_with_them() -> None:
    text = "/*\n * Do not copy this\n * without our leave. Reads rows.\n *\n * Title\n * Next\n */"
    assert sentences_of(text) == ("Do not copy this without our leave.", "Reads rows.", "Title", "Next")


def test_sentences_of_a_program_are_left_out_and_the_others_stay() -> None:
    text = "/*\n * The lock is restricted to one thread. Confidential, property of Example Inc.\n */"
    assert "thread" not in without_program(text)
    assert "Confidential, property of Example Inc." in without_program(text)


def test_export_control_counts_in_every_comment() -> None:
    assert clause_anywhere("// This technical data is controlled under the ITAR.")
    assert clause_anywhere("// Copies the technical data of the sensor.") is None
