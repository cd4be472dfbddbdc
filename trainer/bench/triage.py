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
from typing import Any, NamedTuple

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
    """Judge a log; without one, list the steps of ORDER, or run them with the smallest model up to the first that fails."""
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
    metrics = map(json.loads, options.metrics.read_text().splitlines()) if options.metrics else ()
    seconds = [1 / row["tokens_per_second"] for row in metrics if row.get("tokens_per_second")]
    lines = options.log.read_text(errors="replace").splitlines()
    found = triage_log(lines, CompileMode(options.compile), has_jumped(seconds[1:]), options.breaks)
    for finding in found:
        print(f"{finding.verdict:<7}line {finding.line}: {finding.text}")
    is_bad = any(finding.verdict == "fail" for finding in found)
    return {"findings": [finding._asdict() for finding in found], "exit_code": int(is_bad)}


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
