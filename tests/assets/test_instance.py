"""Runs whose worker is dead: a start, a load of the code location and the sensor end them; what they left undone is skipped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.instance import WORKER_TAG, dead_runs, sweep, sweep_at_load, worker_of
from tests.support.paths import ROOT


def _by_sensor(instance: dg.DagsterInstance) -> list[str]:
    answer = dead_runs(dg.build_sensor_context(instance=instance))
    assert isinstance(answer, dg.SkipReason)
    assert answer.skip_message is not None
    return [each for each in answer.skip_message.removeprefix("ended: ").split(", ") if each != "none"]


def _at_load(instance: dg.DagsterInstance) -> list[str]:
    return sweep_at_load(os.environ)


@pytest.mark.parametrize("end", [sweep, _at_load, _by_sensor], ids=["a start", "the code location", "the sensor"])
@pytest.mark.parametrize("is_canceling", [False, True], ids=["started", "canceling"])
def test_a_run_whose_worker_was_killed_is_ended(
    instance: dg.DagsterInstance,
    root: Path,
    end: Callable[[dg.DagsterInstance], list[str]],
    is_canceling: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "home" / "dagster.yaml").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    run = instance.create_run_for_job(defs.resolve_job_def("build"), tags={WORKER_TAG: worker_of(child.pid)})
    instance.handle_new_event(_started_event(run))
    if is_canceling:
        instance.report_run_canceling(run)
    assert end(instance) == []

    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert end(instance) == [run.run_id]
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status is (dg.DagsterRunStatus.CANCELED if is_canceling else dg.DagsterRunStatus.FAILURE)


def test_a_worker_of_before_the_last_boot_is_dead_whatever_has_its_number_now(instance: dg.DagsterInstance) -> None:
    boot, *rest = worker_of(os.getpid()).split(":")
    before = ":".join(["0" * len(boot), *rest])
    run = instance.create_run_for_job(defs.resolve_job_def("build"), tags={WORKER_TAG: before})
    instance.handle_new_event(_started_event(run))

    assert sweep(instance) == [run.run_id]


def test_dagster_finds_the_same_instance_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "project"))
    monkeypatch.chdir(tmp_path)
    with dg.DagsterInstance.get() as opened:
        opened.get_runs_count()
        assert opened.storage_directory() == str(tmp_path / "project" / "store" / "dagster" / "storage")

    assert [path.name for path in tmp_path.iterdir()] == ["project"]
    assert (tmp_path / "project" / "store" / "dagster" / "history").is_dir()


def test_without_an_instance_nothing_is_swept_at_load(tmp_path: Path) -> None:
    assert sweep_at_load({}) == sweep_at_load({"DAGSTER_HOME": str(tmp_path)}) == []


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
