"""Casts of a step are those of each use, bit for bit, in gradients too, and are gone after it."""

import pytest
import torch

from tests.support.made.measured_memory import drawn_batch
from trainer.compile import weight_casts
from trainer.compile.weight_casts import cast_once
from trainer.config.training_config import training_recipe
from trainer.distributed.ranks import Ranks
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.train.step import backward

TINY = training_recipe("tiny")


def model_of(dtype: torch.dtype | None) -> HybridModel:
    model = HybridModel(TINY.model, 256)
    model.dtype = dtype
    initialize(model, seed=1)
    return model


def test_gradients_have_the_bits_of_casts_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[torch.Tensor]:
        model = model_of(torch.bfloat16)
        step = backward(model, drawn_batch(TINY, 256, 16), 2, Ranks(), "cpu")
        assert step.untouched == ()
        return [step.loss, *(each.grad for each in model.parameters())]

    once = found()
    monkeypatch.setattr(weight_casts, "CAST_PARAMETERS", {})

    assert all(map(torch.equal, once, found()))


def test_the_matrices_are_cast_and_no_cast_outlives_its_step() -> None:
    model = model_of(torch.bfloat16)
    with cast_once(model) as casts:
        names = {name for name, each in model.named_parameters() if each in casts}
        assert {each.dtype for each in casts.values()} == {torch.bfloat16}
        assert any(block.casts for block in model.modules() if hasattr(block, "casts"))
    with cast_once(model_of(None)) as none:
        assert not none

    assert {"layers.1.block.into_EDF", "layers.2.block.into.weight"} <= names
    assert "embedding_VD" not in names
    assert not casts
    assert not any(block.casts for block in model.modules() if hasattr(block, "casts"))
