"""Gradients of a step are those of its whole batch, in whatever micro-batches; a step without memory leaves none."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.support.added_to_runs import LOGITS_Z_LOSS
from tests.support.made.made_rows import CONFIG, LAYOUT, sources_of
from tests.trainer.distributed.test_partial_sums import device
from trainer.config.model import ModelConfig
from trainer.config.presets import preset
from trainer.data.batch import Batch
from trainer.data.loader import Loader
from trainer.distributed.partial_sums import Room
from trainer.distributed.ranks import Ranks
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import LOSS_TERMS
from trainer.train.step import ShareOutOfMemoryError, StepLoss, backward, to_device


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


def test_a_step_whose_sums_did_not_fit_is_taken_again_with_the_same_bits(
    model: HybridModel, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state_after(found: StepLoss) -> list[Tensor]:
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        return [found.loss, *gradients, *(each.load_E.clone() for each in model.modules() if isinstance(each, Experts))]

    def full_once(*arguments: object) -> object:
        places.append(len(places))
        if len(places) == 4:
            raise torch.OutOfMemoryError
        return whole_loss(*arguments)

    expected = state_after(backward(model, batch, 4, Ranks(), "cpu"))
    model.balance_experts(0.0)
    places: list[int] = []
    whole_loss = model.loss
    monkeypatch.setattr(model, "loss", full_once)
    with device(2**40) as memory:
        monkeypatch.setattr(Room, "of", lambda device: Room(memory))
        found = state_after(backward(model, batch, 4, Ranks(), "cpu"))

    assert len(places) == 8
    assert len(found) == len(expected)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_a_registered_term_is_in_the_step_of_all_micro_batches(model: HybridModel, batch: Batch) -> None:
    with LOSS_TERMS.registered(LOGITS_Z_LOSS):
        whole, halves = (backward(model, batch, count, Ranks(), "cpu") for count in (1, 2))

    assert list(whole.terms) == [*LOSS_TERMS.names, "logits_z_loss"]
    torch.testing.assert_close(whole.loss, halves.loss)
    torch.testing.assert_close(whole.terms["logits_z_loss"], halves.terms["logits_z_loss"])
    mean = whole.cross_entropy_sum / whole.num_trained_tokens
    torch.testing.assert_close(whole.loss, mean + sum(whole.terms.values()))
