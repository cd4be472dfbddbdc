"""Running a fetched tree's own scripts: in a sandbox of the kernel, or not at all.

There is no weaker way to fall back to. Limits and a clean environment keep an honest script from doing harm by accident,
and a hostile one from nothing; where the namespaces cannot be had, the source goes the way of the syntax lane, and says so.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.enrich.lane import confined


@dataclass(frozen=True)
class Limits:
    """What one run may use up."""

    cpu_seconds: int
    wall_seconds: int
    memory_bytes: int


@dataclass(frozen=True)
class Run:
    """How a confined command ended: `failure` is empty, or one word for why it has no result."""

    failure: str
    output: str


def run_confined(command: Sequence[str], folder: Path, path: Sequence[str], limits: Limits) -> Run:
    """Run a command that may write to `folder` alone, with a home and temporary files in it, and no network."""
    for name in ("home", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    environment = {
        "PATH": os.pathsep.join(path),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "home" / "cache"),
        "ZIG_GLOBAL_CACHE_DIR": str(folder / "tmp" / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(folder / "tmp" / "zig"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": "0",
    }
    starter = [sys.executable, "-I", confined.__file__, str(folder), str(limits.cpu_seconds), str(limits.memory_bytes)]
    process = subprocess.Popen(
        [*starter, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=limits.wall_seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Run("timeout", "")
    text = output.decode("utf-8", "replace")
    if process.returncode == confined.NOT_GRANTED:
        return Run("no_sandbox", text)
    return Run("" if process.returncode == 0 else "failed", text)
