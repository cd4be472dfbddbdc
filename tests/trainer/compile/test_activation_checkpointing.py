"""A layer that is run again in the backward pass keeps its input alone, changes no bit and counts no token twice."""

import pytest
import torch

from tests.support.made.measured_memory import drawn_batch
from trainer.compile.activation_checkpointing import checkpoint_activations
from trainer.config.training_config import training_recipe
from trainer.distributed.ranks import Ranks
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.segments import describe_rows
from trainer.train.step import backward

TINY = training_recipe("tiny")
BATCH = drawn_batch(TINY, 256, 32)


def model_of(is_checkpointed: bool, dtype: torch.dtype | None = None) -> HybridModel:
    model = HybridModel(TINY.model, 256)
    model.dtype = dtype
    initialize(model, seed=1)
    if is_checkpointed:
        checkpoint_activations(model)
    return model


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_no_bit_changes_and_no_token_counts_twice(dtype: torch.dtype | None) -> None:
    def found(is_checkpointed: bool) -> list[torch.Tensor]:
        model = model_of(is_checkpointed, dtype)
        loss = backward(model, BATCH, 2, Ranks(), "cpu").loss
        counters = [value for block in model.modules() if isinstance(block, Experts) for value in block.counters()]
        return [loss, *counters, *(each.grad for each in model.parameters())]

    assert all(map(torch.equal, found(False), found(True)))


def test_a_layer_keeps_its_input_alone() -> None:
    def kept(is_checkpointed: bool) -> int:
        model = model_of(is_checkpointed)
        rows = describe_rows(*(torch.from_numpy(array) for array in (BATCH.arrays[0], BATCH.arrays[3])))
        hidden = torch.zeros(*rows.input_ids_BT.shape, TINY.model.width, requires_grad=True)
        found: list[torch.Tensor] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda each: found.append(each) or each, lambda each: each):
            model.run_layers(hidden, rows)
        return sum(each.nbytes for each in found)

    assert kept(True) == TINY.model.depth * 4 * BATCH.arrays[0].size * TINY.model.width
    assert kept(False) > 20 * kept(True)
