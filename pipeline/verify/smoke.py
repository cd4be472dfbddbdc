"""The consumer smoke run: the trainer's own loader and optimiser take a step on the candidate, in a process of their own."""

import json
import math
import subprocess
import sys

from pipeline.errors import StageError
from pipeline.outcome import StageReport
from pipeline.part import PartJob, PartOutput
from pipeline.verify.params import VerifyParams


def run_smoke(job: PartJob) -> PartOutput:
    """Part function: run `python -m trainer smoke` on the snapshot in `job.inputs["snapshot"]`; its steps and losses are measures.

    Raises StageError with the last words of a trainer that crashes or hangs.
    """
    assert isinstance(job.params, VerifyParams)
    command = [sys.executable, "-m", "trainer", "smoke", f"--store={job.places['store']}"]
    command += ["--snapshot", job.inputs["snapshot"].object_id, "--json"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=job.params.smoke_timeout_seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StageError(
            "consumer smoke run", f"no step within {error.timeout:.0f} s", "", "Look at the candidate's rows."
        ) from error
    if done.returncode != 0:
        raise StageError(
            "consumer smoke run", f"exit {done.returncode}: {_last_line(done.stderr)}", "exit 0", "Run it by hand."
        )
    losses = _losses(done.stdout)
    measures = {
        "num_smoke_steps": len(losses),
        "num_non_finite_losses": sum(not math.isfinite(loss) for loss in losses),
    }
    return PartOutput({}, StageReport(len(losses), len(losses), measures=measures))


def _losses(text: str) -> list[float]:
    try:
        return [float(loss) for loss in json.loads(text)["losses"]]
    except (ValueError, TypeError, KeyError) as error:
        raise StageError(
            "consumer smoke run", f"its answer is {text[:200]!r}", "losses, as JSON", "Run it by hand."
        ) from error


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
