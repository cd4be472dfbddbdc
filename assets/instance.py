"""The instance: where it is kept, and its runs: the corpus and the worker of each, and how they end.

A run killed with -9, or by a reboot, stays STARTED. It is ended when a run starts, when the code location loads, and by a sensor.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.instance import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.run_coordinator import DefaultRunCoordinator, SubmitRunContext
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage

from assets.keys import op_name

WORKER_TAG = ".dagster/sluice_worker"
"""Hidden in the list of runs, like every tag with this prefix."""
CORPUS_TAG = "corpus"
DEV_LOCK = ".dev.lock"
"""File beside dagster.yaml that the UI of an instance holds, and that says its address."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class HomeStorage(DagsterSqliteStorage):
    """Dagster's storage in SQLite, in a folder that counts from DAGSTER_HOME."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        return DagsterSqliteStorage.from_config_value(inst_data, _below_home(config_value))


class HomeArtifacts(LocalArtifactStorage):
    """Dagster's folder of artifacts, which counts from DAGSTER_HOME."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        return LocalArtifactStorage.from_config_value(inst_data, _below_home(config_value))


class HomeLogs(LocalComputeLogManager):
    """Dagster's folder of logs, which counts from DAGSTER_HOME."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        return LocalComputeLogManager.from_config_value(inst_data, _below_home(config_value))


class AnnouncingCoordinator(DefaultRunCoordinator):
    """Dagster's coordinator, which starts a run at once, and here says which it is and where it can be seen."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Start a run, and write its id and address to stderr."""
        run = super().submit_run(context)
        text = f"run {run.run_id} of {run.job_name} is started: {address_of_ui()}/runs/{run.run_id}"
        print(text, file=sys.stderr, flush=True)
        return run


def address_of_ui() -> str:
    """Return the address of the UI of this instance; where none runs, that of `make dev`."""
    lock = Path(os.environ.get("DAGSTER_HOME", "")) / DEV_LOCK
    return (lock.read_text().partition(",")[0] if lock.is_file() else "") or "http://localhost:3000"


def _below_home(config: dict[str, Any]) -> Any:
    return {**config, "base_dir": str(Path(os.environ.get("DAGSTER_HOME", "")).absolute() / config["base_dir"])}


def mark_worker(instance: dg.DagsterInstance, run_id: str) -> None:
    """Tag a run with this process: its id and start time, since ids are reused."""
    instance.add_run_tags(run_id, {WORKER_TAG: worker_of(os.getpid())})


def worker_of(process: int) -> str:
    """Return what names a process for ever: the boot, its id, and its start since then. Of a dead process no other has it."""
    return f"{_BOOT.read_text().strip()}:{process}:{_start_time(process)}"


def tag_corpus(instance: dg.DagsterInstance, run_id: str, corpus: str) -> None:
    """Tag a run with its corpus, for the list of runs; a run of several has all of their names."""
    run = instance.get_run_by_id(run_id)
    known = run.tags.get(CORPUS_TAG, "").split(", ") if run else []
    instance.add_run_tags(run_id, {CORPUS_TAG: ", ".join(sorted({*filter(None, known), corpus}))})


def sweep(instance: dg.DagsterInstance) -> list[str]:
    """Report every run as failed, or canceled if that was asked for, whose worker process is gone; return their ids."""
    states = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    dead = [run for run in instance.get_runs(dg.RunsFilter(statuses=states)) if _is_dead(run.tags.get(WORKER_TAG))]
    for run in dead:
        if run.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, "The worker process is gone.")
        else:
            instance.report_run_failed(run, "The worker process is gone. Run again: finished parts are reused.")
            report_not_run(instance, run.run_id)
    return [run.run_id for run in dead]


def sweep_at_load(variables: Mapping[str, str]) -> list[str]:
    """End the dead runs of the instance of DAGSTER_HOME; none without one, as in a test or a check of the definitions."""
    if not (Path(variables.get("DAGSTER_HOME") or "/nowhere") / "dagster.yaml").is_file():
        return []
    with dg.DagsterInstance.get() as instance:
        return sweep(instance)


@dg.sensor(
    name="dead_runs",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ends runs whose process is gone, as after a reboot.",
)
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """End the runs whose process is gone."""
    return dg.SkipReason(f"ended: {', '.join(sweep(context.instance)) or 'none'}")


def report_not_run(instance: dg.DagsterInstance, run_id: str, refused: dg.AssetKey | None = None) -> None:
    """Report the assets and checks that a run planned and did not begin as planned by no run: Dagster shows those as skipped.

    Otherwise it shows all that a failed run planned as failed. `refused` began, but was refused before it did anything.
    """
    kinds = dg.DagsterEventType
    planned = {kinds.ASSET_MATERIALIZATION_PLANNED, kinds.ASSET_CHECK_EVALUATION_PLANNED}
    records = instance.get_records_for_run(run_id, of_type={*planned, kinds.STEP_START}).records
    events = [event for record in records if (event := record.event_log_entry.dagster_event)]
    begun = {event.step_key for event in events if event.event_type is kinds.STEP_START}
    for event in events:
        data = event.event_specific_data
        if isinstance(data, AssetMaterializationPlannedData | AssetCheckEvaluationPlanned) and (
            op_name(data.asset_key) not in begun or (data.asset_key == refused and event.event_type in planned)
        ):
            again = dg.DagsterEvent(event.event_type_value, RUNLESS_JOB_NAME, event_specific_data=data)
            instance.report_dagster_event(again, RUNLESS_RUN_ID)


def _is_dead(worker: str | None) -> bool:
    return worker is not None and worker != worker_of(int(worker.split(":")[1]))


def _start_time(process: int) -> str | None:
    """Read field 22 of /proc/<pid>/stat, in clock ticks since boot (proc(5)); None if the process is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]
