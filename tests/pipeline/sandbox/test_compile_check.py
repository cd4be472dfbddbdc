"""The compile check: a verdict for text of every kind, within limits, in the sandbox and without one."""

import shutil
from pathlib import Path

import pytest

from pipeline.sandbox import compile_check as module
from pipeline.sandbox.compile_check import CompileVerdict, compile_check, is_confinable

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler is installed")
COMPILED, REFUSED, EXHAUSTED = CompileVerdict.COMPILED, CompileVerdict.REFUSED, CompileVerdict.EXHAUSTED


@pytest.fixture(params=["sandbox", "limits"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "limits":
        monkeypatch.setattr(module, "is_confinable", lambda compiler: False)
    elif COMPILER is None or not is_confinable(COMPILER):
        pytest.skip("no sandbox that holds the compiler")


@needs_compiler
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("int twice(int x) { return 2 * x; }\n", {COMPILED}),
        ("", {COMPILED}),
        ("int broken( { return }", {REFUSED}),
        ('#include "not_there.hpp"\n', {REFUSED}),
        ("int x = \udcff;", {REFUSED}),
        ('#include "/dev/zero"\n', {EXHAUSTED, REFUSED}),
        ("template<int N> struct S { S<N + 1> s; }; S<0> s;", {REFUSED}),
        ("constexpr int f() { for (;;) {} } static_assert(f());", {REFUSED, EXHAUSTED}),
    ],
)
def test_a_text_is_judged(text: str, verdicts: set[CompileVerdict]) -> None:
    assert compile_check(text) in verdicts


@needs_compiler
def test_in_the_sandbox_a_text_includes_nothing_of_a_home(tmp_path: Path) -> None:
    if not is_confinable(COMPILER or ""):
        pytest.skip("no sandbox that holds the compiler")
    header = tmp_path / "private.h"
    header.write_text("")

    assert compile_check(f'#include "{header}"\n') is REFUSED


def test_a_compiler_that_the_sandbox_does_not_hold_is_run_outside(tmp_path: Path) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexit 0\n")
    compiler.chmod(0o755)

    assert not is_confinable(str(compiler))
    assert compile_check("not C++ at all", compiler=str(compiler)) is COMPILED


def test_a_missing_compiler_gives_no_verdict_on_the_text() -> None:
    assert compile_check("int x;", compiler="there-is-no-such-compiler") is CompileVerdict.NO_COMPILER
