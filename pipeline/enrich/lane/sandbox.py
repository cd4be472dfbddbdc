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
from pipeline.enrich.lane.confined import PLACE
from pipeline.enrich.lane.tools import CONFIGURING, has_package, package_folder


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
    """Run a command that may write to `folder` alone, with a home and temporary files in it, and no network.

    It finds the folder at `confined.PLACE`, and of the users' folders nothing but the installed packages.
    """
    for name in ("home", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    environment = {
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
    numbers = (str(limits.cpu_seconds), str(limits.memory_bytes))
    starter = [sys.executable, "-I", confined.__file__, str(folder), *numbers, ":".join(_kept_folders())]
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


def _kept_folders() -> list[str]:
    """Where Python and the packages that configuring runs are installed, which can be below a home."""
    found = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent}
    found |= {package_folder(name) for name in ("ziglang", *CONFIGURING) if has_package(name)}
    return sorted(str(folder) for folder in found if folder.is_dir() and ":" not in str(folder))
