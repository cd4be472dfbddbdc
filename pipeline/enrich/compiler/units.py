"""Compiler that runs units in parallel, each in its own process, and caches their results.

The cache key is the unit's command, the tools and the names of all files; an entry is valid while the content of every
file that the unit read is the same. A unit that a limit ended is not cached: it is tried again.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pipeline.core.params import digest
from pipeline.enrich.compiler import unit_worker
from pipeline.enrich.compiler.cache_entry import remember
from pipeline.enrich.compiler.compile_commands import Command, is_c
from pipeline.enrich.compiler.source_tree import BUILD, SOURCE, Tree, files_below, write_overlay
from pipeline.enrich.compiler.tools import system_arguments, toolchain_folder
from pipeline.sandbox.sandbox import Limits

MAX_SIDE_BY_SIDE = 4
FORMAT = 3
_NUM_TRIES = 3
"""Attempts for a unit whose process was killed from outside, which is not the unit's fault."""
_OUT_OF_MEMORY = re.compile(
    rb"^(?:terminate called .*std::bad_alloc|LLVM ERROR: out of memory|MemoryError)", re.MULTILINE
)
_MAX_COMPLAINT_BYTES = 1 << 20
_SIGXCPU, _SIGXFSZ, _SIGKILL = -24, -25, -9


@dataclass(frozen=True)
class Task:
    """Unit to compile, and the files to report on. With `is_whole` the bodies in headers are read too."""

    command: Command
    files: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True)
class Seen:
    """Report of the compiler on one unit, or the kind of failure."""

    failure: str
    report: Mapping[str, Any]
    generated: tuple[str, ...] = ()
    """Generated files that it read."""


class Compiler:
    """Compiler for units of a tree that is written in `folder`. `cache` may be None."""

    def __init__(
        self, folder: Path, tree: Tree, versions: Mapping[str, str], limits: Limits, cache: Path | None
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._cache = cache
        self._generated = tree.generated
        self._digests: dict[str, str] = {}
        overlay = write_overlay(folder, tree.places, toolchain_folder() / "lib")
        self._file_system = ["-ivfsoverlay", str(overlay), "--no-default-config"]
        names = list(files_below(folder))
        how = [dict(versions), limits.cpu_seconds, limits.memory_bytes, tree.places]
        self._surroundings = digest([FORMAT, names, how])

    def compile(self, tasks: Sequence[Task]) -> list[Seen]:
        """Return one result per task, in the order of the tasks."""
        if not tasks:
            return []
        with ThreadPoolExecutor(min(MAX_SIDE_BY_SIDE, len(os.sched_getaffinity(0)))) as pool:
            return list(pool.map(self._compile, tasks))

    def _compile(self, task: Task) -> Seen:
        entry = self._entry(task)
        known = self._recall(entry)
        seen = Seen("", known) if known is not None else self._run(task)
        if seen.failure:
            return seen
        if known is None and entry is not None:
            self._remember(entry, seen.report)
        return replace(seen, generated=tuple(sorted(self._generated.intersection(seen.report["reads"]))))

    def _run(self, task: Task) -> Seen:
        job = {
            "unit": task.command.path,
            "arguments": [
                *task.command.arguments,
                *system_arguments(is_c(task.command.path, task.command.arguments)),
                *self._file_system,
            ],
            "files": list(task.files),
            "whole": task.is_whole,
            "cpu_seconds": self._limits.cpu_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        for _ in range(_NUM_TRIES):
            seen = self._try(json.dumps(job).encode())
            if seen.failure != "killed":
                break
        return seen

    def _try(self, job: bytes) -> Seen:
        """Run one process for one job. Its output goes to files, as it can be endless."""
        temporary = self._folder / "tmp"
        temporary.mkdir(exist_ok=True)
        with (
            tempfile.TemporaryFile(dir=temporary) as given,
            tempfile.TemporaryFile(dir=temporary) as printed,
            tempfile.TemporaryFile(dir=temporary) as complaints,
            tempfile.TemporaryDirectory(dir=temporary) as notes,
        ):
            given.write(job)
            given.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-I", unit_worker.__file__],
                stdin=given,
                stdout=printed,
                stderr=complaints,
                cwd=self._folder,
                env={"TMPDIR": notes, "LC_ALL": "C.UTF-8"},
            )
            is_late = self._wait(process)
            return self._judge(process.returncode, is_late, printed, complaints)

    def _wait(self, process: "subprocess.Popen[bytes]") -> bool:
        """Wait for the end of a process; return whether it used up its time."""
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        alarm = threading.Timer(self._limits.wall_seconds, end)
        alarm.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            alarm.cancel()
        return late.is_set() or usage.ru_utime + usage.ru_stime >= self._limits.cpu_seconds

    def _judge(self, code: int, is_late: bool, printed: IO[bytes], complaints: IO[bytes]) -> Seen:
        if code == _SIGXCPU or (code != 0 and is_late):
            return Seen("timeout", {})
        if code in (_SIGKILL, _SIGXFSZ):
            return Seen("killed" if code == _SIGKILL else "endless_output", {})
        if code != 0:
            complaints.seek(0)
            is_short = _OUT_OF_MEMORY.search(complaints.read(_MAX_COMPLAINT_BYTES)) is not None
            return Seen("out_of_memory" if is_short else "crash", {})
        printed.seek(0)
        try:
            report: dict[str, Any] = json.load(printed)
        except (ValueError, RecursionError):
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
        """Return a cached result, if it is intact and all files that it read are unchanged."""
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
        remember(entry, {"read": read, "report": inside, "digest": digest([read, inside])})

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = hashlib.sha256((self._folder / path).read_bytes()).hexdigest()
        return self._digests[path]
