"""Runs whose worker is dead: the next start of a run fails them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dagster as dg

from assets.definitions import defs
from assets.instance import WORKER_TAG, sweep


def test_a_run_whose_worker_was_killed_is_failed_by_the_next_start(instance: dg.DagsterInstance, root: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    run = instance.create_run_for_job(defs.resolve_job_def("build"), tags={WORKER_TAG: f"{child.pid}:{started}"})
    instance.handle_new_event(_started_event(run))
    assert sweep(instance) == []

    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert sweep(instance) == [run.run_id]
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status is dg.DagsterRunStatus.FAILURE


def _started_event(run: dg.DagsterRun) -> Any:
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name)
    return dg.EventLogEntry(
        error_info=None,
        level=20,
        user_message="",
        run_id=run.run_id,
        timestamp=time.time(),
        job_name=run.job_name,
        dagster_event=event,
    )
