"""Every gate is an asset check of its stage, blocking where the gate is; a run that ends early leaves checks as they were."""

from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from assets.definitions import defs
from assets.resources import declared_corpora
from pipeline.contracts.gates import GATES, gates_of
from pipeline.stages.stages import STAGES
from tests.support.paths import ROOT


def test_every_gate_is_a_check_of_the_asset_of_its_stage() -> None:
    graph = defs.resolve_asset_graph()
    found = {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys}

    assert found == {(f"{each.name}/{gate.stage}", gate.name) for each in declared_corpora() for gate in GATES}


def test_a_blocking_gate_is_a_blocking_check() -> None:
    graph = defs.resolve_asset_graph()
    blocking = {key.name for key in graph.asset_check_keys if graph.get_check_spec(key).blocking}

    assert blocking == {gate.name for gate in GATES if gate.blocking}


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """The instance of `dagster.yaml`, in a folder of its own."""
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as opened:
        yield opened


@pytest.mark.parametrize(
    "end", [dg.DagsterInstance.report_run_failed, dg.DagsterInstance.report_run_canceled], ids=["killed", "terminated"]
)
def test_a_run_that_another_process_ends_leaves_checks_that_it_did_not_judge_and_stages_that_it_did_not_begin_as_they_were(
    declared: dg.DagsterInstance, end: Callable[[dg.DagsterInstance, dg.DagsterRun], object]
) -> None:
    """The process of the run is gone: it took nothing back itself."""
    keys = {stage: dg.AssetKey(["tiny", stage]) for stage in STAGES.names}
    judged = {gate.name: dg.AssetCheckKey(keys[gate.stage], gate.name) for gate in GATES}
    before = {name: position % 3 > 0 for position, name in enumerate(judged)}
    for name, key in judged.items():
        result = dg.AssetCheckEvaluation(asset_key=key.asset_key, check_name=name, passed=before[name])
        declared.report_runless_asset_event(result)
    job = defs.resolve_job_def("build_tiny")
    run = declared.create_run_for_job(job, asset_selection=frozenset(keys.values()))
    log = declared.event_log_storage
    planned = log.get_latest_asset_check_execution_by_key(list(judged.values()))
    assert {each.status for each in planned.values()} == {AssetCheckExecutionRecordStatus.PLANNED}

    first, second, *others = STAGES.names
    for stage in (first, second):
        started = dg.DagsterEvent(dg.DagsterEventType.STEP_START.value, run.job_name, step_key=f"tiny__{stage}")
        declared.report_dagster_event(started, run.run_id)
    found = {gate.name: not before[gate.name] for gate in gates_of(first)}
    for name, passed in found.items():
        result = dg.AssetCheckEvaluation(asset_key=keys[first], check_name=name, passed=passed)
        kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value
        declared.report_dagster_event(dg.DagsterEvent(kind, run.job_name, event_specific_data=result), run.run_id)
    end(declared, run)

    shown = log.get_latest_asset_check_execution_by_key(list(judged.values()))
    assert {key.name: each.status.value == "SUCCEEDED" for key, each in shown.items()} == before | found
    assert not [each for each in shown.values() if each.status is AssetCheckExecutionRecordStatus.PLANNED]
    plans = {stage: declared.get_latest_planned_materialization_info(keys[stage]) for stage in STAGES.names}
    assert [stage for stage, plan in plans.items() if plan and plan.run_id == run.run_id] == [first, second]
    assert all(plans[stage] for stage in others)
