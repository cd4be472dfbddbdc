"""Asset `snapshot/live`: a promotion without a candidate fails in one sentence and moves nothing."""

import shutil
from pathlib import Path

import dagster as dg

from assets import jobs
from assets.definitions import defs
from assets.live_snapshot import describe, live_history
from pipeline.build.run_stage import StageResult
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


def test_without_a_candidate_it_fails_and_says_how_to_make_one(instance: dg.DagsterInstance, root: Path) -> None:
    result = defs.resolve_job_def("promote_tiny").execute_in_process(
        instance=instance, run_config=jobs.promote_config("tiny"), raise_on_error=False
    )
    (failure,) = (event.event_specific_data for event in result.all_events if event.is_step_failure)

    assert "MissingError: snapshot candidate of corpus tiny" in str(failure)
    assert "Run `python -m pipeline build` first." in str(failure)
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
    assert live_history(store, "none") == {"live since": "unknown", "live before": "none"}


def test_a_snapshot_is_described_by_its_card_and_the_page_of_its_build(
    tiny_store: Store, tiny_results: list[StageResult], tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "copied")
    snapshot = open_snapshot(Store(tmp_path / "copied"), tiny_results[-1].snapshot_id or "")
    card, page = describe(snapshot, "tiny")

    assert snapshot.snapshot_id in card
    assert page.name == f"tiny-{snapshot.snapshot_id[:12]}.html"
    assert "lantern" in page.read_text()
    _, none = describe(snapshot, "another")
    assert not none.exists(), "the last build of that corpus made another snapshot"
