"""Runs of tokens are those of the code, as the lexers of the stage see it."""

import pytest

from pipeline.build.oracles.drops.token_runs import (
    jaccard_of,
    runs_of,
    tokens_of,
    tokens_of_comments,
    without_include_directives,
)
from pipeline.stages.normalize.duplicates.shingles import jaccard, shingle_hashes

FIRST = "// One.\n#include <a/b.h>\nint price(list *a) { return a->size >= 12 ? f(\"a b\", 'x') : 1.5; } /* two */\n"
SECOND = FIRST.replace("12", "13").replace("One", "Three")


def test_tokens_are_words_literals_and_operators() -> None:
    code = b'int a->b; // c\nx >>= "q \\" r"; /* d e */ y(1.5e3);'

    assert list(tokens_of(code)) == [
        *(b"int", b"a", b"->", b"b", b";", b"x", b">>=", b'"q \\" r"', b";", b"y", b"(", b"1.5e3", b")", b";")
    ]
    assert tokens_of_comments(code) == [b"c", b"d", b"e"]


def test_a_comment_that_does_not_end_is_one_to_the_end_as_in_the_stage() -> None:
    code = "int price(list *a) { return a->size >= 12 ? f(1) : 2; }\n/* What comes\nis prose: none of it is *code* ("

    assert tokens_of(code.encode())[-1] == b"}"
    assert tokens_of_comments(code.encode())[:3] == [b"What", b"comes", b"is"]
    assert len(runs_of(tokens_of(code.encode()), 5)) == len(shingle_hashes("a.h", code))


def test_a_raw_string_is_one_token_as_in_the_stage() -> None:
    raw = 'R"x(int a;\n)" b // c)x"'
    code = f'f({raw}, u8R"()", "R", LR"(a'

    assert list(tokens_of(code.encode()))[:8] == [
        *(b"f", b"(", raw.encode(), b",", b'u8R"()"', b",", b'"R"', b","),
    ]
    assert tokens_of(code.encode())[-1] == b"a"
    shaders = [f'{FIRST}const char *text = R"({SECOND * number})";\n' for number in (3, 40)]
    found = jaccard_of(*(runs_of(tokens_of(each.encode()), 5) for each in shaders))
    assert found == pytest.approx(jaccard(*(shingle_hashes("a.cc", each) for each in shaders)), abs=0.05)


@pytest.mark.parametrize(("before", "is_one"), [(b'R"(' * 15, True), (b'R"(' * 16, False), (b'R"(a)" ' * 20, True)])
def test_after_many_raw_strings_without_an_end_none_is_looked_for(before: bytes, is_one: bool) -> None:
    tokens = tokens_of(before + b'R"x(b c)x"')

    assert (tokens[-1] == b'R"x(b c)x"') == is_one
    assert (b"c" in tokens) != is_one


def test_a_comment_beside_a_raw_string_begins_none() -> None:
    code = '// Calls the hook (\nf(R"(hello)"); /* so ( */ // "x (\ng(\'(\');'

    assert list(tokens_of(code.encode())) == [
        each.encode() for each in ("f", "(", 'R"(hello)"', ")", ";", "g", "(", "'('", ")", ";")
    ]


def test_a_character_beyond_ascii_is_one_token() -> None:
    assert list(tokens_of("a ≤ 'é' 语; \"ü\"".encode())) == [
        each.encode() for each in ("a", "≤", "'é'", "语", ";", '"ü"')
    ]


@pytest.mark.parametrize(
    ("code", "left"),
    [
        (b"#include <a.h>\nint b;", [b"int", b"b", b";"]),
        (b'#include "a.h"\nint b;', [b"int", b"b", b";"]),
        (b"#include FT_FREETYPE_H\nint b; b->c > d", [b"int", b"b", b";", b"b", b"->", b"c", b">", b"d"]),
        (b"#include <a.h\n" + b"b; " * 60 + b"b > c", [b"a.h", *[b"b", b";"] * 60, b"b", b">", b"c"]),
        (b"#define include\nb > c", [b"#", b"define", b"include", b"b", b">", b"c"]),
    ],
)
def test_includes_are_left_out(code: bytes, left: list[bytes]) -> None:
    assert without_include_directives(tokens_of(code)) == left


def test_what_two_texts_share_is_about_what_the_stage_measures() -> None:
    own = jaccard_of(*(runs_of(tokens_of(text.encode()), 5) for text in (FIRST, SECOND)))
    measured = jaccard(*(shingle_hashes("a.cpp", text) for text in (FIRST, SECOND)))

    assert 0.5 < own < 1
    assert own == pytest.approx(measured, abs=0.05)
    assert jaccard_of([], []) == 0


def test_include_directives_go_wherever_they_stand() -> None:
    words = tuple(b"word%d" % number for number in range(80))

    assert without_include_directives((*words, b"#", b"include", b"<", b"vector", b">", b"x")) == [*words, b"x"]
