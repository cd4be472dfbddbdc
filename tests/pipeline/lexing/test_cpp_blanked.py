"""Texts without comments and literals: the machine code blanks what regular expressions find."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.lexing.cpp import blanked, shortened
from tests.support.paths import MADE_CORPUS
from tests.support.plain_lexing.plain_lexer import plain_blanked

CORPUS = MADE_CORPUS.parent
PIECES = [*"/*\\()R\"'\n ax\v\x00", "//", "/*", "*/", 'R"(', ')"', 'R"ax(', ')ax"', '\\"', "'\\''", "''", "é", "a" * 17]


def assert_alike(content: bytes) -> None:
    text = content.decode("utf-8", "surrogateescape")
    assert blanked(content) == plain_blanked(text).encode("utf-8", "surrogateescape")
    assert shortened(content) == plain_blanked(text, is_short=True).encode("utf-8", "surrogateescape")


@settings(max_examples=1_500)
@given(st.lists(st.sampled_from([*PIECES, "1", "1'000", "—", "u8R", "L"]), max_size=40))
@example(["1'000'000 + '\"' // a"])
@example(['ERROR"(a)" b "("'])
@example(['R"(', "a\n", '"b" c', 'R"x(d)x"'])
@example(["// a \\\nb\nc"])
def test_any_heap_of_quotes_and_comments_reads_as_the_expressions_do(pieces: list[str]) -> None:
    assert_alike("".join(pieces).encode())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a = 1'000'000; // b", "a = 1'000'000;     "),
        ('ERROR"(a" b ")" c', "ERROR     b     c"),
        ('R"x(a)" //)x" b', "              b"),
        ('R"(a "b" c', "R     b   "),
        ("f('\\'', \"é\"); /* g\n */", "f(    ,     );     \n   "),
    ],
)
def test_comments_and_literals_are_spaces_and_what_only_looks_like_one_stays(text: str, left: str) -> None:
    assert blanked(text.encode()).decode() == left


@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.[ch]*")), ids=lambda path: path.name)
def test_real_files_read_as_the_expressions_do(path: Path) -> None:
    if path.parent.name != "encodings":
        assert_alike(path.read_bytes())


@pytest.mark.parametrize("opening", ['R"(', 'R"a(', '"', "'", "/*", "//\\\n", "/", 'R"', "\\", 'R"aaaaaaaaaaaaaaaa)'])
def test_what_is_never_closed_costs_its_length_and_not_its_square(opening: str) -> None:
    content = opening.encode() * 200_000

    assert len(blanked(content)) == len(content)
    assert len(shortened(content)) <= len(content)
