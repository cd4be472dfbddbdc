"""A compiler is asked, not trusted: it answers for text of every kind, within limits, and its absence is told apart."""

import shutil

import pytest

from trainer.inference.syntax_check import Verdict, compile_check

HAS_COMPILER = shutil.which("g++") is not None or shutil.which("clang++") is not None


@pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler is installed")
@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("int twice(int x) { return 2 * x; }\n", {Verdict.COMPILED}),
        ("", {Verdict.COMPILED}),
        ("int broken( { return }", {Verdict.REFUSED}),
        ('#include "not_there.hpp"\n', {Verdict.REFUSED}),
        ("int x = \udcff;", {Verdict.REFUSED}),
        ('#include "/dev/zero"\n', {Verdict.EXHAUSTED, Verdict.REFUSED}),
        ("template<int N> struct S { S<N + 1> s; }; S<0> s;", {Verdict.REFUSED}),
        ("constexpr int f() { for (;;) {} } static_assert(f());", {Verdict.REFUSED, Verdict.EXHAUSTED}),
    ],
)
def test_a_text_is_judged(text: str, verdicts: set[Verdict]) -> None:
    assert compile_check(text) in verdicts


def test_no_compiler_is_no_verdict_on_the_text() -> None:
    assert compile_check("int x;", compiler="there-is-no-such-compiler") is Verdict.NO_COMPILER
