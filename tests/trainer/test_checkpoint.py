"""A checkpoint that is worth nothing is never written."""

from pathlib import Path

import pytest
import torch

from pipeline.errors import TrainingError
from pipeline.store import Store
from trainer.checkpoint import Checkpoint, load, save


def checkpoint(weight: float, moment: float) -> Checkpoint:
    identity = {"snapshot_id": "0" * 64}
    parameters = {"weight": torch.tensor([1.0, weight]), "count": torch.tensor([3])}
    return Checkpoint(7, identity, {}, {}, parameters, {"exp_avg/weight": torch.tensor([moment])}, torch.tensor([1.0]))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_never_saved(store: Store, tmp_path: Path, value: float) -> None:
    for name, bad in (("weight", checkpoint(value, 0.0)), ("exp_avg/weight", checkpoint(0.0, value))):
        with pytest.raises(TrainingError, match=f"step 7.*{name}"):
            save(store, tmp_path / name, bad)
    assert not store.root.exists()


def test_finite_values_are_saved_and_read_back(store: Store, tmp_path: Path) -> None:
    saved = checkpoint(2.0, 0.5)
    found = load(store, save(store, tmp_path / "scratch", saved))

    assert found.step == 7
    assert {name: tensor.tolist() for name, tensor in found.parameters.items()} == {"weight": [1.0, 2.0], "count": [3]}
