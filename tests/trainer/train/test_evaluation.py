"""Evaluation: due at multiples of a step, equal when repeated, and refused without held-out rows."""

import pytest

from pipeline.core.errors import TrainingError
from pipeline.core.records import Split
from pipeline.store.store import Store
from trainer.config.training_config import training_recipe
from trainer.data.open_loader import sources_of
from trainer.train import evaluation
from trainer.train.evaluation import EvaluationSchedule, HeldOutRows
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


def test_an_evaluation_is_due_at_multiples_and_never_without_a_number() -> None:
    assert [step for step in range(1, 10) if EvaluationSchedule(3).is_due(step)] == [3, 6, 9]
    assert not any(EvaluationSchedule().is_due(step) for step in range(1, 10))


def test_held_out_metrics_repeat_and_leave_the_model_in_training(tiny_store: Store) -> None:
    inputs = RunInputs(tiny_store.ref("tiny", "live") or "", training_recipe("tiny"), 42)
    training = Training(tiny_store, inputs, with_held_out=True)
    planned = training.model.attention

    found = training.evaluate(4)
    assert found == training.evaluate(4)
    assert found["held_out_cross_entropy/source/heron"] == pytest.approx(found["held_out_cross_entropy"])
    assert {name.rpartition("/")[0] for name in found if "/" in name} == {
        f"held_out_cross_entropy/{dimension}" for dimension in ("source", "lane", "license")
    }
    assert training.model.training
    assert training.model.attention is planned


def test_the_rows_of_an_evaluation_are_of_all_sources_and_the_same_in_batches_of_any_size(
    tiny_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tiny_store, RunInputs(tiny_store.ref("tiny", "live") or "", training_recipe("tiny"), 42))
    snapshot = training.run_data.snapshot
    monkeypatch.setattr(evaluation, "sources_of", lambda of, split, structure: sources_of(of, Split.TRAIN, structure))
    rows = HeldOutRows([snapshot], training.model.structure is not None)

    found, other = (rows.evaluate(training.model, 6, batch_rows, "cpu") for batch_rows in (4, 3))
    assert found == pytest.approx(other)
    sources = {name.rpartition("/")[2] for name in found if "/source/" in name}
    assert sources == {each.name for each in snapshot.sources if each.num_rows_train}
    assert len(sources) > 2


def test_a_snapshot_without_held_out_rows_is_refused(tiny_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(tiny_store, RunInputs(tiny_store.ref("tiny", "live") or "", training_recipe("tiny"), 42))
    monkeypatch.setattr(evaluation, "sources_of", lambda snapshot, split, with_structure: [])

    with pytest.raises(TrainingError, match="it has no held-out rows"):
        HeldOutRows([training.run_data.snapshot])
