"""Running a fetched tree's own scripts: in a sandbox of the kernel, or not at all.

There is no weaker way to fall back to. Limits and a clean environment keep an honest script from doing harm by accident,
and a hostile one from nothing; where the namespaces cannot be had, the source is parsed only, and a note says so.
"""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pipeline.enrich.compiler.tools import CONFIGURING, has_package, package_folder
from pipeline.sandbox import sandbox_child
from pipeline.sandbox.sandbox_child import PLACE

TOOLS = "tools"
"""First part of the path of a program that the command is given."""
_GRACE_SECONDS = 60
"""What laying out and packing may take on top of the command's own time."""


@dataclass(frozen=True)
class Limits:
    """What one run may use up."""

    cpu_seconds: int
    wall_seconds: int
    memory_bytes: int


@dataclass(frozen=True)
class Run:
    """How a sandbox_child command ended: `failure` is empty, or one word for why it has no result."""

    failure: str
    output: str
    made: Mapping[str, bytes] = field(default_factory=dict)
    """The files that it made below `build/` and `source/`, by path; not those of its tree that it changed."""


def run_confined(command: Sequence[str], tree: Mapping[str, bytes], path: Sequence[str], limits: Limits) -> Run:
    """Run a command that finds `tree` at `sandbox_child.PLACE` and may write there alone, with a home and temporary files.

    It has no network, and of the machine nothing but its programs and the installed packages. What it writes lies in memory.
    """
    job = {
        "command": list(command),
        "environment": _environment(path),
        "kept": _kept_folders(),
        "cpu_seconds": limits.cpu_seconds,
        "wall_seconds": limits.wall_seconds,
        "memory_bytes": limits.memory_bytes,
    }
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        _pack(tree, given)
        process = subprocess.Popen(
            [sys.executable, "-I", sandbox_child.__file__, json.dumps(job)],
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
            stdin=given,
            stdout=made,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            verdict = process.communicate(timeout=limits.wall_seconds + _GRACE_SECONDS)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Run("timeout", "")
        return _judge(process.returncode, verdict.decode("utf-8", "replace"), made)


def _judge(code: int, verdict: str, made: IO[bytes]) -> Run:
    if code == sandbox_child.NOT_GRANTED:
        return Run("no_sandbox", verdict.strip())
    try:
        found = json.loads(verdict)
    except ValueError:
        return Run("sandbox_failed", verdict.strip())
    return Run(found["failure"], found["output"], {} if found["failure"] else unpacked(made))


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
    """The files of an archive whose names are text and lie below the folders that are taken. They are read into memory."""
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


def _kept_folders() -> list[str]:
    """Where Python and the packages that configuring runs are installed, which can be below a home."""
    found = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent}
    found |= {package_folder(name) for name in ("ziglang", *CONFIGURING) if has_package(name)}
    return sorted(str(folder) for folder in found if folder.is_dir())
