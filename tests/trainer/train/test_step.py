"""A loss that is no good changes nothing, is written down, and does not last; and what else a step may not touch."""

import math
import random

import numpy as np
import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.certificate import History
from trainer.checkpoint.checkpoint import digest_tensors
from trainer.config.training import training_recipe
from trainer.model.layers import BlockOutput
from trainer.train.determinism import broken_promises
from trainer.train.session import RunInputs
from trainer.train.step import is_loss_spike
from trainer.train.training_state import Training


def history_of(losses: list[float], skipped: tuple[int, ...] = ()) -> History:
    history = History()
    for place, loss in enumerate(losses):
        history.extend(bytes(32), loss, place in skipped, None)
    return history


@pytest.mark.parametrize(
    ("loss", "norm", "history", "expected"),
    [
        (math.nan, 1.0, history_of([]), True),
        (1.0, math.inf, history_of([]), True),
        (50.0, 1.0, history_of([2.0] * 19), False),
        (6.1, 1.0, history_of([2.0] * 20), True),
        (5.9, 1.0, history_of([2.0] * 20), False),
        (6.1, 1.0, history_of([2.0] * 20 + [math.nan, 90.0], skipped=(20, 21)), True),
    ],
)
def test_a_step_is_judged_by_the_recent_good_ones(loss: float, norm: float, history: History, expected: bool) -> None:
    assert is_loss_spike(loss, norm, history, spike_factor=3.0) is expected


def test_a_step_that_is_not_finite_changes_nothing_but_the_record(tiny_store: Store) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    config = training_recipe("tiny").model_copy(update={"max_skipped_steps": 1})
    training = Training(tiny_store, RunInputs(snapshot_id, config, 42))
    training.step(training.loader.batch_at(0, 4))
    with torch.no_grad():
        training.model.embedding_VD[5] = math.nan
    before, state = digest_tensors(training.model.state_dict()), digest_tensors(training.tensors())
    metrics = training.step(training.loader.batch_at(4, 4))

    assert (metrics["skipped"], metrics["not_finite"]) == (True, "weight of embedding_VD")
    assert (training.num_steps, training.position, training.num_skipped_steps) == (2, 8, 1)
    assert digest_tensors(training.model.state_dict()) == before
    assert digest_tensors(training.tensors()) == state
    training.refuse_skipped_steps(is_final=False)
    training.step(training.loader.batch_at(8, 4))
    with pytest.raises(TrainingError, match=r"step 3: its loss is nan, and 2 steps .*: weight of embedding_VD"):
        training.refuse_skipped_steps(is_final=False)


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


def test_no_global_generator_moves_while_training_so_that_none_is_state(tiny_store: Store) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    training = Training(tiny_store, RunInputs(snapshot_id, training_recipe("tiny"), 42), with_held_out=True)
    before = random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()
    training.step(training.loader.batch_at(0, 4))
    training.evaluate(4)
    training.checkpoint()

    assert (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()) == before


def test_a_recipe_without_strict_mode_promises_nothing(tiny_store: Store) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    config = training_recipe("tiny").model_copy(update={"deterministic": False})
    Training(tiny_store, RunInputs(snapshot_id, config, 42))

    assert not torch.are_deterministic_algorithms_enabled()
    assert "`deterministic` is off in the recipe" in broken_promises(config.deterministic)
