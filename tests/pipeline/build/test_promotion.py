"""`live` moves on evidence alone, and only to a snapshot."""

import shutil
from pathlib import Path

import pytest

from pipeline.build.promotion import promote
from pipeline.build.run_stage import StageResult
from pipeline.build.stage_objects import parts_of
from pipeline.core.errors import DamagedError, MissingError, SnapshotError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store


@pytest.fixture
def built(tiny_store: Store, tmp_path: Path) -> Store:
    """A copy of the built store, to be damaged."""
    shutil.copytree(tiny_store.root, tmp_path / "built")
    return Store(tmp_path / "built")


def snapshot_of(results: list[StageResult]) -> str:
    snapshot_id = results[-1].snapshot_id
    assert snapshot_id is not None
    return snapshot_id


def test_an_object_that_is_not_a_snapshot_is_refused_by_its_kind(built: Store, tiny_results: list[StageResult]) -> None:
    for result in tiny_results:
        with pytest.raises(SnapshotError, match=f"it is a {result.stage}/stage"):
            promote(built, "tiny", result.object_id)
    part = next(iter(parts_of(built.read(tiny_results[0].object_id)).values()))
    with pytest.raises(SnapshotError, match="it is a collect/part"):
        promote(built, "tiny", part)
    assert built.ref("tiny", "live") == snapshot_of(tiny_results)


@pytest.mark.parametrize("content", [b"", b"\n", b"0" * 64, b"\xff"])
def test_a_snapshot_whose_proof_is_damaged_or_missing_is_not_promoted(
    built: Store, tiny_results: list[StageResult], content: bytes
) -> None:
    path = built.root / "verified" / snapshot_of(tiny_results)
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="proof of snapshot"):
        promote(built, "tiny")
    path.unlink()
    with pytest.raises(MissingError, match="no verify stage"):
        promote(built, "tiny")


def test_the_proof_of_another_object_proves_nothing(built: Store, tiny_results: list[StageResult]) -> None:
    snapshot_id = snapshot_of(tiny_results)
    built.mark_verified(snapshot_id, tiny_results[0].object_id)

    with pytest.raises(DamagedError, match="did not verify it"):
        promote(built, "tiny", snapshot_id)
    (problem,) = fsck(built)
    assert "did not verify it" in problem


def test_a_damaged_live_ref_is_mended_by_a_promotion(built: Store, tiny_results: list[StageResult]) -> None:
    (built.root / "refs" / "tiny" / "live").write_text("")

    assert promote(built, "tiny").new == snapshot_of(tiny_results)
    assert built.ref("tiny", "live") == snapshot_of(tiny_results)
