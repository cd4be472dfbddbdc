"""Determinism: no global generator is drawn from, variables are set by one re-execution, and broken promises are listed."""

import os
import random
import signal

import numpy as np
import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.config.training_config import training_recipe
from trainer.train import determinism
from trainer.train.determinism import (
    ENVIRONMENT_VARIABLES,
    broken_promises,
    choose_device,
    ensure_variables,
    refuse_device,
    require_device,
)
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


def test_no_global_generator_moves_while_training_so_that_none_is_state(tiny_store: Store) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    training = Training(tiny_store, RunInputs(snapshot_id, training_recipe("tiny"), 42), with_held_out=True)
    before = random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()
    training.step(training.loader.batch_at(0, 4))
    training.evaluate(4)
    training.checkpoint()

    assert (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()) == before


@pytest.mark.parametrize(("has_gpu", "device"), [(False, "cpu"), (True, "cuda")])
def test_auto_is_a_gpu_where_there_is_one_and_says_why(
    has_gpu: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)

    assert choose_device("auto") == (device, f"auto: torch sees {'a' if has_gpu else 'no'} GPU")
    assert choose_device("cuda:1") == ("cuda:1", "")


def test_a_recipe_without_strict_mode_promises_nothing(tiny_store: Store) -> None:
    snapshot_id = tiny_store.ref("tiny", "live") or ""
    config = training_recipe("tiny").model_copy(update={"deterministic": False})
    Training(tiny_store, RunInputs(snapshot_id, config, 42))

    assert not torch.are_deterministic_algorithms_enabled()
    assert "`deterministic` is off in the recipe" in broken_promises(config.deterministic)


def test_a_process_is_executed_again_once_with_the_missing_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda path, line, variables: executed.append(variables))
    ensure_variables(["doctor"], {"HOME": "/nowhere"})
    assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT}), "Python starts again meanwhile"
    ensure_variables(["doctor"], executed[0])

    assert len(executed) == 1
    assert executed[0].items() >= {**ENVIRONMENT_VARIABLES, "HOME": "/nowhere"}.items()


def test_a_variable_that_was_not_set_at_the_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinism, "_initial_variables", lambda: {**ENVIRONMENT_VARIABLES, "PYTHONHASHSEED": "7"})

    (reason,) = broken_promises()
    assert "PYTHONHASHSEED was 7 when this process began; 0 was expected" in reason


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:99"])
def test_a_device_that_torch_or_the_driver_does_not_have_is_refused(device: str) -> None:
    for refuse in (require_device, refuse_device):
        with pytest.raises(TrainingError, match=device):
            refuse(device)
