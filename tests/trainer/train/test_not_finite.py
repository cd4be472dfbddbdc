"""The first tensor that is not finite is named, forward and backward."""

import math

import pytest
import torch

from pipeline.store.store import Store
from trainer.config.training_config import training_recipe
from trainer.model.layers import BlockOutput
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


@pytest.mark.parametrize("is_backward", [False, True])
def test_the_layer_where_numbers_cease_to_be_finite_is_named(tiny_store: Store, is_backward: bool) -> None:
    """Later layers spread it forward and earlier ones backward; neither is named."""
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    training = Training(tiny_store, RunInputs(snapshot_id, training_recipe("tiny"), 42))
    broken = training.model.layers[1].block

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * math.inf

    def on_output(module: torch.nn.Module, arguments: object, output: BlockOutput) -> BlockOutput:
        if not is_backward:
            return output._replace(update_BTD=output.update_BTD * math.inf)
        if output.update_BTD.requires_grad:
            output.update_BTD.register_hook(spoil)
        return output

    broken.register_forward_hook(on_output)
    names = [name for name, _ in broken.named_parameters()]
    metrics = training.step(training.loader.batch_at(0, 4))

    expected = [f"gradient of layers.1.block.{name}" for name in names] if is_backward else ["output of layers.1.block"]
    assert metrics["not_finite"] in expected
    assert not any(module._forward_hooks for module in training.model.modules() if module is not broken)
