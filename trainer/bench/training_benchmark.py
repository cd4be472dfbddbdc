"""Rows of `python -m trainer bench`: measurements of training on a GPU, one JSON object each.

    train-…               whole steps on made rows: tokens a second, MFU, memory, frames, and seconds of a cold and a warm start
    determinism-cost      strict mode compared with none, in turn
    packing-invariance    whether a packed document has the same outputs as alone, while no expert is full
    training-in-bfloat16  a training stopped twice compared with an uninterrupted one, and the use of the experts' slots

A row is measured in a fresh process, steps in two: the first with an empty cache of compiled code, the second with the cache of
the first. Rows that the file has for the same GPU, driver, torch and Triton are kept, so that a stopped run continues at the
first missing one. `--dry-run` runs the same code with the smallest model, and marks its rows.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import torch

from kernels.measure.measurements import (
    COMMITTED,
    Measurement,
    can_be_file,
    first_bad_line,
    measure_missing,
    read_rows,
    timing_environment,
)
from pipeline.core.child_process import run_child
from pipeline.core.errors import TrainingError, did_you_mean
from pipeline.store.store_layout import has_format
from trainer.bench.device_checks import CheckSizes, measure_packing, measure_training
from trainer.bench.step_timing import TimingCase, measure_determinism_cost, measure_steps
from trainer.compile.cache import CACHE_FOLDERS
from trainer.config.choices import CompileBackend, CompileMode

_FULLGRAPH, _BUDGETED, _OFF = CompileMode.FULLGRAPH, CompileMode.BUDGETED, CompileMode.OFF
CASES = (
    TimingCase("train-small", "small", _FULLGRAPH, 16, 1024),
    TimingCase("train-base", "base", _FULLGRAPH, 4, 4096, num_micro_batches=16),
    TimingCase("train-nam56r", "nam56r", _FULLGRAPH, 4, 4096, num_micro_batches=4),
    TimingCase("train-base-budgeted", "base", _BUDGETED, 4, 4096, num_micro_batches=16),
    TimingCase("train-base-off", "base", _OFF, 4, 4096, num_micro_batches=16),
    TimingCase("train-nam52", "nam52", _FULLGRAPH, 1, 4096),
)
STRICT_CASE = TimingCase("determinism-cost", "base", _FULLGRAPH, 4, 4096)


@dataclass(frozen=True)
class BenchRow:
    """Row of the table: its name, its measurement in this process, and whether a second one with a warm cache follows."""

    name: str
    measure: Callable[[argparse.Namespace], dict[str, Any]]
    has_warm_start: bool = False
    needs_snapshot: bool = False


def rows_of(is_dry: bool) -> list[BenchRow]:
    """Return all rows in the order of measurement. Names of dry rows begin with `dry-`."""
    prefix, sizes, cases, strict = "", CheckSizes(), CASES, STRICT_CASE
    if is_dry:
        prefix, sizes, strict = "dry-", CheckSizes.dry(), _shrunk(STRICT_CASE)
        cases = tuple(_shrunk(case) for case in CASES if case.name not in _COVERED_BY_OTHERS)
    return [
        *(BenchRow(case.name, partial(_measure_case, measure_steps, case), has_warm_start=True) for case in cases),
        BenchRow(strict.name, partial(_measure_case, measure_determinism_cost, strict)),
        BenchRow(f"{prefix}packing-invariance", lambda options: measure_packing(sizes)),
        BenchRow(f"{prefix}training-in-bfloat16", partial(measure_training, sizes), needs_snapshot=True),
    ]


_COVERED_BY_OTHERS = ("train-small", "train-nam52")
"""Cases that a dry run leaves out: others run the same code."""


def bench(options: argparse.Namespace) -> Any:
    """Measure the rows that are missing in the file, or failed, until the budget is spent; the last of a name counts.

    Exit code 1 if one failed or there is no GPU.
    """
    wanted = [row for row in rows_of(options.dry_run) if options.only in (None, row.name)]
    if not wanted:
        known = [row.name for row in rows_of(options.dry_run)]
        remedy = did_you_mean(options.only, known, "Name one of these by --only.")
        raise TrainingError(f"row {options.only}", "it is not known", f"one of {', '.join(known)}", remedy)
    if options.measure:
        return {"name": wanted[0].name} | wanted[0].measure(options)
    _refuse_misleading(options)
    if options.out and not can_be_file(options.out):
        raise TrainingError(f"--out {options.out}", "it is no file", "a file of rows, or a new name", "Name another.")
    if options.out and (number := first_bad_line(options.out, ["name"])):
        remedy = "Name another file."
        raise TrainingError(f"--out {options.out}", f"line {number} is no row", "rows that this command wrote", remedy)
    rows = read_rows(options.out, timing_environment()) if options.out else []
    found = {row["name"]: row for row in rows}
    done = [row for row in found.values() if not _has_failed(row)]
    left_out = [row.name for row in wanted if row.needs_snapshot and not has_format(options.store)]
    wanted = [row for row in wanted if row.name not in left_out]
    measurements = (Measurement({"name": row.name}, partial(_measured, row, options)) for row in wanted)
    for measured in measure_missing(measurements, options.out, done, options.budget):
        found[measured["name"]] = measured
        done.append(measured)
        _say(f"{measured['name']}: {measured.get('failed') or 'measured'}")
    missing = [row.name for row in wanted if row.name not in {each["name"] for each in done}]
    for name in missing[:1]:
        _say(f"{name}: the budget is spent; run again to continue here; use a larger one if this row alone needs more")
    for name in () if missing else left_out:
        _say(f"{name}: left out, it reads a snapshot, and {options.store} holds none: name a store by --store")
    return {"rows": list(found.values()), "exit_code": int(any(map(_has_failed, found.values())))}


def _refuse_misleading(options: argparse.Namespace) -> None:
    if not options.dry_run:
        if not torch.cuda.is_available():
            raise TrainingError("bench", "torch sees no CUDA device", "one, for timings", "Use --dry-run.")
        return
    if torch.cuda.is_available():
        remedy = "Set CUDA_VISIBLE_DEVICES to nothing."
        raise TrainingError("bench --dry-run", "torch sees a CUDA device", "no device", remedy)
    if options.out and COMMITTED.resolve() in Path(os.path.realpath(options.out)).parents:
        remedy = "Name a file elsewhere."
        raise TrainingError(f"--out {options.out}", "it is among the measurements of GPUs", "", remedy)


def _shrunk(case: TimingCase) -> TimingCase:
    """Return the case at a size for a CPU."""
    sizes = {"num_rows": 2, "length": 32, "num_micro_batches": min(case.num_micro_batches, 2)}
    return replace(case, name=f"dry-{case.name}", preset="tiny", backend=CompileBackend.EAGER, **sizes)


def _measure_case(
    measure: Callable[[TimingCase], dict[str, Any]], case: TimingCase, options: argparse.Namespace
) -> dict[str, Any]:
    return measure(replace(case, backend=CompileBackend(options.backend or case.backend)))


def _measured(row: BenchRow, options: argparse.Namespace, seconds_left: float) -> dict[str, Any] | None:
    """Measure a row in fresh processes; None if the time is over. A failure is a row too."""
    deadline, answers = time.monotonic() + seconds_left, []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {name: f"{folder}/{part}" for name, part in CACHE_FOLDERS.items()}
        start = partial(run_child, stdout=PIPE, stderr=PIPE, text=True, env=environment)
        for _ in range(1 + row.has_warm_start):
            done = start(_line(row, options), max(1.0, deadline - time.monotonic()))
            if done.exit_code is None:
                return None
            if done.exit_code:
                return {"name": row.name, **timing_environment(), "failed": done.last_line[:300]}
            answers.append(json.loads(done.stdout))
    if not row.has_warm_start:
        return dict(answers[0])
    cold, warm = (answer["first_step_seconds"] for answer in answers)
    return {**answers[1], "cold_start_seconds": cold, "warm_start_seconds": warm}


def _line(row: BenchRow, options: argparse.Namespace) -> list[str]:
    line = [sys.executable, "-m", "trainer", "bench", "--measure", "--only", row.name, "--json"]
    line += ["--dry-run"] if options.dry_run else []
    line += ["--backend", options.backend] if options.backend else []
    if row.needs_snapshot:
        line += ["--store", str(options.store), "--corpus", options.corpus, "--snapshot", options.snapshot]
    return line


def _has_failed(row: dict[str, Any]) -> bool:
    """Return whether a row is to be measured again. A lack of GPU memory is final."""
    return "failed" in row and "out of memory" not in row["failed"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
