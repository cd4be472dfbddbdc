"""The jobs, really executed on an instance of Dagster: the same ids as without it, truthful states, one build a corpus."""

import asyncio
import datetime
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.loader import LoadingContextForTest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.test_utils import InProcessTestWorkspaceLoadTarget
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._scheduler.scheduler import launch_scheduled_runs

from assets import jobs
from assets.definitions import defs
from assets.training import TrainingParams, command_of
from pipeline.build.promotion import promote
from pipeline.build.recipes import ROOT, TINY
from pipeline.build.run_stage import StageResult
from pipeline.build.stage_objects import live_proof
from pipeline.cli.main import main
from pipeline.contracts.gates import GATES, gates_of
from pipeline.core.errors import LockedError
from pipeline.export.card import facts_of, markdown_card
from pipeline.lineage.diff import difference
from pipeline.lineage.report import report_corpus
from pipeline.lineage.report_page import render_page, write_report
from pipeline.lineage.stored_build import stored_build
from pipeline.pins.corpora import Corpus
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.stages import STAGES
from pipeline.store.garbage import reclaim
from pipeline.store.log import PROMOTIONS
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from pipeline.store.store_layout import is_id
from tests.conftest import copy_consumer_proof, known_answers

OF_TINY = Corpus(name="tiny", recipe="tiny")


def of_pins(pins: Path, decisions: Path | None = None) -> Corpus:
    return Corpus(name="tiny", recipe="tiny", pins=pins, decisions=decisions)


def execute(name: str, config: dict[str, Any], instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = defs.resolve_job_def(name)
    return job.execute_in_process(instance=instance, run_config=config, raise_on_error=False)


def event_of(result: dg.ExecuteInProcessResult, stage: str) -> Any:
    (event,) = result.asset_materializations_for_node(f"tiny__{stage}")
    return event


def failure_texts(result: dg.ExecuteInProcessResult) -> str:
    return "\n".join(str(event.event_specific_data) for event in result.all_events if event.is_failure)


def test_the_jobs_build_promote_and_train_like_the_command_line(
    instance: dg.DagsterInstance,
    root: Path,
    tiny_results: list[StageResult],
    tiny_store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_alone = []

    def write_alone(store: Store, corpus: str, of: str) -> Path:
        with pytest.raises(LockedError), store.writer(corpus, "another build", 0.0):
            pass
        is_alone.append(True)
        return write_report(store, corpus, of)

    monkeypatch.setattr("pipeline.lineage.report_page.write_report", write_alone)
    with known_answers(tiny_store):
        built = execute("build_tiny", jobs.build_config(OF_TINY, workers=1), instance)
    assert built.success
    assert is_alone, "a build that waits for the corpus moves the refs that the report reads"
    store = Store(root)
    assert store.ref("tiny", "candidate") == tiny_results[-1].snapshot_id
    assert store.ref("tiny", "live") is None

    assert (root / "reports" / "tiny-last.html").exists()
    assert tiny_results[-1].snapshot_id in event_of(built, "verify").metadata["card"].value

    assert execute("promote_tiny", jobs.promote_config("tiny"), instance).success
    assert store.ref("tiny", "live") == tiny_results[-1].snapshot_id

    config = jobs.train_config("tiny", TrainingParams(stop_after=2, save_every=2))
    trained = execute("train_tiny", config, instance)
    assert trained.success
    (event,) = trained.asset_materializations_for_node("tiny__training")
    assert event.metadata["steps"].value == 2
    assert store.locate(event.metadata["checkpoint_id"].value)

    for stage in STAGES.names:
        (event,) = built.asset_materializations_for_node(f"tiny__{stage}")
        assert event.metadata["object_id"].value == store.ref("tiny", stage)
        assert event.tags["dagster/data_version"] == store.ref("tiny", stage)
        assert Path(event.metadata["code"].value or "").is_file()
        assert event.metadata["report of the last build"].value == "/reports/tiny-last.html"
        checks = [
            check for check in built.get_asset_check_evaluations() if check.asset_key == dg.AssetKey(["tiny", stage])
        ]
        assert {check.check_name for check in checks} == {gate.name for gate in gates_of(stage)}
        assert all(check.passed for check in checks)


def test_a_blocked_gate_fails_the_run_and_nothing_downstream_runs(
    in_memory: dg.DagsterInstance, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.c").write_text("int a;\n")
    pins = tmp_path / "pins.toml"
    pins.write_text(
        f'[[pin]]\nname = "mine"\nkind = "local"\npath = "code"\ndigest = "{"0" * 64}"\ndeclared_license = "MIT"\n'
    )
    result = execute("build_tiny", jobs.build_config(of_pins(pins), workers=1), in_memory)

    assert not result.success
    assert not result.asset_materializations_for_node("tiny__normalize")
    (check,) = [check for check in result.get_asset_check_evaluations() if check.check_name == "every_pin_verified"]
    assert not check.passed
    assert check.metadata["measured"].value == 1
    assert "0" * 64 in check.metadata["blocked"].value
    failure = failure_texts(result)
    assert "num_failed_sources is 1, must be at most 0" in failure
    assert "0" * 64 in failure
    assert list(Store(root).refs("tiny")) == ["last"]
    assert shown(in_memory, "collect", "every_pin_verified") == "FAILED"
    assert shown(in_memory, "verify", "loader_repeats_itself") is None, "not evaluated"
    latest = in_memory.get_latest_planned_materialization_info(dg.AssetKey(["tiny", "verify"]))
    assert latest is not None
    assert latest.run_id == "", "the asset of a stage that did not run is shown as failed"


def test_a_blocked_build_with_documents_links_its_report(
    in_memory: dg.DagsterInstance, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.c").write_text(f"int b = {' + '.join(map(str, range(900)))};\n")
    pin = f'name = "mine"\nkind = "local"\npath = "code"\ndigest = "{tree_digest(tmp_path / "code")}"\n'
    (tmp_path / "pins.toml").write_text(f'[[pin]]\n{pin}declared_license = "MIT"\n')
    result = execute("build_tiny", jobs.build_config(of_pins(tmp_path / "pins.toml"), workers=1), in_memory)

    assert not result.success
    page = root / "reports" / "tiny-last.html"
    assert event_of(result, "normalize").metadata["report of the last build"].value.endswith(f"/{page.name}")
    assert "Blocked at normalize" in page.read_text()
    (check,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    for metadata in (check.metadata, event_of(result, "normalize").metadata):
        assert "documents_are_kept BLOCKED: rows_out is 0" in metadata["blocked"].value
        assert "Dropped: 1 as " in metadata["blocked"].value
        assert "report --corpus tiny --of last" in metadata["look at it by"].value


def test_what_is_refused_before_a_stage_begins_leaves_each_check_as_it_was_judged_last(
    in_memory: dg.DagsterInstance, root: Path
) -> None:
    before = {("verify", "loader_repeats_itself"): True, ("collect", "every_pin_verified"): False}
    for (stage, check), passed in before.items():
        key = dg.AssetKey(["tiny", stage])
        in_memory.report_runless_asset_event(dg.AssetCheckEvaluation(asset_key=key, check_name=check, passed=passed))
    result = execute("build_tiny", jobs.build_config(of_pins(root / "none.toml"), workers=1), in_memory)

    assert "none.toml: cannot be read" in failure_texts(result)
    found = {(gate.stage, gate.name): shown(in_memory, gate.stage, gate.name) for gate in GATES}
    expected = {check: "SUCCEEDED" if passed else "FAILED" for check, passed in before.items()}
    assert found == dict.fromkeys(found) | expected


def shown(instance: dg.DagsterInstance, stage: str, check: str) -> str | None:
    """Return what the UI shows of a check; None where it was never judged."""
    key = dg.AssetCheckKey(dg.AssetKey(["tiny", stage]), check)
    record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    if record is None:
        return None
    context = LoadingContextForTest(instance)
    return asyncio.run(record.resolve_status(context)).value


@pytest.mark.parametrize(
    ("job", "place", "value", "said"),
    [
        (
            "build_tiny",
            ("ops", "tiny__tokenize", "row_length"),
            3,
            "row_length is 3; expected a whole number, at least 16",
        ),
        (
            "build_tiny",
            ("resources", "build_tiny", "workers"),
            0,
            "workers of the launchpad's resource build_tiny: it is 0; expected 1",
        ),
        ("build_tiny", ("resources", "build_tiny", "wait_seconds"), -1, "build_tiny: it is -1.0; expected 0 or more"),
        ("build_tiny", ("ops", "tiny__tokenize", "vocabulary"), "cpp-1", "vocabulary cpp-1: it does not exist"),
        ("nightly_tiny", ("ops", "tiny__live", "to"), "", "to is ''; expected a text, length at least 1"),
        (
            "__ASSET_JOB",
            ("ops", "tiny__training", "stop_after"),
            0,
            "stop_after is 0; expected a whole number, at least 1, at most 10,000,000 (Step at which this session ends",
        ),
        (
            "__ASSET_JOB",
            ("ops", "tiny__training", "set"),
            ["batch_rows=0"],
            "set: batch_rows: it is 0; expected a whole",
        ),
        (
            "__ASSET_JOB",
            ("ops", "tiny__training", "overrides"),
            {"optimizer": {"weight_decay": -1.0}, "epoch_caps": {"heron": 0.0}},
            "overrides.optimizer.weight_decay is -1.0, overrides.epoch_caps.heron is 0.0; expected a number, or none, at least 0",
        ),
    ],
)
def test_a_field_out_of_bounds_is_named_before_the_first_stage(
    job: str, place: tuple[str, str, str], value: Any, said: str, in_memory: dg.DagsterInstance, root: Path
) -> None:
    kind, name, field = place
    config: Any = jobs.build_config(OF_TINY, workers=1)
    config.setdefault(kind, {}).setdefault(name, {}).setdefault("config", {})[field] = value
    selection = (
        [key for key in defs.resolve_all_asset_keys() if key.path[0] == "tiny"] if job == "__ASSET_JOB" else None
    )
    result = defs.resolve_job_def(job).execute_in_process(
        instance=in_memory, run_config=config, raise_on_error=False, asset_selection=selection
    )

    assert not result.success
    assert said in failure_texts(result)
    assert not root.exists(), "nothing was built"


def test_a_launched_job_runs_at_once_without_a_daemon(tmp_path: Path, root: Path, tiny_store: Store) -> None:
    copy_consumer_proof(tiny_store, root)
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path), "SLUICE_STORE": str(root)}
    (tmp_path / "dagster.yaml").write_text(
        (ROOT / "dagster.yaml").read_text().replace("./store", str(tmp_path / "instance"))
    )
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(jobs.build_config(OF_TINY, workers=1)))
    command = [sys.executable, "-m", "dagster", "job", "launch", "-j", "build_tiny", "-w", str(ROOT / "workspace.yaml")]
    done = subprocess.run(
        [*command, "-c", str(tmp_path / "config.yaml")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"run [0-9a-f-]{36} of build_tiny is started: http://localhost:3000/runs/[0-9a-f-]{36}", done.stderr
    )

    deadline = time.monotonic() + 90
    while Store(root).ref("tiny", "candidate") is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert Store(root).ref("tiny", "candidate") is not None


@pytest.mark.slow  # three processes of the trainer, one after the other
def test_a_trainer_killed_with_9_is_started_again_and_the_run_ends_green_with_the_same_certificate(
    instance: dg.DagsterInstance, root: Path, tiny_store: Store
) -> None:
    shutil.copytree(tiny_store.root, root)
    params = TrainingParams(stop_after=8, save_every=2)
    by_hand = subprocess.run(
        [*command_of("tiny", params, root / "runs" / "by-hand"), "--run", "by-hand"], capture_output=True, check=True
    )
    killer = threading.Thread(target=_kill_the_trainer_once_it_saved, args=(root,))
    killer.start()
    trained = execute("train_tiny", jobs.train_config("tiny", params), instance)
    killer.join()

    assert trained.success
    assert [event.event_type_value for event in trained.all_events].count("STEP_RESTARTED") == 1
    (event,) = trained.asset_materializations_for_node("tiny__training")
    assert event.metadata["certificate"].value == json.loads(by_hand.stdout)["certificate"]
    assert "image/svg" in event.metadata["throughput"].value
    resumed = [line for line in instance.all_logs(trained.run_id) if "resumed at step" in line.user_message]
    assert resumed, "it began anew"


def _kill_the_trainer_once_it_saved(root: Path) -> None:
    """Kill the trainer that a run of Dagster started, as soon as it has a checkpoint to resume from."""
    deadline = time.monotonic() + 300
    while not _has_checkpoint(root) and time.monotonic() < deadline:
        time.sleep(0.002)
    (metrics,) = root.glob("runs/*-*-*-*/metrics.jsonl")
    os.kill(_trainer_of(metrics.parent), signal.SIGKILL)


def _has_checkpoint(root: Path) -> bool:
    """Return whether the run's ref names a checkpoint: it is there, and names none, before the first move is in the history."""
    values = (path.read_text().partition(" ")[0] for path in root.glob("refs/runs/tiny-*/latest"))
    return any(map(is_id, values))


def _trainer_of(out: Path) -> int:
    for place in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(out).encode() in arguments:
            return int(place.name)
    raise AssertionError(f"no process trains into {out}")


@pytest.mark.parametrize("is_named", [False, True], ids=["beside the pins", "named"])
def test_a_build_carries_out_decisions(
    is_named: bool, in_memory: dg.DagsterInstance, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    lines = "".join(f"int f{n}(int a{n}) {{ return a{n} * {n} + {n}; }}\n" for n in range(40))
    (tmp_path / "code" / "a.c").write_text("// Not to be used for forecasts without a permission.\n" + lines)
    pins, decisions = tmp_path / "pins.toml", tmp_path / ("of_mine.toml" if is_named else "decisions.toml")
    pin = f'name = "mine"\nkind = "local"\npath = "code"\ndigest = "{tree_digest(tmp_path / "code")}"\n'
    pins.write_text(f'[[pin]]\n{pin}declared_license = "MIT"\n')
    who = 'person = "A. Reader"\nreason = "The author said so."\n'
    entries = (f'[[decision]]\nsource = "mine"\npath = "{path}"\nlicense = "ISC"\n{who}' for path in ("a.c", "b.c"))
    decisions.write_text("".join(entries))
    named = decisions if is_named else None
    config = jobs.build_config(of_pins(pins, named), workers=1)

    result = defs.resolve_job_def("build_tiny").execute_in_process(
        instance=in_memory,
        run_config=config,
        raise_on_error=False,
        asset_selection=[dg.AssetKey(["tiny", "collect"]), dg.AssetKey(["tiny", "normalize"])],
    )

    (event,) = result.asset_materializations_for_node("tiny__normalize")
    assert event.metadata["dagster/row_count"].value == 1
    assert str(event.metadata["warnings"].value).startswith("The decision about mine/b.c has no effect")


def test_limits_that_are_not_the_recipes_need_a_reason_and_are_shown_wherever_live_is(
    in_memory: dg.DagsterInstance,
    root: Path,
    tiny_store: Store,
    tiny_results: list[StageResult],
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(tiny_store.root, root)
    loosened = {"normalize": {"drop_bands": {"binary": 0.9}}}
    with known_answers(tiny_store):
        assert execute("build_tiny", jobs.build_config(OF_TINY, workers=1, overrides=loosened), in_memory).success
    store = Store(root)
    snapshot_id = store.ref("tiny", "candidate") or ""
    assert snapshot_id == store.ref("tiny", "live")
    found = difference(stored_build(store, "tiny", "live"), stored_build(store, "tiny", snapshot_id))
    assert found.settings == [{"name": "normalize.drop_bands.binary", "a": 0.2, "b": 0.9}]

    refused = execute("promote_tiny", jobs.promote_config("tiny"), in_memory)
    assert (
        "it was judged by other limits than the recipe's: normalize.drop_bands.binary is 0.9, the recipe's is 0.2"
        in failure_texts(refused)
    )
    blank = execute("promote_tiny", jobs.promote_config("tiny", reason=" \u200b"), in_memory)
    assert "or a reason" in failure_texts(blank), "blanks say nothing"
    promoted = execute("promote_tiny", jobs.promote_config("tiny", reason="binaries\nare wanted"), in_memory)
    (event,) = promoted.asset_materializations_for_node("tiny__live")
    assert event.metadata["reason"].value == "binaries are wanted", "one line"
    (row,) = event.metadata["limits that are not the recipe's"].value.records
    assert row.data == {"name": "normalize.drop_bands.binary", "judged_by": 0.9, "recipe": 0.2}
    assert "drop_bands.binary is 0.9" in list(store.entries(PROMOTIONS))[-1]["other_limits"]
    assert "drop_bands.binary is 0.9" in event.metadata["live by limits that are not the recipe's"].value
    assert "Live in tiny by limits that are not the recipe's: normalize.drop_bands.binary is 0.9" in markdown_card(
        facts_of(open_snapshot(store, snapshot_id))
    )
    assert "drop_bands.binary is 0.9" in render_page(report_corpus(store, "tiny"))
    for asked in ([], ["live"]):
        capsys.readouterr()
        assert main(["show", *asked, "--corpus", "tiny", "--store", str(root)]) == 0
        assert "drop_bands.binary is 0.9" in capsys.readouterr().out
    reclaim(store, lambda name: False)
    proved = promote(store, "tiny", snapshot_id, expected=TINY.params)
    assert proved.other_limits == (), "a proof by the recipe's limits is found, though a newer one is not by them"
    assert store.live_limits(snapshot_id) == {}
    assert (live_proof(store, "tiny"), len(store.lives("tiny"))) == (tiny_results[-1].object_id, 1)


def test_a_schedule_that_was_missed_for_three_days_launches_one_run(tmp_path: Path) -> None:
    """Run Dagster's scheduler before the outage and after it; the coordinator queues what it launches."""
    queued = {"module": "dagster._core.run_coordinator", "class": "QueuedRunCoordinator"}
    origin = LoadableTargetOrigin(module_name="assets.definitions", executable_path=sys.executable)
    target = InProcessTestWorkspaceLoadTarget(InProcessCodeLocationOrigin(origin, location_name="sluice"))
    before = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
    with (
        dg.DagsterInstance.local_temp(str(tmp_path), overrides={"run_coordinator": queued}) as instance,
        WorkspaceProcessContext(instance, target) as workspace,
    ):
        for moment in (before, before + datetime.timedelta(days=3), before + datetime.timedelta(days=3, minutes=1)):
            errors = list(launch_scheduled_runs(workspace, logging.getLogger("test"), moment, {}))
            assert not any(errors)
        (run,) = instance.get_runs()
        (tick,) = instance.get_ticks(*_schedule_of(workspace))

        assert run.job_name == "nightly"
        assert run.status is dg.DagsterRunStatus.QUEUED
        assert run.tags[".dagster/scheduled_execution_time"] == "2026-01-08T03:00:00+00:00"
        assert tick.status is TickStatus.SUCCESS
        assert instance.event_log_storage.get_concurrency_keys() == set()


def _schedule_of(workspace: WorkspaceProcessContext) -> tuple[str, str]:
    (location,) = workspace.create_request_context().code_locations
    (repository,) = location.get_repositories().values()
    (schedule,) = repository.get_schedules()
    return schedule.get_remote_origin_id(), schedule.selector_id


def test_a_failed_tick_is_tried_again_and_no_missed_night_is_made_up() -> None:
    scheduler = yaml.safe_load((ROOT / "dagster.yaml").read_text())["scheduler"]

    assert scheduler["config"] == {"max_catchup_runs": 1, "max_tick_retries": 2}
