"""Sandbox of the kernel for commands of fetched sources: new namespaces and a file system of its own, or no run at all.

This module has no weaker fallback: limits and a clean environment stop an accident, but not a hostile script. Where the kernel
grants no sandbox, the run fails with `no_sandbox`; only `compile_check`, which executes no output, goes on without one.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from pipeline.core.child_process import run_child
from pipeline.sandbox import sandbox_child
from pipeline.sandbox.sandbox_child import PLACE

TOOLS = "tools"
"""First part of the path of a file in the tree that is made executable."""
_GRACE_SECONDS = 60
"""Time for writing the tree and packing the output, on top of the command's own."""


@dataclass(frozen=True)
class Limits:
    """Limits of one run."""

    cpu_seconds: int
    wall_seconds: int
    memory_bytes: int
    file_bytes: int = 1 << 30
    """Size of the largest file that it may write."""


@dataclass(frozen=True)
class SandboxRun:
    """Result of a command in the sandbox. `failure` is empty, or the reason why it has no result, in one word."""

    failure: str
    output: str
    made: Mapping[str, bytes] = field(default_factory=dict)
    """The files that it created below `build/` and `source/`, by path; not those of its tree that it changed."""
    exit_code: int = 0
    """That of the command if it ended by itself; negative for a signal."""


def run_confined(
    command: Sequence[str],
    tree: Mapping[str, bytes],
    path: Sequence[str],
    limits: Limits,
    folders: Sequence[Path] = (),
) -> SandboxRun:
    """Run a command that finds `tree` at `sandbox_child.PLACE` and can write nowhere else; what it writes stays in memory.

    It has no network, and sees of the machine its programs, Python and `folders`, all read-only.
    """
    settings = {"environment": _environment(path), "kept": _shown_folders(folders)}
    job = {"command": list(command), **settings, **asdict(limits)}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        _pack(tree, given)
        done = run_child(
            [sys.executable, "-I", sandbox_child.__file__, json.dumps(job)],
            limits.wall_seconds + _GRACE_SECONDS,
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
            stdin=given,
            stdout=made,
            stderr=subprocess.PIPE,
        )
        if done.exit_code is None:
            return SandboxRun("timeout", "")
        return _result(done.exit_code, done.stderr.decode("utf-8", "replace"), made)


def _result(code: int, answer: str, made: IO[bytes]) -> SandboxRun:
    if code == sandbox_child.NOT_GRANTED:
        return SandboxRun("no_sandbox", answer.strip())
    try:
        found = json.loads(answer)
    except ValueError:
        return SandboxRun("sandbox_failed", answer.strip())
    files = {} if found["failure"] else unpacked(made)
    return SandboxRun(found["failure"], found["output"], files, found["exit_code"])


def _environment(path: Sequence[str]) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join(path),
        "HOME": f"{PLACE}/home",
        "TMPDIR": f"{PLACE}/tmp",
        "XDG_CACHE_HOME": f"{PLACE}/home/cache",
        "ZIG_GLOBAL_CACHE_DIR": f"{PLACE}/tmp/zig",
        "ZIG_LOCAL_CACHE_DIR": f"{PLACE}/tmp/zig",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": "0",
    }


def _pack(tree: Mapping[str, bytes], file: IO[bytes]) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path, content in sorted(tree.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            member.mode = 0o755 if path.startswith(f"{TOOLS}/") else 0o644
            packed.addfile(member, io.BytesIO(content))
    file.flush()
    file.seek(0)


def unpacked(file: IO[bytes]) -> dict[str, bytes]:
    """Return the files of an archive below the folders that are taken whose names are printable, read into memory."""
    file.seek(0)
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=file, mode="r:") as packed:
        for member in packed:
            content = packed.extractfile(member) if member.isreg() else None
            top, *parts = member.name.split("/")
            is_inside = top in sandbox_child.TAKEN and parts and ".." not in parts
            if content is not None and is_inside and member.name.isprintable():
                found[member.name] = content.read()
    return found


def _shown_folders(others: Sequence[Path]) -> list[str]:
    """Return the folders of Python, which can be below a home, and the others, as far as they exist."""
    found = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent, *others}
    return sorted(str(folder) for folder in found if folder.is_dir())
