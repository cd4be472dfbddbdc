"""The made corpus through everything, and one committed id. Changing it needs a **Data** line in the changelog.

Where a stage's id moved, raise its version in STAGES if its output changed, and write down here what the new id is.
"""

from pathlib import Path

from pipeline.build.run_stage import StageResult
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.conftest import build_tiny, copy_consumer_proof
from tests.support.paths import golden_id


def test_the_made_corpus_ends_in_the_golden_id(tiny_results: list[StageResult]) -> None:
    assert tiny_results[-1].snapshot_id == golden_id()


def test_two_workers_and_another_directory_end_in_the_same_ids(tiny_results: list[StageResult], tmp_path: Path) -> None:
    again = build_tiny(tmp_path / "another" / "place", num_workers=2)

    assert [result.object_id for result in again] == [result.object_id for result in tiny_results]
    assert again[-1].snapshot_id == tiny_results[-1].snapshot_id


def test_a_second_build_recognizes_every_stage(tiny_store: Store, tmp_path: Path) -> None:
    copy_consumer_proof(tiny_store, tmp_path / "store")
    first = build_tiny(tmp_path / "store")
    second = build_tiny(tmp_path / "store")

    assert [result.unchanged for result in first] == [False] * len(STAGES)
    assert [result.unchanged for result in second] == [True] * len(STAGES)
