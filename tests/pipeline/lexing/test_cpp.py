"""Tokens, comments and their hashes, held against one regular expression and plain integers."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.build.recipes import ROOT
from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import lexed
from tests.support.plain_lexing.cpp_tokens import tokens
from tests.support.plain_lexing.plain_lexer import plain_bare, plain_hash, plain_lex

PIECES = [
    *"\"'\\\n\r\t\v\f /*()R.:;<>%#0e+_aZ?@$`\x00\x1c\x7f",
    *("//", "/*", "*/", "\\\n", "\\\r\n", 'R"(', ')"', 'u8R"x(', ')x"', 'LR"', 'XR"(', '")', "'a'", "1'000", "0x1p-3"),
    *("->*", "<<=", "...", "<:", ":>", "??/", "a;b;", " * c; d;", "\u00e9", "\u0661", "\u00b2", "\u00a0", "\u2014"),
    *("\u4e2d\u6587", "\U0001f600", "\U0001d7d8", "\udc80", "\u2028", "\ufeff", "#include <a>\n", '"\\"', "e+", "u8"),
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@settings(max_examples=400)
@given(HOSTILE | st.text(max_size=40))
@example("// a\\")
@example('"a\\')
@example('R"(a' * 3)
@example('R"0123456789abcdefg(a)0123456789abcdefg"')
@example('R"0123456789abcdef(a)0123456789abcdef" u8R"(b)" R"x(c)"')
@example("/*/ a; b; /**/ c; /*")
def test_tokens_comments_and_hashes_are_those_of_the_regular_expression(text: str) -> None:
    wanted, comments = plain_lex(text)
    assert tokens(text) == wanted
    assert CPP_LEXER.token_hashes(text).tolist() == [plain_hash(token) for token in wanted]
    assert CPP_LEXER.comments(text) == comments


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([*PIECES, "// ", "/* ", " */", "\n", ";", ";"]), max_size=40).map("".join),
    st.integers(0, 30),
)
def test_code_in_comments_and_their_visible_characters_are_those_of_plain_strings(text: str, start: int) -> None:
    _, comments = plain_lex(text)
    bare = plain_bare(text, comments)
    wanted = plain_lex(bare)[0] if bare.count(";") >= 2 else []
    assert CPP_LEXER.comment_hashes(text).tolist() == [plain_hash(token) for token in wanted]
    visible = "".join(text[begin:end] for begin, end in comments if begin >= start)
    assert CPP_LEXER.num_visible_in_comments(text, start) == sum(character not in " \t\n" for character in visible)


def test_the_same_tokens_have_the_same_hashes_in_any_text() -> None:
    code = 'int a = b->c(1\'000, u8R"x(raw)x"); // gone'
    assert (
        CPP_LEXER.token_hashes(code).tolist()
        == CPP_LEXER.token_hashes("/* \u4e2d */ " + code.replace("x", "")).tolist()
    )


@pytest.mark.parametrize("opening", ['R"(', 'R"a(', '"', "'", "/*", "//\\\n", "\\\n", "1'", 'u8R"0123456789abcdef('])
def test_what_is_never_closed_costs_its_length_and_not_its_square(opening: str) -> None:
    # A square would be 10^11 steps and more: minutes.
    assert len(lexed(CPP_LEXER, opening * 300_000).data) == 300_000 * len(opening)


def test_random_bytes_of_every_kind_lex_as_the_oracle_does() -> None:
    draw = random.Random(1)
    text = "".join(draw.choice(PIECES) for _ in range(20_000))
    wanted, comments = plain_lex(text)
    assert tokens(text) == wanted
    assert CPP_LEXER.comments(text) == comments


@pytest.mark.slow
def test_hashes_are_the_same_where_no_machine_code_can_be_kept(tmp_path: Path) -> None:
    """A read-only package and a home that cannot be written: each process compiles for itself, and no folder is needed."""
    code = f"""
import numba.core.caching as caching
for locator in caching.CacheImpl._locator_classes:
    locator.from_function = classmethod(lambda cls, *args: None)
from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing import lexer_loops
assert not lexer_loops.lex._cache.cache_path
print(CPP_LEXER.token_hashes({CODE!r}).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=os.environ | {"HOME": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(CPP_LEXER.token_hashes(CODE).tolist())


CODE = "int main() { return 0; } // done"
