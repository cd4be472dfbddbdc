"""Compiler that runs units in parallel, each in its own process, and caches their results.

The cache key is the unit's command, the tools and the names of all files; an entry is valid while the content of every
file that the unit read is the same. A unit that a limit ended is not cached: it is tried again.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pipeline.core.digests import file_sha256
from pipeline.core.params import digest
from pipeline.sandbox.sandbox import Limits
from pipeline.stages.enrich.compiler import unit_worker
from pipeline.stages.enrich.compiler.compile_commands import Command, is_c
from pipeline.stages.enrich.compiler.result_cache import ResultCache
from pipeline.stages.enrich.compiler.source_tree import BUILD, SOURCE, SourceTree, files_below, write_overlay
from pipeline.stages.enrich.compiler.tools import system_arguments, toolchain_folder

MAX_SIDE_BY_SIDE = 4
_NUM_TRIES = 3
"""Attempts for a unit whose process was killed from outside, which is not the unit's fault."""
_OUT_OF_MEMORY = re.compile(
    rb"^(?:terminate called .*std::bad_alloc|LLVM ERROR: out of memory|MemoryError)", re.MULTILINE
)
_MAX_ERROR_BYTES = 1 << 20
_SIGNALS = {-signal.SIGKILL: "killed", -signal.SIGXFSZ: "endless_output"}


@dataclass(frozen=True)
class UnitRequest:
    """Unit to compile, and the files to report on, with the bodies of functions in headers or without."""

    command: Command
    files: tuple[str, ...]
    with_bodies: bool


@dataclass(frozen=True)
class UnitResult:
    """Report of the compiler on one unit, see `unit_worker`, or the kind of failure."""

    failure: str
    report: Mapping[str, Any] = field(default_factory=dict)
    """`reads` holds the digest of each file of the tree that the unit read."""
    generated: tuple[str, ...] = ()
    """Generated files that it read."""


class Compiler:
    """Compiler for units of a tree that is written in `folder`. `cache` may be None."""

    def __init__(
        self, folder: Path, tree: SourceTree, versions: Mapping[str, str], limits: Limits, cache: Path | None
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._cache = ResultCache(cache, "unit")
        self._generated = tree.generated
        self._digests: dict[str, str] = {}
        overlay = write_overlay(folder, tree.places, toolchain_folder() / "lib")
        self._file_system = ["-ivfsoverlay", str(overlay), "--no-default-config"]
        names, limit = list(files_below(folder)), [limits.cpu_seconds, limits.memory_bytes]
        self._environment = digest([dict(versions), limit, tree.places, names])

    def compile(self, requests: Sequence[UnitRequest]) -> list[UnitResult]:
        """Return one result per request, in their order."""
        with ThreadPoolExecutor(min(MAX_SIDE_BY_SIDE, len(os.sched_getaffinity(0)))) as pool:
            return list(pool.map(self._compile, requests))

    def _compile(self, request: UnitRequest) -> UnitResult:
        command = request.command
        key = [self._environment, command.path, command.arguments, request.files, request.with_bodies]
        report = self._cache.read(key)
        if report is None or not self._is_current(report):
            result = self._run(request)
            if result.failure:
                return result
            report = {**result.report, "reads": self._digests_of(result.report["reads"])}
            self._cache.write(key, report)
        return UnitResult("", report, tuple(sorted(self._generated.intersection(report["reads"]))))

    def _is_current(self, report: Mapping[str, Any]) -> bool:
        """Return whether all files that a cached report depends on are unchanged."""
        try:
            return bool(self._digests_of(report["reads"]) == report["reads"])
        except OSError:
            return False

    def _digests_of(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the digests of the files of the tree. The package's own headers are known by its version."""
        inside = [path for path in paths if path.startswith((f"{SOURCE}/", f"{BUILD}/"))]
        for path in inside:
            if path not in self._digests:
                self._digests[path] = file_sha256(self._folder / path)
        return {path: self._digests[path] for path in inside}

    def _run(self, request: UnitRequest) -> UnitResult:
        command = request.command
        system = system_arguments(is_c(command.path, command.arguments))
        job = {
            "unit": command.path,
            "arguments": [*command.arguments, *system, *self._file_system],
            "files": list(request.files),
            "with_bodies": request.with_bodies,
            "cpu_seconds": self._limits.cpu_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        for _ in range(_NUM_TRIES):
            result = self._try(json.dumps(job).encode())
            if result.failure != "killed":
                break
        return result

    def _try(self, job: bytes) -> UnitResult:
        """Run one process for one job. Its output goes to files, as it can be endless."""
        temporary = self._folder / "tmp"
        temporary.mkdir(exist_ok=True)
        with (
            tempfile.TemporaryFile(dir=temporary) as stdin,
            tempfile.TemporaryFile(dir=temporary) as stdout,
            tempfile.TemporaryFile(dir=temporary) as stderr,
            tempfile.TemporaryDirectory(dir=temporary) as scratch,
        ):
            stdin.write(job)
            stdin.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-I", unit_worker.__file__],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=self._folder,
                env={"TMPDIR": scratch, "LC_ALL": "C.UTF-8"},
            )
            is_late = self._wait(process)
            return self._result(process.returncode, is_late, stdout, stderr)

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

    def _result(self, code: int, is_late: bool, stdout: IO[bytes], stderr: IO[bytes]) -> UnitResult:
        if code == -signal.SIGXCPU or (code != 0 and is_late):
            return UnitResult("timeout")
        if code in _SIGNALS:
            return UnitResult(_SIGNALS[code])
        if code != 0:
            stderr.seek(0)
            is_short = _OUT_OF_MEMORY.search(stderr.read(_MAX_ERROR_BYTES)) is not None
            return UnitResult("out_of_memory" if is_short else "crash")
        stdout.seek(0)
        try:
            report: dict[str, Any] = json.load(stdout)
        except (ValueError, RecursionError):
            return UnitResult("crash")
        readable = (f"{SOURCE}/", f"{BUILD}/", f"{toolchain_folder()}/")
        is_inside = all(path.startswith(readable) for path in report["reads"])
        return UnitResult("", report) if is_inside else UnitResult("reads_outside_the_source")
