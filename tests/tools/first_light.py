"""`make first-light`: the first session on a GPU, in phases: correct and repeatable before it is fast.

A phase that fails does not keep the next from running. Each phase ends in a line of JSON, appended to the file at once. The same
command resumes where the last one stopped: phases that passed here with these sources are not repeated, those that never ran
come next, then those that failed. Everything ends within the budget. Needs torch, triton, numpy, pyarrow, safetensors, pydantic
and pytest.

python -m tests.tools.first_light [--budget SECONDS] [--output FILE] [--only PHASE ...] [--list] [--rehearse]

Exit codes: 0 all phases have passed, 1 one has failed, 3 none has failed and some are left for the next call.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kernels.framework.spec import all_specs
from kernels.measure.measurements import Measurement, measure_missing, read_rows, timing_environment
from pipeline.core.child_process import run_child
from tests.support.paths import ROOT

ROWS = Path("docs/benchmarks")
BUDGET = "{budget}"
PROCESSES = ("--processes", "4")
"""Of a parity phase: most of its time is compiled, and four at a time leave each the memory that its largest case needs."""
LEAST_SECONDS = 15.0
"""Less than this is not enough to begin a phase with."""
PASSED, FAILED, UNFINISHED = "passed", "failed", "unfinished"


@dataclass(frozen=True)
class Phase:
    """A command of this interpreter. One that names BUDGET stops by itself when it is spent, and resumes when it is run again.

    Any other that takes longer than its limit has failed.
    """

    name: str
    command: tuple[str, ...]
    limit_seconds: float = 450.0

    @property
    def resumes(self) -> bool:
        return BUDGET in self.command


def phases() -> tuple[Phase, ...]:
    """Return all phases, in order."""
    parity = (
        Phase(f"parity/{spec.name}", ("-m", "kernels", "parity", "--only", spec.name, "--json", *PROCESSES))
        for spec in all_specs()
    )
    marked = (path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.gpu" in path.read_text("utf-8"))
    # Parity has phases of its own.
    pytest = ("-m", "pytest", "-m", "gpu", "-k", "not agrees_with_its_reference")
    tests = (Phase(str(path.relative_to(ROOT).with_suffix("")), (*pytest, str(path))) for path in marked)
    training = ("-m", "trainer", "bench", "--out", f"{ROWS}/training.jsonl", "--budget")
    has_store = (ROOT / "build" / "bench" / "refs").exists()
    return (
        *parity,
        *tests,
        Phase("doctor", ("-m", "trainer", "doctor", "--json")),
        Phase("tune", ("-m", "kernels", "tune", "--json", "--output", f"{ROWS}/tuning.jsonl", "--budget", BUDGET)),
        Phase("bench/kernels", ("-m", "kernels", "--json", "--output", f"{ROWS}/kernels.jsonl", "--budget", BUDGET)),
        Phase("bench/training", (*training, BUDGET)),
        *([Phase("bench/training-on-rows", (*training, BUDGET, "--store", "build/bench"))] if has_store else []),
    )


def in_order(wanted: Sequence[Phase], rows: Sequence[dict[str, Any]]) -> list[Phase]:
    """Return the phases that are still to run: those without a verdict, then those that failed; none that passed."""
    verdicts = {row["phase"]: row["outcome"] for row in rows}
    new = [phase for phase in wanted if verdicts.get(phase.name) not in (PASSED, FAILED)]
    return new + [phase for phase in wanted if verdicts.get(phase.name) == FAILED]


def run_phases(
    wanted: Sequence[Phase], budget_seconds: float, place: dict[str, Any] | None = None, output: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Run the phases until the budget is spent; append and yield a row for each that was begun."""

    def measure(number: int, left: float) -> dict[str, Any] | None:
        phase = wanted[number]
        # Several that stop by themselves share what is left, so that none starves the next.
        sharing = sum(each.resumes for each in wanted[number:])
        return None if left < LEAST_SECONDS else _run(phase, left, left / sharing if phase.resumes else left)

    keys = ({"phase": phase.name, **(place or {})} for phase in wanted)
    phases = (Measurement(key, partial(measure, number)) for number, key in enumerate(keys))
    return measure_missing(phases, output, [], budget_seconds)


def _run(phase: Phase, left: float, share: float) -> dict[str, Any]:
    """Run one phase within `left` seconds; `share` of them is its own budget."""
    own = max(1.0, share - LEAST_SECONDS)  # the rest is for its start and its end
    line = [sys.executable, *(part.replace(BUDGET, f"{own:.0f}") for part in phase.command)]
    limit = min(share if phase.resumes else phase.limit_seconds, left)
    started = time.monotonic()
    code, answer, errors = _ended(line, limit)
    seconds = time.monotonic() - started
    outcome = PASSED if code == 0 else FAILED
    is_cut = code is None and (phase.resumes or limit < phase.limit_seconds)
    if is_cut or (phase.resumes and outcome == PASSED and seconds > own):
        outcome = UNFINISHED
    row: dict[str, Any] = {"outcome": outcome, "exit_code": code, "seconds": round(seconds, 1)}
    parts = (" ".join(["python", *line[1:]]), answer, errors[-2000:])
    command, answer, errors = (part.replace(f"{ROOT}/", "") for part in parts)  # a row speaks of no machine's folders
    return row | {"command": command, "answer": _parsed(answer), "stderr": errors}


def _ended(line: Sequence[str], limit: float) -> tuple[int | None, str, str]:
    """Return exit code, stdout and stderr of a process; the code is None where it and its children were killed at the limit."""
    done = run_child(line, limit, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    late = f"\nnot done within {limit:.0f} s" if done.exit_code is None else ""
    return done.exit_code, done.stdout, done.stderr + late


def _parsed(answer: str) -> Any:
    """Return what a phase printed: a JSON value, else the end of its text."""
    try:
        return json.loads(answer)
    except ValueError:
        return answer[-2000:]


def here() -> dict[str, Any]:
    """Return what a verdict is valid for: GPU, driver, torch, Triton, the sources, and the launches that tuning chose."""
    hasher = hashlib.sha256()
    for folder in ("kernels", "trainer", "pipeline", "tests"):
        for path in sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".json")):
            hasher.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return {**timing_environment(), "sources": hasher.hexdigest()}


def main(arguments: Sequence[str] | None = None, known: Sequence[Phase] | None = None) -> int:
    """Run the phases that are left and report the outcome of all."""
    known = phases() if known is None else known
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.first_light", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for all phases")
    parser.add_argument(
        "--output",
        type=Path,
        help="file of one line for each phase; default: first-light.jsonl beside the rows, or in build/dry",
    )
    parser.add_argument(
        "--only", action="append", metavar="PHASE", help="run this phase or those below it, also if they have passed"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the phases and exit")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU: rows that hold nothing measured on one")
    options = parser.parse_args(arguments)
    named = [phase for phase in known if not options.only or any(_is_of(phase, name) for name in options.only)]
    if not named:
        parser.error(f"no phase {', '.join(options.only)}; expected one of {', '.join(phase.name for phase in known)}")
    if options.list:
        print("\n".join(phase.name for phase in named))
        return 0
    if not (torch.cuda.is_available() or options.rehearse):
        print("first light: torch sees no CUDA device. --rehearse runs the phases without.", file=sys.stderr)
        return 1
    began, place = time.monotonic(), here()
    output = options.output or (Path("build/dry") if options.rehearse else ROWS) / "first-light.jsonl"
    rows = read_rows(output, place)
    todo = named if options.only else in_order(named, rows)
    for row in run_phases(todo, options.budget - (time.monotonic() - began), place, output):
        rows.append(row)
        last = (row["stderr"].strip().splitlines() or [""])[-1] if row["outcome"] != PASSED else ""
        print(
            f"{row['outcome']:<10} {row['phase']:<36} {row['seconds']:6.0f} s  {last[:160]}",
            file=sys.stderr,
            flush=True,
        )
    return _summarize(named, rows)


def _is_of(phase: Phase, name: str) -> bool:
    return phase.name == name or phase.name.startswith(f"{name.rstrip('/')}/")


def _summarize(named: Sequence[Phase], rows: Sequence[dict[str, Any]]) -> int:
    verdicts = {row["phase"]: row["outcome"] for row in rows}
    found: dict[str, list[str]] = {PASSED: [], FAILED: [], UNFINISHED: [], "not run": []}
    for phase in named:
        found[verdicts.get(phase.name, "not run")].append(phase.name)
    counts = [f"{len(names)} {outcome}" for outcome, names in found.items()]
    left = [*found[UNFINISHED], *found["not run"]]
    print(", ".join(counts), file=sys.stderr)
    if left:
        print(f"left: {', '.join(left)}; the same command continues there", file=sys.stderr)
    print(json.dumps({"summary": found}, sort_keys=True))
    return 1 if found[FAILED] else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
