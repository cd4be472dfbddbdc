"""Diagnosis of compilation by `python -m trainer triage`: from the exact text of a log, or without one, step by step.

native_specialize_impl during the warm-up     is ignored
a graph break at a listed site                counts against the budget; elsewhere it fails
a recompile limit, either                     fails
Ignoring this choice                          warns; fails if the step time has jumped too
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.errors import TrainingError
from trainer.config.choices import CompileMode

JUMP = 1.5
"""Limit of the median time of the second half of the steps, over that of the first."""
RECOMPILE_LIMITS = ("recompile_limit", "cache_size_limit", "FailOnRecompileLimitHit")
ORDER = (
    ("what breaks, guards and recompiles", "TORCH_LOGS=graph_breaks,guards,recompiles, --compile-backend eager"),
    ("the capture", "--compile-backend eager"),
    ("the gradients' graph", "--compile-backend aot_eager"),
    ("the generated code", "--compile-backend inductor"),
    ("the ranks", "one rank, then two"),
    ("the cache", "an empty TORCHINDUCTOR_CACHE_DIR and TRITON_CACHE_DIR, then `python -m trainer cache status`"),
    ("the breadth of autotuning", "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM=0, as `python -m trainer` sets it"),
)


class LogFinding(NamedTuple):
    """Line of a log that says something of compilation. `verdict` is ignore, count, warn or fail."""

    verdict: str
    line: int
    text: str


def triage_log(
    lines: Iterable[str], mode: CompileMode, has_jumped: bool = False, num_breaks: int | None = None
) -> list[LogFinding]:
    """Return the findings of a log. `num_breaks` is the budget; more listed breaks than that fail."""
    from trainer.compile.compile_policy import OPAQUE_BLOCKS  # late: it loads torch

    listed = OPAQUE_BLOCKS[mode].values()
    found, count, entries = [], 0, list(lines)
    for number, line in enumerate(entries, 1):
        verdict = ""
        if any(limit in line for limit in RECOMPILE_LIMITS) and not re.search(r"_limit(_hit)? (True|False|\d+)", line):
            verdict = "fail"
        elif "graph break in user code" in line.lower():
            # The reason is in the lines that follow.
            is_listed = any(reason in after for after in entries[number - 1 : number + 12] for reason in listed)
            count += is_listed
            is_over = num_breaks is not None and count > num_breaks
            verdict = "count" if is_listed and not is_over else "fail"
        elif "Ignoring this choice" in line:
            verdict = "fail" if has_jumped else "warn"
        elif "native_specialize_impl" in line:
            verdict = "ignore"
        if verdict:
            found.append(LogFinding(verdict, number, line.strip()[:200]))
    return found


def has_jumped(seconds: Sequence[float]) -> bool:
    """Return whether later steps take much longer than earlier ones."""
    half = len(seconds) // 2
    return half > 0 and statistics.median(seconds[half:]) > JUMP * statistics.median(seconds[:half])


def triage(options: argparse.Namespace) -> dict[str, Any]:
    """Judge a log; without one, list the steps of ORDER, or run them with the smallest model up to the first that fails.

    Raises TrainingError for a file that is no log, or no metrics, and for an option that is not looked at.
    """
    _refuse_unread(options)
    if options.log is None and not options.run:
        for name, how in ORDER:
            print(f"{name}: {how}")
        print(
            "`python -m trainer triage --run` runs those that need no hand; `--log FILE` judges what a run printed.",
            file=sys.stderr,
        )
        return {"steps": [{"name": name, "how": how, "passed": None} for name, how in ORDER], "exit_code": 0}
    if options.log is None:
        return _run_order()
    seconds = _seconds_of(options.metrics) if options.metrics else []
    lines = _lines_of(options.log)
    found = triage_log(lines, CompileMode(options.compile), has_jumped(seconds[1:]), options.breaks)
    for finding in found:
        print(f"{finding.verdict:<7}line {finding.line}: {finding.text}")
    is_bad = any(finding.verdict == "fail" for finding in found)
    return {"findings": [finding._asdict() for finding in found], "exit_code": int(is_bad)}


def _refuse_unread(options: argparse.Namespace) -> None:
    given = {"--metrics": options.metrics, "--breaks": options.breaks}
    for name in [name for name, value in given.items() if value is not None and options.log is None]:
        raise TrainingError("triage", f"{name} is given without --log", "both", "Name the log of that run by --log.")
    if options.log is not None and options.run:
        raise TrainingError(
            "triage", "--run is given with --log", "one of the two", "Leave out --run to judge the log."
        )


def _lines_of(log: Path) -> list[str]:
    content = log.read_bytes()
    if not content or b"\0" in content:
        found = "it holds bytes that are no text" if content else "it is empty"
        raise TrainingError(f"--log {log}", found, "what a run printed", "Name the file of its output.")
    return content.decode(errors="replace").splitlines()


def _seconds_of(metrics: Path) -> list[float]:
    """Read how long steps took, as the inverse of their rates."""
    rates = []
    for number, line in enumerate(metrics.read_bytes().splitlines(), 1):
        try:
            rates.append(float(json.loads(line).get("tokens_per_second", 0)))
        except (ValueError, TypeError, AttributeError):
            remedy = "Name the metrics.jsonl in the --out of that run."
            raise TrainingError(
                f"--metrics {metrics}", f"line {number} is no metrics", "those of a step", remedy
            ) from None
    return [1 / rate for rate in rates if rate]


def _run_order() -> dict[str, Any]:
    from trainer.bench.training_benchmark import rows_of  # late: it loads torch

    row, steps = rows_of(is_dry=True)[0].name, []
    for name, how in ORDER:
        backend, passed = how.partition("--compile-backend ")[2], None
        if backend:
            line = [sys.executable, "-m", "trainer", "bench", "--dry-run", "--measure", "--only", row]
            logs = {"TORCH_LOGS": "graph_breaks,guards,recompiles"} if "TORCH_LOGS" in how else {}
            done = subprocess.run([*line, "--backend", backend], capture_output=True, text=True, env=environ | logs)
            passed = done.returncode == 0
        steps.append({"name": name, "how": how, "passed": passed})
        verdict = {None: "by hand", True: "passed ", False: "FAILED "}[passed]
        print(f"{verdict}  {name}: {how}", flush=True)
        if passed is False:
            print(done.stderr[-2000:], file=sys.stderr)
            break
    return {"steps": steps, "exit_code": int(any(step["passed"] is False for step in steps))}
