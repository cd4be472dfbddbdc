"""A step for which the memory does not suffice is done again in smaller pieces of the same data, and that is recorded."""

import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import digest_tensors
from trainer.config.training import TrainingConfig, training_recipe
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


def training_of(store: Store, **changes: int) -> Training:
    snapshot_id = store.ref("tiny", "live") or ""
    config = TrainingConfig.model_validate({**dict(training_recipe("tiny")), **changes})
    return Training(store, RunInputs(snapshot_id, config, 42))


def limit_rows(training: Training, most: int) -> None:
    """Let the last layer run out of memory where a micro-batch has more rows."""

    def refuse(module: torch.nn.Module, inputs: tuple) -> None:
        if len(inputs[0]) > most:
            raise torch.OutOfMemoryError("planted")

    training.model.layers[-1].register_forward_pre_hook(refuse)


def test_a_step_without_the_memory_is_the_step_of_smaller_micro_batches(tiny_store: Store) -> None:
    training = training_of(tiny_store)
    asked = training_of(tiny_store, micro_batch_rows=1)
    limit_rows(training, most=1)

    for each in (training, asked):
        for _ in range(2):
            each.step(each.loader.batch_at(each.position, 4))

    assert training.history.certificate == asked.history.certificate
    assert digest_tensors(training.tensors()) == digest_tensors(asked.tensors())
    assert [fork["fields"] for fork in training.forks] == [
        {"config.micro_batch_rows": [None, 2]},
        {"config.micro_batch_rows": [2, 1]},
    ]
    assert training.checkpoint().identity["config"]["micro_batch_rows"] == 1
    assert "out of memory" in training.messages[0]


def test_a_row_that_does_not_fit_alone_is_refused(tiny_store: Store) -> None:
    training = training_of(tiny_store)
    limit_rows(training, most=0)

    with pytest.raises(TrainingError, match="a micro-batch of 1 rows, which cannot be halved"):
        training.step(training.loader.batch_at(0, 4))
