"""Positions of comments, and the license header among them."""

import pytest

from pipeline.lexing.cpp import CPP_LEXER

FOUND = {
    "a line": ("a; // b\nc;", ["// b"]),
    "a block": ("a; /* b\n * c */ d;", ["/* b\n * c */"]),
    "a line that continues": ("// a \\\nb\nc;", ["// a \\\nb"]),
    "an unclosed block": ("a; /* b", ["/* b"]),
    "slashes in a literal": ('"http://x" // y', ["// y"]),
    "a quote in a comment": ("// don't\nint a; // b", ["// don't", "// b"]),
    "an escaped quote": (r'"a\"// b" // c', ["// c"]),
    "a raw string": ('R"x(// a )" /* b */)x" // c', ["// c"]),
    "thousands": ("1'000'000 // a", ["// a"]),
    "one thousand": ("1'000 // a", ["// a"]),
    "a star before the end": ("/***/ a /* b **/", ["/***/", "/* b **/"]),
    "division": ("a / b * c", []),
}
HEADER = "/* Copyright 2020 X */\n"


@pytest.mark.parametrize(("text", "expected"), FOUND.values(), ids=FOUND)
def test_comments_are_found(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in CPP_LEXER.comments(text)] == expected


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (HEADER + "int a;", HEADER.strip()),
        ("// a\n// license: MIT\n\n// more\nint a;", "// a\n// license: MIT"),
        ("#pragma once\n\n" + HEADER + "int a;", "#pragma once\n\n" + HEADER.strip()),
        ("#ifndef A_H\n#define A_H\n// SPDX-License-Identifier: MIT\nint a;", None),
        ("#ifndef A_H\n// MS\n#if defined(_MSC_VER)\n# pragma once\n#endif\n// Copyright A\nint a;", None),
        ("// what this does\nint a; // Copyright", ""),
        ("int a;\n" + HEADER, ""),
        ("", ""),
    ],
)
def test_the_header_ends_after_the_last_leading_comment_that_names_a_license(text: str, header: str | None) -> None:
    assert text[: CPP_LEXER.license_header_end(text)] == (text.removesuffix("\nint a;") if header is None else header)


def test_leading_comments_end_before_the_first_code() -> None:
    text = HEADER + "// what it does\n#include <a>\n// later"
    assert text[: CPP_LEXER.leading_comments_end(text)] == HEADER + "// what it does"
