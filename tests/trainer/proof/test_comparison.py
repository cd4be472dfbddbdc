"""Comparison of two trainings: settings, then the first step and tensor that differ."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.support.made import made_checkpoints
from tests.support.made.made_histories import TENSORS, history_of
from trainer.checkpoint.certificate import History, describe_state, differing_tensors
from trainer.checkpoint.checkpoint import Checkpoint
from trainer.proof.comparison import TrainingRecord, compare_trainings, diff_checkpoints, read_record


def record(history: History, **settings: object) -> TrainingRecord:
    return TrainingRecord(settings, history.certificate, history, sorted(TENSORS))


def made(moved: float) -> Checkpoint:
    parameters = {"embedding_VD": torch.arange(4.0), "layers.0.norm.weight": torch.full((8,), 1.0 + moved)}
    return Checkpoint(1, {}, {}, {}, {}, parameters, {}, History())


def test_one_bit_of_one_tensor_moves_the_numbers_and_is_named() -> None:
    moved = {**TENSORS, "parameters/b": TENSORS["parameters/b"].clone()}
    moved["parameters/b"][1, 1] = float(np.nextafter(np.float32(1), np.float32(2)))
    one, other = history_of(1.0, 2.0), history_of(1.0, 2.0, state=moved)
    found = compare_trainings(record(one), record(other))

    assert (found.is_equal, found.first_loss, found.first_state) == (False, None, 2)
    assert found.first_tensors == ["parameters/b"]
    assert differing_tensors(describe_state(2, TENSORS), describe_state(2, moved), list(TENSORS)) == ["parameters/b"]


def test_settings_that_differ_are_named_before_the_first_step() -> None:
    one, other = history_of(1.0, 2.0, 3.0), history_of(1.0, 2.5, 3.5, changed=2)
    found = compare_trainings(
        record(one, environment={"torch": "1"}, seed=1, added=[]),
        record(other, environment={"torch": "2"}, seed=2, added=["loss term z"]),
    )

    assert found.lines[:3] == ["seed: 1 | 2", "added: [] | ['loss term z']", "environment.torch: '1' | '2'"]
    assert found.lines[3] == "first batch that differs: step 2"
    assert found.first_loss == 2


def test_a_difference_is_named_by_tensor() -> None:
    rows = {row.name: row for row in diff_checkpoints(made(0.0), made(0.5))}

    assert [name for name, row in rows.items() if not row.is_equal] == ["parameters/layers.0.norm.weight"]
    assert rows["parameters/layers.0.norm.weight"].max_difference == 0.5


def test_a_result_of_an_earlier_version_is_refused_as_such(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"checkpoint_id": "", "snapshot_id": "", "config": {}, "packing": {}}')

    with pytest.raises(TrainingError, match=r"no field 'environment'.*An earlier version wrote it"):
        read_record(str(path), Store(tmp_path / "store"))


def test_equal_certificates_of_other_losses_are_not_called_equal() -> None:
    one, other = history_of(1.0, 2.0), history_of(1.0, 2.0)
    other.losses[1] = 1.5
    found = compare_trainings(record(one), record(other))

    assert (found.is_equal, found.first_loss) == (False, 2)
    assert any("changed after its session" in line for line in found.lines)


@pytest.mark.parametrize("change", [{"losses": [5.0, 4.5]}, {"certificate": "0" * 129}])
def test_a_result_that_its_checkpoint_contradicts_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    store, saved = Store(tmp_path / "store"), made_checkpoints.made(2)
    path = tmp_path / "result.json"
    result = {
        "checkpoint_id": made_checkpoints.put(store, saved),
        "certificate": saved.history.certificate,
        "losses": saved.history.losses,
        "seeds": {"global": 1},
        **dict.fromkeys(("snapshot_id", "config", "packing", "environment", "forks")),
    }
    path.write_text(json.dumps(result))
    assert read_record(str(path), store).certificate == saved.history.certificate

    path.write_text(json.dumps(result | change))
    with pytest.raises(TrainingError, match=r"changed after the session"):
        read_record(str(path), store)
