"""Compiling units side by side, each in a process of its own, and remembering what was seen.

A result is kept under its unit's command, the tools and the names of all files, and holds good while the content of
everything that the unit read is the same. What was ended by a limit is not kept: it is tried again.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.enrich.lane import unit_worker
from pipeline.enrich.lane.commands import BUILD, SOURCE, Command
from pipeline.enrich.lane.sandbox import Limits
from pipeline.enrich.lane.tools import system_arguments, toolchain_folder
from pipeline.params import digest

MAX_SIDE_BY_SIDE = 4
FORMAT = 1


@dataclass(frozen=True)
class Task:
    """A unit to compile, and the files of it to report on. With `is_whole` the bodies in headers are read too."""

    command: Command
    files: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True)
class Seen:
    """What the compiler saw in one unit, or the word for why it saw nothing."""

    failure: str
    report: Mapping[str, Any]
    from_cache: bool = False


class Compiler:
    """Compiles units of the tree in `folder`, whose `source/` and `build/` hold it. `cache` may be None."""

    def __init__(self, folder: Path, versions: Mapping[str, str], limits: Limits, cache: Path | None) -> None:
        self._folder = folder
        self._limits = limits
        self._cache = cache
        self._digests: dict[str, str] = {}
        names = sorted(
            str(path.relative_to(folder))
            for top in (SOURCE, BUILD)
            for path in (folder / top).rglob("*")
            if path.is_file() and not path.is_symlink()
        )
        self._surroundings = digest([FORMAT, dict(versions), names, limits.cpu_seconds, limits.memory_bytes])

    def compile(self, tasks: Sequence[Task]) -> list[Seen]:
        """One result a task, in their order, whatever came first."""
        if not tasks:
            return []
        with ThreadPoolExecutor(min(MAX_SIDE_BY_SIDE, len(os.sched_getaffinity(0)))) as pool:
            return list(pool.map(self._compile, tasks))

    def _compile(self, task: Task) -> Seen:
        entry = self._entry(task)
        known = self._recall(entry)
        if known is not None:
            return Seen("", known, from_cache=True)
        seen = self._run(task)
        if not seen.failure and entry is not None:
            self._remember(entry, seen.report)
        return seen

    def _run(self, task: Task) -> Seen:
        job = {
            "unit": task.command.path,
            "arguments": [*task.command.arguments, *system_arguments(_is_c(task.command))],
            "files": list(task.files),
            "whole": task.is_whole,
            "cpu_seconds": self._limits.cpu_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        temporary = self._folder / "tmp"
        temporary.mkdir(exist_ok=True)
        try:
            done = subprocess.run(
                [sys.executable, "-I", unit_worker.__file__],
                input=json.dumps(job).encode(),
                capture_output=True,
                cwd=self._folder,
                env={"TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"},
                timeout=self._limits.wall_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Seen("timeout", {})
        return self._judge(done)

    def _judge(self, done: "subprocess.CompletedProcess[bytes]") -> Seen:
        if done.returncode in (-9, -24):
            return Seen("timeout" if done.returncode == -24 else "killed", {})
        if done.returncode != 0:
            return Seen("out_of_memory" if b"emory" in done.stderr or b"bad_alloc" in done.stderr else "crash", {})
        try:
            report: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return Seen("crash", {})
        strange = [path for path in report["reads"] if not self._may_be_read(path)]
        return Seen("reads_outside_the_source", {}) if strange else Seen("", report)

    def _may_be_read(self, path: str) -> bool:
        return path.startswith((f"{SOURCE}/", f"{BUILD}/", f"{toolchain_folder()}/"))

    def _entry(self, task: Task) -> Path | None:
        if self._cache is None:
            return None
        command = task.command
        asked = [command.path, command.arguments, task.files, task.is_whole]
        return self._cache / f"{digest([self._surroundings, asked])}.json"

    def _recall(self, entry: Path | None) -> Mapping[str, Any] | None:
        """A kept result, if it is whole and all that it read is as it was."""
        try:
            kept = json.loads(entry.read_bytes()) if entry is not None else None
            if kept is None or kept["digest"] != digest([kept["read"], kept["report"]]):
                return None
            report: dict[str, Any] = kept["report"]
            is_same = all(self._digest(path) == found for path, found in kept["read"].items())
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return report if is_same else None

    def _remember(self, entry: Path, report: Mapping[str, Any]) -> None:
        read = {path: self._digest(path) for path in report["reads"] if path.startswith((f"{SOURCE}/", f"{BUILD}/"))}
        inside = {**report, "reads": sorted(read)}  # the package's own headers are known by its version
        kept = {"read": read, "report": inside, "digest": digest([read, inside])}
        entry.parent.mkdir(parents=True, exist_ok=True)
        arriving = entry.with_suffix(f".{os.getpid()}.{id(report)}")
        arriving.write_text(json.dumps(kept), encoding="utf-8")
        arriving.replace(entry)

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = hashlib.sha256((self._folder / path).read_bytes()).hexdigest()
        return self._digests[path]


def _is_c(command: Command) -> bool:
    """Whether the unit is C: by `-x`, else by its extension."""
    arguments = command.arguments
    if "-x" in arguments:
        return arguments[len(arguments) - 1 - arguments[::-1].index("-x") + 1] in ("c", "c-header")
    return command.path.endswith(".c")
