"""Runs of the instance: those whose worker is dead are ended, and of the old ones goes what is not shown as the latest."""

import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._cli.utils import get_instance_for_cli
from dagster._core.errors import DagsterExecutionInterruptedError, raise_execution_interrupts

from assets.definitions import defs
from assets.instance import (
    WORKER_TAG,
    dead_runs,
    old_runs,
    remove_runs,
    repeat_ignored_interrupts,
    size_of,
    sweep,
    sweep_at_load,
    worker_of,
)
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


@pytest.mark.parametrize("has_home", [False, True])
def test_without_an_instance_nothing_is_swept_at_load_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], has_home: bool
) -> None:
    assert sweep_at_load({"DAGSTER_HOME": str(tmp_path)} if has_home else {}) == []
    assert f"DAGSTER_HOME={ROOT}" in capsys.readouterr().err


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


def test_old_runs_go_whole_but_none_that_runs_or_is_shown_as_the_latest(instance: dg.DagsterInstance) -> None:
    @dg.asset(check_specs=[dg.AssetCheckSpec("is_good", asset="made")])
    def made() -> Any:
        yield dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=True)])

    runs = [dg.materialize([made], instance=instance).run_id for _ in range(3)]
    running = instance.create_run_for_job(defs.resolve_job_def("build"))
    instance.handle_new_event(_started_event(running))
    old = old_runs(instance, keep=0)
    assert [run.run_id for run in old] == runs[1::-1], "the newest is the latest of its asset and check"
    assert [run.run_id for run in old_runs(instance, keep=2)] == runs[:1]
    assert old_runs(instance, keep=0, ended_before=0.0) == []

    before = size_of(instance)
    remove_runs(instance, old)
    assert size_of(instance) < before
    assert not [path for run in old for path in Path(instance.root_directory).rglob(f"*{run.run_id}*")]
    assert {run.run_id for run in instance.get_runs()} == {runs[2], running.run_id}
    latest = instance.get_latest_materialization_event(dg.AssetKey("made"))
    assert latest is not None
    assert latest.run_id == runs[2]
    check = dg.AssetCheckKey(dg.AssetKey("made"), "is_good")
    assert [each.run_id for each in instance.event_log_storage.get_asset_check_execution_history(check, 9)] == runs[2:]
    assert old_runs(instance, keep=0) == []


def test_an_interrupt_that_comes_in_a_callback_of_the_garbage_collector_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    repeat_ignored_interrupts()
    repeat_ignored_interrupts()

    class Collected: ...

    def collect() -> None:
        # a list, as the arguments of a call are kept alive by the caller where torch.compile evaluates the frames
        made = [Collected()]
        references = [
            weakref.ref(made[0], each) for each in (lambda _: signal.raise_signal(signal.SIGINT), lambda _: int("-"))
        ]
        made.clear()
        assert [reference() for reference in references] == [None, None]
        time.sleep(10)

    with pytest.raises(DagsterExecutionInterruptedError), raise_execution_interrupts():
        collect()
    assert [each.exc_type for each in seen] == [ValueError], "other exceptions are shown as before, and this one is not"


@pytest.mark.parametrize("is_named", [False, True])
def test_commands_of_dagster_find_the_instance_of_the_folder_that_they_are_started_in(
    is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / "here", tmp_path / "named"):
        folder.mkdir()
        shutil.copy(ROOT / "dagster.yaml", folder)
    shutil.copy(ROOT / ".env", tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    if is_named:
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "named"))

    with get_instance_for_cli() as found:
        assert found.get_runs() == []
    assert [path.parent.parent.name for path in tmp_path.glob("*/store/dagster")] == ["named" if is_named else "here"]
