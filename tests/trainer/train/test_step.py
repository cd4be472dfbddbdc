"""Gradients of a step are those of its whole batch, in whatever micro-batches; a step without memory leaves none."""

from collections.abc import Callable

import pytest
import torch

from tests.support.added_to_runs import LOGITS_Z_LOSS
from tests.support.made.made_rows import CONFIG, LAYOUT, sources_of
from trainer.config.model import ModelConfig
from trainer.config.presets import preset
from trainer.data.batch import Batch
from trainer.data.loader import Loader
from trainer.distributed.ranks import Ranks
from trainer.model import weight_casts
from trainer.model.activation_checkpointing import checkpoint_activations
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import LOSS_TERMS
from trainer.model.segments import describe_rows
from trainer.train.step import ShareOutOfMemoryError, backward, to_device


@pytest.fixture
def model() -> HybridModel:
    model = HybridModel(preset("tiny"), 256)
    initialize(model, seed=1)
    return model


@pytest.fixture
def batch() -> Batch:
    return Loader(sources_of(a=4), LAYOUT, CONFIG).batch_at(0, 4)


@pytest.mark.parametrize("num_micro_batches", [1, 2, 4])
def test_gradients_are_those_of_the_mean_over_the_whole_batch(
    config_of: Callable[[str], ModelConfig], batch: Batch, num_micro_batches: int
) -> None:
    model = HybridModel(config_of("AMR"), 256)  # without experts the loss is the cross-entropy alone
    initialize(model, seed=1)
    found = backward(model, batch, num_micro_batches, Ranks(), "cpu")
    gradients = {name: each.grad for name, each in model.named_parameters()}
    model.zero_grad()
    ids, targets, mask, doc_ids = (torch.from_numpy(array) for array in batch.arrays)
    hidden = model(ids, doc_ids)
    torch.nn.functional.cross_entropy(model.logits(hidden)[mask], targets[mask].long()).backward()

    assert found.num_trained_tokens == int(mask.sum())
    for name, each in model.named_parameters():
        torch.testing.assert_close(gradients[name], each.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_losses_of_rows_are_those_of_each_row_alone_in_whatever_micro_batches(
    config_of: Callable[[str], ModelConfig], batch: Batch
) -> None:
    model = HybridModel(config_of("AMR"), 256)
    initialize(model, seed=1)
    whole, quarters = (backward(model, batch, count, Ranks(), "cpu").cross_entropy_B for count in (1, 4))
    rows = [model.loss(to_device(batch, "cpu", slice(row, row + 1)))[1].cross_entropy_sum for row in range(4)]

    torch.testing.assert_close(whole, torch.stack(rows))
    torch.testing.assert_close(quarters, torch.stack(rows), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_layers_that_are_run_again_and_casts_of_a_step_change_no_bit_and_count_no_token_twice(
    batch: Batch, dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(is_checkpointed: bool, is_cast: bool) -> list[torch.Tensor]:
        with monkeypatch.context() as patch:
            if not is_cast:
                patch.setattr(weight_casts, "CAST_PARAMETERS", {})
            model = HybridModel(preset("tiny"), 256)
            model.dtype = dtype
            initialize(model, seed=1)
            if is_checkpointed:
                checkpoint_activations(model)
            step = backward(model, batch, 2, Ranks(), "cpu")
        counters = [value for block in model.modules() if isinstance(block, Experts) for value in block.counters()]
        assert step.untouched == ()
        return [step.loss, *counters, *(each.grad for each in model.parameters())]

    plain = found(False, False)
    for other in (found(True, False), found(False, True), found(True, True)):
        assert all(map(torch.equal, plain, other))


def test_a_checkpointed_layer_keeps_its_input_alone(batch: Batch) -> None:
    def kept(is_checkpointed: bool) -> int:
        model = HybridModel(preset("tiny"), 256)
        initialize(model, seed=1)
        if is_checkpointed:
            checkpoint_activations(model)
        rows = describe_rows(*(torch.from_numpy(array) for array in (batch.arrays[0], batch.arrays[3])))
        hidden = torch.zeros(*rows.input_ids_BT.shape, model.config.width, requires_grad=True)
        found: list[torch.Tensor] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda each: found.append(each) or each, lambda each: each):
            model.run_layers(hidden, rows)
        return sum(each.nbytes for each in found)

    num_inputs = 4 * batch.arrays[0].size * 64
    assert kept(True) == 4 * num_inputs
    assert kept(False) > 20 * kept(True)


def test_a_step_that_runs_out_of_memory_leaves_no_gradient(
    model: HybridModel, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError

    backward(model, batch, 1, Ranks(), "cpu")
    monkeypatch.setattr(model, "loss", full)
    with pytest.raises(ShareOutOfMemoryError):
        backward(model, batch, 2, Ranks(), "cpu")

    assert [name for name, each in model.named_parameters() if each.grad is not None] == []


def test_a_registered_term_is_in_the_step_of_all_micro_batches(model: HybridModel, batch: Batch) -> None:
    with LOSS_TERMS.registered(LOGITS_Z_LOSS):
        whole, halves = (backward(model, batch, count, Ranks(), "cpu") for count in (1, 2))

    assert list(whole.terms) == [*LOSS_TERMS.names, "logits_z_loss"]
    torch.testing.assert_close(whole.loss, halves.loss)
    torch.testing.assert_close(whole.terms["logits_z_loss"], halves.terms["logits_z_loss"])
    mean = whole.cross_entropy_sum / whole.num_trained_tokens
    torch.testing.assert_close(whole.loss, mean + sum(whole.terms.values()))
