"""The instance: where it is kept, and its runs: the corpus and the worker of each, how they end, and how old ones go.

    python -m assets.instance clean --keep 30 --yes     removes what is finished and older than the newest 30 runs of its job

A run killed with -9, or by a reboot, stays STARTED. It is ended when a run starts, when the code location loads, and by a sensor.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted import ends the process without a traceback

import argparse
import os
import platform
import re
import sqlite3
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from click import ClickException
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.run_coordinator import DefaultRunCoordinator, QueuedRunCoordinator, SubmitRunContext
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.runs.schema import RunTagsTable
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage

from assets.checks import taking_plans_back
from assets.team.database import database_of, database_size
from pipeline.build.recipes import ROOT
from pipeline.core.command_line import Parser, amount, whole_number
from pipeline.core.errors import MissingError, SluiceError

WORKER_TAG = ".dagster/sluice_worker"
"""Hidden in the list of runs, like every tag with this prefix."""
HOST_TAG = ".dagster/sluice_host"
"""The host of the worker of a run. Of hosts that share a database each ends runs of its own name alone."""
CORPUS_TAG = "corpus"
DEV_LOCK = ".dev.lock"
"""File beside dagster.yaml that the UI of an instance holds, and that says its address."""
GO_ON = "Run again: it goes on from the parts, or the saved steps of a training, that are finished."
"""Remedy where the process of a run has ended."""
_FAILURE = "Failure"
"""Class of Dagster's errors whose words are ours."""
_MODULES = re.compile(r"^(?:\w{1,100}\.){1,20}(?=\w{1,100}: )")
"""Modules of the class that the words of an exception begin with."""
_INTERRUPTED = "DagsterExecutionInterruptedError"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class _Again:
    """The hook for exceptions that Python ignores, as in a callback of its garbage collector, which sends an interrupt again."""

    before: Callable[[Any], Any]

    def __call__(self, ignored: Any) -> None:
        if issubclass(ignored.exc_type, DagsterExecutionInterruptedError):
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()  # when that callback has ended
        else:
            self.before(ignored)


class HomeStorage(DagsterSqliteStorage):
    """Dagster's storage in SQLite, in a folder that counts from DAGSTER_HOME."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        return taking_plans_back(DagsterSqliteStorage.from_config_value(inst_data, _below_home(config_value)))


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
        return _announced(super().submit_run(context), "started")


class AnnouncingQueue(QueuedRunCoordinator[Any]):
    """Dagster's queue of a team, which starts a run when its pools have room, and here says which it is and where."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Queue a run, and write its id and address to stderr."""
        return _announced(super().submit_run(context), "queued")


def _announced(run: dg.DagsterRun, what: str) -> dg.DagsterRun:
    text = f"run {run.run_id} of {run.job_name} is {what}: {address_of_ui()}/runs/{run.run_id}"
    print(text, file=sys.stderr, flush=True)
    return run


def cause_of_failure(failed: Any) -> str:
    """Return why a step failed, or a run before its first, from the data of its event: our words, or the innermost exception."""
    described = getattr(getattr(failed, "user_failure_data", None), "description", None)
    chain = [getattr(failed, "error", None)]
    while chain[-1] is not None and chain[-1].cause is not None and chain[-1].cls_name != _FAILURE:
        chain.append(chain[-1].cause)
    if described or chain[-1] is None:
        return described or ""
    own_names = {_FAILURE, *_names_of(SluiceError)}  # which say more than what they come of
    error = next((each for each in reversed(chain) if each.cls_name in own_names), chain[-1])
    if error.cls_name == _INTERRUPTED:
        return f"The process of the run was told to end, as by a machine that shuts down. {GO_ON}"
    words = _MODULES.sub("", error.message.strip())
    # Of a failure of a resource Dagster keeps no description: its words begin with the name of the class.
    return words.partition(f"{_FAILURE}: ")[2] if error.cls_name == _FAILURE else words


def _names_of(error: type[BaseException]) -> frozenset[str]:
    return frozenset([error.__name__]).union(*map(_names_of, error.__subclasses__()))


def address_of_ui() -> str:
    """Return the address of the UI of this instance; where none runs, that of `make dev`."""
    lock = Path(os.environ.get("DAGSTER_HOME", "")) / DEV_LOCK
    return (lock.read_text().partition(",")[0] if lock.is_file() else "") or "http://localhost:3000"


def home_of(variables: MutableMapping[str, str]) -> Path:
    """Return the folder of DAGSTER_HOME, the root of the project unless given. Raises MissingError where no instance is."""
    home = Path(variables.setdefault("DAGSTER_HOME", str(ROOT)))
    if not (home / "dagster.yaml").is_file():
        found, remedy = "it has no dagster.yaml", f"Unset it, or set it to {ROOT}."
        raise MissingError(f"DAGSTER_HOME, {home}", found, "the root of the project, or a folder with its own", remedy)
    return home


def _below_home(config: dict[str, Any]) -> Any:
    return {**config, "base_dir": str(Path(os.environ.get("DAGSTER_HOME", "")).absolute() / config["base_dir"])}


def repeat_ignored_interrupts() -> None:
    """Raise the interrupt of Terminate again in this process where Python ignored it: Dagster sends it once."""
    if not isinstance(sys.unraisablehook, _Again):
        sys.unraisablehook = _Again(sys.unraisablehook)


def mark_worker(instance: dg.DagsterInstance, run_id: str) -> None:
    """Tag a run with this process: its host, its id and its start time, since ids are reused."""
    instance.add_run_tags(run_id, {WORKER_TAG: worker_of(os.getpid()), HOST_TAG: platform.node()})


def worker_of(process: int) -> str:
    """Return what names a process for ever: the boot, its id, and its start since then. Of a dead process no other has it."""
    return f"{_BOOT.read_text(encoding='utf-8').strip()}:{process}:{_start_time(process)}"


def tag_corpus(instance: dg.DagsterInstance, run_id: str, corpus: str) -> None:
    """Tag a run with its corpus, for the list of runs; a run of several has all of their names."""
    run = instance.get_run_by_id(run_id)
    known = run.tags.get(CORPUS_TAG, "").split(", ") if run else []
    instance.add_run_tags(run_id, {CORPUS_TAG: ", ".join(sorted({*filter(None, known), corpus}))})


def sweep(instance: dg.DagsterInstance) -> list[str]:
    """Report every run as failed, or canceled if that was requested, whose worker process is gone; return their ids.

    In a database that hosts share, this one knows the processes of its own runs alone.
    """
    states = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    tags = {HOST_TAG: platform.node()} if database_of(instance) else {}
    runs = instance.get_runs(dg.RunsFilter(statuses=states, tags=tags))
    dead = [run for run in runs if _is_dead(run.tags.get(WORKER_TAG))]
    for run in dead:
        if run.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, "The worker process is gone.")
        else:
            instance.report_run_failed(run, f"The worker process is gone. {GO_ON}")
    return [run.run_id for run in dead]


def sweep_at_load(variables: Mapping[str, str]) -> list[str]:
    """End the dead runs of the instance of DAGSTER_HOME; none without one, as in a check of the definitions, and that is said.

    While its database does not answer the definitions load all the same, and the sensor `dead_runs` ends those runs later.
    """
    if not (Path(variables.get("DAGSTER_HOME") or "/nowhere") / "dagster.yaml").is_file():
        text = f"no instance: DAGSTER_HOME names none, and what runs here is kept by none. That of the project: DAGSTER_HOME={ROOT}"
        print(text, file=sys.stderr, flush=True)
        return []
    try:
        with dg.DagsterInstance.get() as instance:
            return sweep(instance)
    except ClickException as error:
        print(f"warning: no dead run is ended yet: {error}", file=sys.stderr)
        return []


@dg.sensor(
    name="dead_runs",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ends runs whose process is gone, as after a reboot.",
)
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """End the runs whose process is gone."""
    return dg.SkipReason(f"ended: {', '.join(sweep(context.instance)) or 'none'}")


def old_runs(instance: dg.DagsterInstance, keep: int, ended_before: float = float("inf")) -> list[dg.DagsterRun]:
    """List the finished runs beyond the newest `keep` of each job that ended before a time, the newest first.

    A run that the page of an asset shows as the latest of the asset, or of a check, is not among them.
    """
    records: dict[str, list[dg.RunRecord]] = defaultdict(list)
    for record in instance.get_run_records(dg.RunsFilter(statuses=FINISHED_STATUSES)):
        records[record.dagster_run.job_name].append(record)
    old = [
        record.dagster_run
        for of_job in records.values()
        for record in of_job[keep:]
        if (record.end_time or record.update_timestamp.timestamp()) < ended_before
    ]
    shown = _shown_as_latest(instance, old)
    return [run for run in old if run.run_id not in shown]


def remove_runs(instance: dg.DagsterInstance, runs: Iterable[dg.DagsterRun]) -> None:
    """Remove runs with their events, check results, tags and captured logs, and give the space back to the file system.

    `delete_run` of Dagster leaves the file of a run's events, emptied, and the check results and tags.
    """
    run_storage: Any = instance.run_storage
    events: Any = instance.event_log_storage
    for run in runs:
        instance.delete_run(run.run_id)
        instance.compute_log_manager.delete_logs(prefix=[run.run_id])
        with events.index_connection() as connection:
            connection.execute(
                AssetCheckExecutionsTable.delete().where(AssetCheckExecutionsTable.c.run_id == run.run_id)
            )
        with run_storage.connect() as connection:
            connection.execute(RunTagsTable.delete().where(RunTagsTable.c.run_id == run.run_id))
        for path in _event_files(instance, run.run_id):
            path.unlink(missing_ok=True)
    if database_of(instance):
        return  # it gives space back by itself
    for path in (_storage(instance) / "history" / "runs" / "index.db", _storage(instance) / "history" / "runs.db"):
        if path.is_file():
            with closing(sqlite3.connect(path, timeout=30.0)) as connection:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def size_of(instance: dg.DagsterInstance) -> int:
    """Return how many bytes the storage and the captured logs of an instance take."""
    logs: Any = instance.compute_log_manager
    address = database_of(instance)
    folders = [Path(logs.get_captured_local_path(["a"], "out")).parent, *([] if address else [_storage(instance)])]
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return sum(path.stat().st_size for path in files) + (database_size(address) if address else 0)


def _storage(instance: dg.DagsterInstance) -> Path:
    return _event_files(instance, "index")[0].parents[2]


def _event_files(instance: dg.DagsterInstance, run_id: str) -> list[Path]:
    """List the files of a run's events; in a database there are none."""
    events: Any = instance.event_log_storage
    suffixes = () if database_of(instance) else ("", "-wal", "-shm")
    return [Path(f"{events.path_for_shard(run_id)}{suffix}") for suffix in suffixes]


def _shown_as_latest(instance: dg.DagsterInstance, runs: Iterable[dg.DagsterRun]) -> set[str]:
    """Return the ids of the runs that hold the latest events of assets, and, of these runs, of checks."""
    found: set[str | None] = set()
    for asset in instance.get_asset_records():
        entry = asset.asset_entry
        events = (
            entry.last_materialization_record,
            entry.last_observation_record,
            entry.last_failed_to_materialize_record,
        )
        found |= {
            entry.last_run_id,
            entry.last_planned_materialization_run_id,
            *(each.run_id for each in events if each),
        }
    kinds = {dg.DagsterEventType.ASSET_CHECK_EVALUATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED}
    checks: set[dg.AssetCheckKey] = set()
    for run in runs:
        for record in instance.get_records_for_run(run.run_id, of_type=kinds).records:
            event = record.event_log_entry.dagster_event
            data: Any = event.event_specific_data if event else None
            checks |= {data.asset_check_key} if data else set()
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(sorted(checks))
    found |= {each.run_id for each in latest.values()}
    return {run_id for run_id in found if run_id}


def main(arguments: list[str]) -> int:
    """Remove old runs, or print which would go; return the exit code."""
    parser = Parser(prog="python -m assets.instance", description="Cleans the Dagster instance.")
    clean = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "clean", help="remove old runs; without --yes only list them"
    )
    clean.add_argument(
        "--keep",
        type=whole_number(0, 10_000_000),
        default=30,
        help="newest finished runs of each job that stay, 30 unless given",
    )
    clean.add_argument("--older-than", type=amount, default=0.0, metavar="DAYS", help="only what ended so long ago")
    clean.add_argument("--yes", action="store_true", help="remove them")
    options = parser.parse_or_exit(arguments)
    try:
        home_of(os.environ)
        with dg.DagsterInstance.get() as instance:
            _clean(instance, options)
    except (SluiceError, ClickException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, DagsterExecutionInterruptedError):
        print("interrupted; some of these runs may still be there, run again to remove them", file=sys.stderr)
        return 130
    return 0


def _clean(instance: dg.DagsterInstance, options: argparse.Namespace) -> None:
    old, before = old_runs(instance, options.keep, time.time() - options.older_than * 86_400), size_of(instance)
    for run in old:
        print(f"{'removed' if options.yes else 'would go'}: {run.run_id}  {run.job_name}  {run.status.value}")
    kept = instance.get_runs_count() - len(old)
    if options.yes:
        remove_runs(instance, old)
        print(f"{len(old)} runs removed, {kept} kept; {before - size_of(instance):,} bytes less than {before:,}")
        return
    files = [path for run in old for path in _event_files(instance, run.run_id) if path.exists()]
    num_bytes = sum(path.stat().st_size for path in files)
    print(
        f"{len(old)} runs would go, with {num_bytes:,} bytes of events of their own; {kept} would stay. --yes removes them"
    )


def _is_dead(worker: str | None) -> bool:
    return worker is not None and worker != worker_of(int(worker.split(":")[1]))


def _start_time(process: int) -> str | None:
    """Read field 22 of /proc/<pid>/stat, in clock ticks since boot (proc(5)); None if the process is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
