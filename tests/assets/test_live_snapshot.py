"""Asset `snapshot/live`: a promotion without a candidate fails in one sentence and moves nothing."""

import shutil
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import jobs
from assets.definitions import definitions, defs
from assets.live_snapshot import describe, live_history, live_rows, live_snapshot, moved_live
from assets.resources import StoreResource
from pipeline.build.promotion import refuse_foreign
from pipeline.build.run_stage import BuildCallback, StageResult
from pipeline.cli.main import main
from pipeline.pins.corpora import Corpus
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


def test_without_a_candidate_it_fails_and_says_how_to_make_one(in_memory: dg.DagsterInstance, root: Path) -> None:
    result = defs.resolve_job_def("promote_tiny").execute_in_process(
        instance=in_memory, run_config=jobs.promote_config("tiny"), raise_on_error=False
    )
    (failure,) = (event.event_specific_data for event in result.all_events if event.is_step_failure)

    assert "MissingError: snapshot candidate of corpus tiny" in str(failure)
    assert f"Run `python -m pipeline build --recipe RECIPE --corpus tiny --store {root}` first." in str(failure)
    assert Store(root).refs("tiny") == {}


def test_the_history_says_since_when_a_snapshot_is_live_and_what_was_before(
    tiny_store: Store, tiny_results: list[StageResult], tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "copied")
    store, snapshot_id = Store(tmp_path / "copied"), tiny_results[-1].snapshot_id or ""
    first = live_history(store, "tiny")
    assert first["live before"] == "none"
    store.move_ref("tiny", "live", snapshot_id, tiny_results[0].object_id, "a test")
    store.move_ref("tiny", "live", tiny_results[0].object_id, snapshot_id, "back")

    after = live_history(store, "tiny")
    assert after["live before"] == tiny_results[0].object_id
    assert after["live since"] > first["live since"]
    assert [row["snapshot"] for row in live_rows(store, "tiny")] == [
        each[:12] for each in (snapshot_id, tiny_results[0].object_id, snapshot_id)
    ]
    assert live_history(store, "none") == {"live since": "unknown", "live before": "none", "reason": ""}


def reported(
    sensor: dg.SensorDefinition, context: dg.SensorEvaluationContext, instance: dg.DagsterInstance
) -> dict[str, Any]:
    """Report the one event that the sensor asks for, and return its metadata."""
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    (event,) = result.asset_events
    assert isinstance(event, dg.AssetMaterialization)
    instance.report_runless_asset_event(event)
    return {name: getattr(value, "value", value) for name, value in event.metadata.items()}


def test_what_a_command_made_live_is_reported_once_with_how_to_go_back(
    in_memory: dg.DagsterInstance, root: Path, tiny_store: Store, tiny_results: list[StageResult]
) -> None:
    tiny = Corpus(name="tiny", recipe="tiny")
    sensor = moved_live(tiny, [Corpus(name="first", recipe="quick"), tiny])
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    context = dg.build_sensor_context(instance=in_memory)
    assert isinstance(sensor(context), dg.SkipReason), "nothing is live"
    shutil.copytree(tiny_store.root, root)
    store, snapshot_id = Store(root), tiny_results[-1].snapshot_id or ""
    found = []
    for _ in range(2):
        found.append(reported(sensor, context, in_memory))
        assert isinstance(sensor(context), dg.SkipReason), "it is reported"
        store.move_ref("tiny", "live", snapshot_id, tiny_results[0].object_id, "a test")
        store.move_ref("tiny", "live", tiny_results[0].object_id, snapshot_id, "back")

    assert [each["snapshot_id"] for each in found] == [snapshot_id] * 2
    assert "roll back" not in found[0]
    needed = "and a reason: it was rolled back from"
    assert found[1]["roll back"] == f"launch promote_tiny with to: {tiny_results[0].object_id} {needed}"
    assert (found[1]["reason"], found[0].keys() >= {"card", "report", "gates"}) == ("back", True)


def test_other_limits_of_what_stays_live_are_reported_with_their_reason(
    in_memory: dg.DagsterInstance, root: Path, tiny_store: Store, tiny_results: list[StageResult]
) -> None:
    shutil.copytree(tiny_store.root, root)
    tiny = Corpus(name="tiny", recipe="tiny")
    sensor, context = moved_live(tiny, [tiny]), dg.build_sensor_context(instance=in_memory)
    store, snapshot_id = Store(root), tiny_results[-1].snapshot_id or ""
    found = []
    for _ in range(2):
        found.append(reported(sensor, context, in_memory).get("live by limits that are not the recipe's"))
        proof = {"other_limits": "a limit is 2", "proof": tiny_results[-1].object_id}
        store.move_ref("tiny", "live", snapshot_id, snapshot_id, "it was loosened", proof)

    assert found == [None, "a limit is 2; it was loosened"]
    assert isinstance(sensor(context), dg.SkipReason)


def test_a_promotion_after_a_blocked_build_logs_that(
    in_memory: dg.DagsterInstance, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.live_snapshot.candidate_of_before", lambda store, corpus: f"{corpus} was blocked")
    defs.resolve_job_def("promote_tiny").execute_in_process(
        instance=in_memory, run_config=jobs.promote_config("tiny"), raise_on_error=False
    )
    (run,) = in_memory.get_runs()
    assert "tiny was blocked" in [entry.user_message for entry in in_memory.all_logs(run.run_id)]


def test_a_run_that_builds_leaves_what_a_person_rolled_back_from_and_says_so(
    in_memory: dg.DagsterInstance,
    root: Path,
    tiny_store: Store,
    tiny_results: list[StageResult],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(tiny_store.root, root)
    store, new, older = Store(root), tiny_results[-1].snapshot_id or "", tiny_results[0].object_id
    store.move_ref("mine", "candidate", None, new, "built")
    for old, to in zip((None, older, new), (older, new, older), strict=True):
        store.move_ref("mine", "live", old, to, "it is bad")
    mine = Corpus(name="mine", recipe="tiny")
    assets = [_verified, live_snapshot(mine, [mine])]

    def run(**values: str) -> dg.ExecuteInProcessResult:
        config, resources = jobs.promote_config("mine", **values), {"store": StoreResource()}
        return dg.materialize(assets, instance=in_memory, run_config=config, resources=resources, raise_on_error=False)

    left = run()
    (said,) = (
        event.asset_observation_data.asset_observation for event in left.all_events if event.is_asset_observation
    )
    assert left.success
    assert not left.asset_materializations_for_node("mine__live")
    assert store.ref("mine", "live") == older
    assert f"snapshot {new[:12]} is not promoted: it was rolled back from at " in said.description
    assert live_history(store, "mine")["candidate is left"] == said.description

    promoted: list[object] = []
    monkeypatch.setattr("assets.live_snapshot.promote", lambda *given, **named: promoted.append(given[3]) or 1 / 0)
    run(reason="it was not the snapshot")
    store.move_ref("mine", "candidate", new, tiny_results[1].object_id, "built")
    run()
    assert promoted == ["it was not the snapshot", None], "a person may, and another candidate is promoted"
    assert "candidate is left" not in live_history(store, "mine")


@dg.asset(key=dg.AssetKey(["mine", "verify"]))
def _verified() -> None:
    """Take the place of the build of a corpus."""


def test_a_reason_for_what_is_live_already_is_said_to_be_kept_by_nothing(
    in_memory: dg.DagsterInstance, root: Path, tiny_store: Store
) -> None:
    shutil.copytree(tiny_store.root, root)
    job = definitions(BuildCallback(), [Corpus(name="tiny", recipe="tiny")]).resolve_job_def("promote")
    job.execute_in_process(instance=in_memory, run_config=jobs.promote_config("tiny"))
    again = job.execute_in_process(instance=in_memory, run_config=jobs.promote_config("tiny", reason="nobody keeps it"))
    (event,) = again.asset_materializations_for_node("tiny__live")

    assert event.metadata["reason"].value == live_history(Store(root), "tiny")["reason"] == "promoted"
    assert event.metadata["unchanged"].value is True


def test_what_was_never_of_the_corpus_needs_a_reason(
    in_memory: dg.DagsterInstance, root: Path, tiny_store: Store, tiny_results: list[StageResult]
) -> None:
    shutil.copytree(tiny_store.root, root)
    snapshot_id = tiny_results[-1].snapshot_id or ""
    job = definitions(BuildCallback(), [Corpus(name="other", recipe="tiny")]).resolve_job_def("promote")
    config = jobs.promote_config("other", to=snapshot_id)
    refused = job.execute_in_process(instance=in_memory, run_config=config, raise_on_error=False)
    (failure,) = (event.event_specific_data for event in refused.all_events if event.is_step_failure)
    assert "in corpus other: its history has no such candidate or live" in str(failure)
    assert main(["promote", "--corpus", "other", "--to", snapshot_id, "--store", str(root)]) == 1
    assert Store(root).refs("other") == {}
    refuse_foreign(Store(root), "other", snapshot_id, "it is the same code")
    refuse_foreign(Store(root), "tiny", snapshot_id, None)


def test_a_snapshot_is_described_by_its_card_and_the_page_of_its_build(
    tiny_store: Store, tiny_results: list[StageResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "copied")
    snapshot = open_snapshot(Store(tmp_path / "copied"), tiny_results[-1].snapshot_id or "")
    card, page = describe(snapshot, "tiny")

    assert snapshot.snapshot_id in card
    assert page.name == f"tiny-{snapshot.snapshot_id[:12]}.html"
    assert "lantern" in page.read_text()
    _, other = describe(snapshot, "another")
    assert "lantern" in other.read_text(), "the page is of the snapshot, whatever that corpus built last"
    monkeypatch.setitem(sys.modules, "pipeline.lineage.report_page", None)
    assert describe(snapshot, "tiny") == (card, page), "a page that is there loads nothing that draws"
