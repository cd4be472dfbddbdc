"""Whether a compiler takes a text as C++, asked in a sandbox: nothing is run, linked or written, and no answer is taken on trust.

The compiler gets a scratch folder, no network where the system lets us take it away, no input, and limits of time, memory and
file size: a text may include `/dev/zero` or expand templates without an end.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from enum import StrEnum
from functools import cache
from pathlib import Path

COMPILERS = ("g++", "clang++", "c++")
SECONDS, MEMORY_BYTES, FILE_BYTES = 10, 2 * 2**30, 2**20


class Verdict(StrEnum):
    """What became of a text."""

    COMPILED = "compiled"
    REFUSED = "did not compile"
    EXHAUSTED = "ran past the limits"
    NO_COMPILER = "no compiler"


def compile_check(text: str, compiler: str | None = None) -> Verdict:
    """Whether the syntax and types of a C++20 text hold. `compiler` is a name or path; None takes the first that is there."""
    names = COMPILERS if compiler is None else (compiler,)
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        return Verdict.NO_COMPILER
    with tempfile.TemporaryDirectory(prefix="compile-") as folder:
        source = Path(folder) / "sample.cpp"
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        line = [*_without_network(), found, "-std=c++20", "-fsyntax-only", "-w", "-ftemplate-depth=200", source.name]
        return _ask(line, folder)


def _ask(line: list[str], folder: str) -> Verdict:
    environment = {"PATH": os.defpath, "TMPDIR": folder, "LC_ALL": "C"}
    child = subprocess.Popen(
        line,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_limit,  # nothing here holds a lock across the fork
    )
    try:
        code = child.wait(timeout=2 * SECONDS)
    except subprocess.TimeoutExpired:
        code = -signal.SIGKILL
    finally:
        _end(child)
    # A driver whose own child was killed by a limit answers 4; a shell-like one 128 and more.
    if code < 0 or code == 4 or code > 128:
        return Verdict.EXHAUSTED
    return Verdict.REFUSED if code else Verdict.COMPILED


def _limit() -> None:
    for kind, most in (
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@cache
def _without_network() -> tuple[str, ...]:
    """The words that take the network away, or none where the system does not let us."""
    line = ("unshare", "--map-root-user", "--net", "--")
    if shutil.which("unshare") is None:
        return ()
    works = subprocess.run([*line, "true"], capture_output=True, check=False).returncode == 0
    return line if works else ()
