"""Run tags: the corpus of a run, and its worker process, because a run killed with -9 stays STARTED.

Each start of a run fails those whose worker is gone.
"""

import os
from pathlib import Path

import dagster as dg

WORKER_TAG = ".dagster/sluice_worker"
"""Hidden in the list of runs, like every tag with this prefix."""
CORPUS_TAG = "corpus"


def mark_worker(instance: dg.DagsterInstance, run_id: str) -> None:
    """Tag a run with this process: its id and start time, since ids are reused."""
    instance.add_run_tags(run_id, {WORKER_TAG: f"{os.getpid()}:{_start_time(os.getpid())}"})


def tag_corpus(instance: dg.DagsterInstance, run_id: str, corpus: str) -> None:
    """Tag a run with its corpus, for the list of runs; a run of several has all of their names."""
    run = instance.get_run_by_id(run_id)
    known = run.tags.get(CORPUS_TAG, "").split(", ") if run else []
    instance.add_run_tags(run_id, {CORPUS_TAG: ", ".join(sorted({*filter(None, known), corpus}))})


def sweep(instance: dg.DagsterInstance) -> list[str]:
    """Report every run as failed whose worker process is gone; return their ids."""
    states = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    dead = [run for run in instance.get_runs(dg.RunsFilter(statuses=states)) if _is_dead(run.tags.get(WORKER_TAG))]
    for run in dead:
        instance.report_run_failed(run, "The worker process is gone. Run again: finished parts are reused.")
    return [run.run_id for run in dead]


def _is_dead(worker: str | None) -> bool:
    if worker is None:
        return False
    process, _, started = worker.partition(":")
    return _start_time(int(process)) != started


def _start_time(process: int) -> str | None:
    """Read field 22 of /proc/<pid>/stat, in clock ticks since boot (proc(5)); None if the process is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]
