"""Compile check of a C++ text: a compiler reads it within limits; nothing is run, linked or kept.

A text may include `/dev/zero` or expand templates without an end. The compiler therefore runs in the sandbox, where the kernel
grants one that holds the compiler; otherwise in a scratch folder, without network if possible, and with the same limits. There it
reads what this user may read: a text that includes a file by its path from the root compiles if that file is there.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import asdict
from enum import StrEnum
from functools import cache, partial
from pathlib import Path

from pipeline.core.child_process import run_child
from pipeline.sandbox.sandbox import Limits, SandboxRun, run_confined
from pipeline.sandbox.sandbox_child import lower_limits

COMPILERS = ("g++", "clang++", "c++")
LIMITS = Limits(cpu_seconds=10, wall_seconds=20, memory_bytes=2 << 30, file_bytes=1 << 20)

_OPTIONS = ("-std=c++20", "-fsyntax-only", "-w", "-ftemplate-depth=200")
_KNOWN = b"#include <vector>\nint size(const std::vector<int>& values) { return int(values.size()); }\n"
"""A text that compiles: where it does not in the sandbox, that says nothing of the text but that the compiler is not there."""


class CompileVerdict(StrEnum):
    """Result of a compile check."""

    COMPILED = "compiled"
    REFUSED = "did not compile"
    EXHAUSTED = "ran past the limits"
    NO_COMPILER = "no compiler"


def compile_check(text: str, compiler: str | None = None) -> CompileVerdict:
    """Check the syntax and types of a C++20 text. `compiler` is a name or path; None takes the first that is installed."""
    names = COMPILERS if compiler is None else (compiler,)
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        return CompileVerdict.NO_COMPILER
    content = text.encode("utf-8", "surrogateescape")
    if not is_confinable(found):
        return _verdict(_exit_code_outside(found, content))
    run = _confined(found, content)
    if run.failure not in ("", "failed"):
        return CompileVerdict.EXHAUSTED
    return _verdict(run.exit_code)


@cache
def is_confinable(compiler: str) -> bool:
    """Return whether the kernel grants a sandbox and the compiler works in it: it may be installed where none is shown."""
    return not _confined(compiler, _KNOWN).failure


def _confined(compiler: str, content: bytes) -> SandboxRun:
    path = "source/sample.cpp"
    return run_confined([compiler, *_OPTIONS, path], {path: content}, os.defpath.split(os.pathsep), LIMITS)


def _verdict(code: int) -> CompileVerdict:
    # A driver whose own child was killed by a limit exits with 4; one like a shell with 128 and more.
    if code < 0 or code == 4 or code > 128:
        return CompileVerdict.EXHAUSTED
    return CompileVerdict.REFUSED if code else CompileVerdict.COMPILED


def _exit_code_outside(compiler: str, content: bytes) -> int:
    with tempfile.TemporaryDirectory(prefix="compile-") as folder:
        Path(folder, "sample.cpp").write_bytes(content)
        done = run_child(
            [*_without_network(), compiler, *_OPTIONS, "sample.cpp"],
            LIMITS.wall_seconds,
            cwd=folder,
            env={"PATH": os.defpath, "TMPDIR": folder, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=partial(lower_limits, asdict(LIMITS)),  # nothing here holds a lock across the fork
        )
    return -signal.SIGKILL if done.exit_code is None else done.exit_code


@cache
def _without_network() -> tuple[str, ...]:
    """Return the command prefix that takes the network away, or nothing where the kernel does not grant it."""
    line = ("unshare", "--map-root-user", "--net", "--")
    if shutil.which("unshare") is None:
        return ()
    works = subprocess.run([*line, "true"], capture_output=True, check=False).returncode == 0
    return line if works else ()
