"""Consumer runs on the candidate, each in its own process: one step of the trainer, and the checks of its loader."""

import json
import math
import subprocess
import sys
from typing import Any

from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import StageError
from pipeline.verify.params import VerifyParams

NUM_LOADER_ROWS = 1000
"""Rows that the loader's checks compare."""


def run_smoke(job: PartJob) -> PartOutput:
    """Part function: run `python -m trainer smoke` on the snapshot in `job.inputs["snapshot"]`; its steps and losses are measures.

    Raises StageError with the last line of a trainer that crashes or hangs.
    """
    losses = _losses(_run_trainer(job, "smoke", (0,)))
    measures = {
        "num_smoke_steps": len(losses),
        "num_non_finite_losses": sum(not math.isfinite(loss) for loss in losses),
    }
    return PartOutput({}, StageReport(len(losses), len(losses), measures=measures))


def run_loader_checks(job: PartJob) -> PartOutput:
    """Part function: run the reproducibility checks of the loader, each reading in a fresh process; they are measures.

    The checks of the model are left to `python -m trainer verify-loader`: they take a minute.
    """
    # Exit code 1 says that a check failed; the gate then says which.
    checks = _run_trainer(job, "verify-loader", (0, 1), "--steps", "0", "--rows", str(NUM_LOADER_ROWS)).get("checks")
    if checks is None:
        raise StageError("loader checks", "the trainer gave no answer", "its checks", "Run it by hand.")
    measures = {
        "num_loader_checks": len(checks),
        "num_loader_differences": sum(check["num_differing"] for check in checks),
    }
    return PartOutput({}, StageReport(len(checks), len(checks), measures=measures))


def _run_trainer(job: PartJob, command: str, exit_codes: tuple[int, ...], *more: str) -> dict[str, Any]:
    assert isinstance(job.params, VerifyParams)
    line = [sys.executable, "-m", "trainer", command, f"--store={job.places['store']}"]
    line += ["--snapshot", job.inputs["snapshot"].object_id, "--json", *more]
    subject, limit = f"consumer {command} run", job.params.smoke_timeout_seconds
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise StageError(
            subject, f"no answer within {error.timeout:.0f} s", "", "Look at the candidate's rows."
        ) from error
    if done.returncode not in exit_codes:
        raise StageError(subject, f"exit {done.returncode}: {_last_line(done.stderr)}", "exit 0", "Run it by hand.")
    try:
        answer: dict[str, Any] = dict(json.loads(done.stdout))
    except (ValueError, TypeError) as error:
        raise StageError(
            subject, f"its answer is {done.stdout[:200]!r}", "one object, as JSON", "Run it by hand."
        ) from error
    return answer


def _losses(answer: dict[str, Any]) -> list[float]:
    try:
        return [float(loss) for loss in answer["losses"]]
    except (ValueError, TypeError, KeyError) as error:
        raise StageError(
            "consumer smoke run", f"its answer is {answer!r}"[:200], "losses", "Run it by hand."
        ) from error


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it printed nothing"])[-1]
