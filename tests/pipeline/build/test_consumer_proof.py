"""A snapshot is promoted only if the trainer that is installed runs on it, by the proof of the build or by one made now."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build import consumer_proof
from pipeline.build.promotion import promote
from pipeline.build.run_stage import StageResult
from pipeline.core.errors import BlockedError, StageError
from pipeline.stages.verify import consumer, smoke, stage
from pipeline.store.store import Store
from tests.conftest import build_tiny, sound_answer

BROKEN = 'raise RuntimeError("broken on purpose")\n'
NOT_FINITE = """
import json, sys
snapshot = sys.argv[sys.argv.index("--snapshot") + 1]
print(json.dumps({"snapshot_id": snapshot, "losses": [float("nan")], "checks": [{"num_compared": 1, "num_differing": 0}]}))
"""


def install(monkeypatch: pytest.MonkeyPatch, root: Path, main: str) -> None:
    """Install another trainer in place of ours."""
    (root / "trainer").mkdir(parents=True)
    (root / "trainer" / "__init__.py").touch()
    (root / "trainer" / "__main__.py").write_text(main)
    for module in (consumer, smoke):
        monkeypatch.setattr(module, "consumer_root", lambda: root)


def test_a_trainer_that_raises_is_never_passed(
    copied: Store, tiny_results: list[StageResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_id = tiny_results[-1].snapshot_id or ""
    install(monkeypatch, tmp_path / "other", BROKEN)

    with pytest.raises(StageError, match=r"consumer (smoke|verify-loader) run"):
        promote(copied, "another", snapshot_id)
    assert copied.ref("another", "live") is None
    with pytest.raises(StageError, match=r"consumer (smoke|verify-loader) run"):
        build_tiny(copied.root)
    with pytest.raises(StageError, match=r"consumer (smoke|verify-loader) run"):
        promote(copied, "tiny")  # also of what is live, which stays live
    assert copied.ref("tiny", "live") == snapshot_id


def test_a_proof_that_names_no_trainer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    with monkeypatch.context() as forged:
        parts = stage._parts
        anonymous = lambda part: replace(part, identity={}) if part.name in consumer.CONSUMER_PARTS else part  # noqa: E731
        forged.setattr(
            stage, "_parts", lambda *given: {name: list(map(anonymous, made)) for name, made in parts(*given).items()}
        )
        forged.setattr(smoke, "_run_trainer", sound_answer)
        snapshot_id = build_tiny(store.root)[-1].snapshot_id or ""
    install(monkeypatch, tmp_path / "other", BROKEN)

    with pytest.raises(StageError, match=r"consumer (smoke|verify-loader) run"):
        promote(store, "another", snapshot_id)
    assert store.ref("another", "live") is None


def test_a_trainer_that_loses_its_losses_is_blocked_by_its_gate(
    copied: Store, tiny_results: list[StageResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path / "other", NOT_FINITE)

    with pytest.raises(BlockedError, match="trainer_loss_is_finite"):
        promote(copied, "another", tiny_results[-1].snapshot_id or "")


def test_the_same_trainer_is_not_run_again(
    copied: Store, tiny_results: list[StageResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_proof, "load_declared", lambda *names: pytest.fail(f"{names} was run"))

    assert promote(copied, "another", tiny_results[-1].snapshot_id or "").old is None
    assert promote(copied, "tiny").unchanged
