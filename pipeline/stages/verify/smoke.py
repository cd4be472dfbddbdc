"""Consumer runs on the candidate, each in its own process: one step of the trainer, and the checks of its loader."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import StageError
from pipeline.stages.verify.consumer import consumer_root
from pipeline.stages.verify.params import VerifyParams

NUM_LOADER_ROWS = 1000
"""Rows that the loader's checks compare."""
ROWS_OF_CHECKS = (*(NUM_LOADER_ROWS,) * 6, NUM_LOADER_ROWS // 2)
"""Rows of each check: names, bytes and infilling of all, all as their files have them, their slots, the order of as many at least,
and half of them again after a resume."""

_IDLE = {"OMP_WAIT_POLICY": "passive"}
"""Variables: threads that wait for others sleep. While they spin, one step takes twice as long of all cores."""


def run_smoke(job: PartJob) -> PartOutput:
    """Run `python -m trainer smoke`, as a part, on the snapshot in `job.inputs["snapshot"]`.

    Raises StageError with the last line of a trainer that crashes or hangs.
    """
    return PartOutput({}, answer=_run_trainer(job, "smoke", "losses", (0,)))


def run_loader_checks(job: PartJob) -> PartOutput:
    """Run the reproducibility checks of the loader as a part, each reading in a fresh process.

    The checks of the model are left to `python -m trainer verify-loader`: they take a minute.
    """
    # Exit code 1 says that a check failed; the gate then says which.
    more = ("--steps", "0", "--rows", str(NUM_LOADER_ROWS))
    return PartOutput({}, answer=_run_trainer(job, "verify-loader", "checks", (0, 1), *more))


def measure_smoke(job: PartJob, output: PartOutput) -> StageReport:
    """Return the steps that the trainer took on the candidate, and how many of their losses are not finite."""
    losses = _about_the_candidate(job, output.answer, "losses")
    num_non_finite = sum(not (type(loss) in (int, float) and math.isfinite(loss)) for loss in losses)
    return _report(len(losses), {"num_smoke_steps": len(losses), "num_non_finite_losses": num_non_finite})


def measure_loader(job: PartJob, output: PartOutput) -> StageReport:
    """Return how many rows differ in the checks of the loader on the candidate, and how many they did not compare."""
    checks = _about_the_candidate(job, output.answer, "checks")
    num_differences = sum(check["num_differing"] for check in checks)
    compared = zip_longest(ROWS_OF_CHECKS, (check["num_compared"] for check in checks), fillvalue=0)
    num_left_out = sum(max(0, rows - found) for rows, found in compared)
    measures = {"num_loader_rows_not_compared": num_left_out, "num_loader_differences": num_differences}
    return _report(len(checks), measures)


def _how_it_ended(done: "subprocess.CompletedProcess[str]") -> str:
    last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    if done.returncode >= 0:
        return f"exit {done.returncode}: {last}"
    perhaps = ", perhaps for lack of memory" if done.returncode == -signal.SIGKILL else ""
    return f"ended by {signal.Signals(-done.returncode).name}{perhaps}: {last}"


def _about_the_candidate(job: PartJob, answer: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list `key` of an answer about the candidate. An answer about another snapshot says nothing."""
    return list(answer[key]) if answer.get("snapshot_id") == job.inputs["snapshot"].object_id else []


def _counted(check: Mapping[str, Any]) -> dict[str, int]:
    """Return what a check of the loader counts. Raises ValueError for what is no count: added to others, it could hide theirs."""
    counts = {name: check[name] for name in ("num_compared", "num_differing")}
    if not all(type(count) is int and count >= 0 for count in counts.values()):
        raise ValueError(f"counts {counts}")
    return counts


def _report(number: int, measures: dict[str, float]) -> StageReport:
    return StageReport(number, number, measures=measures)


def _run_trainer(job: PartJob, command: str, key: str, exit_codes: tuple[int, ...], *more: str) -> dict[str, Any]:
    """Run a command of the trainer on the snapshot and return its answer, which has the list `key`."""
    assert isinstance(job.params, VerifyParams)
    line = [sys.executable, "-m", "trainer", command, f"--store={job.places['store'].absolute()}"]
    line += ["--snapshot", job.inputs["snapshot"].object_id, "--json", *more]
    candidate = f"--snapshot {job.inputs['snapshot'].object_id}"
    subject, remedy = f"consumer {command} run", f"Run `python -m trainer {command} {candidate}` to see it again."
    try:
        limit, variables = job.params.smoke_timeout_seconds, {**os.environ, **_IDLE}
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=limit, check=False, cwd=consumer_root(), env=variables
        )
        if done.returncode not in exit_codes:
            raise StageError(subject, _how_it_ended(done), "exit 0", remedy)
        answer = json.loads(done.stdout)
        return {**answer, key: [_counted(each) if key == "checks" else each for each in answer[key]]}
    except subprocess.TimeoutExpired as error:
        raise StageError(subject, f"no answer within {limit} s", "", remedy) from error
    except (ValueError, TypeError, KeyError) as error:
        raise StageError(subject, f"its answer is {done.stdout[:200]!r}", f"an object with {key}", remedy) from error
