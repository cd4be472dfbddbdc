"""A step that is not finite changes nothing but the record; one out of memory is repeated in smaller micro-batches."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.support.added_to_runs import LOGITS_Z_LOSS, Sign
from trainer.checkpoint.resume_rules import check_resume
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.model.loss import LOSS_TERMS
from trainer.optim.optimizer import ALGORITHMS
from trainer.proof.rerun import start_again
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


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


@pytest.mark.parametrize("changes", [{"num_rows": 3}, {"row_length": 64}, {"vocabulary": "other"}, {"more": 1}])
def test_a_checkpoint_that_describes_other_rows_than_its_snapshot_has_is_refused(
    tiny_store: Store, changes: dict[str, Any]
) -> None:
    training = training_of(tiny_store)
    checkpoint = training.checkpoint()
    training.restore(checkpoint)

    with pytest.raises(TrainingError, match=r"checkpoint of step 0: its rows are .*; expected those of its snapshot"):
        training.restore(replace(checkpoint, packing={**checkpoint.packing, **changes}))


def training_of(store: Store, **changes: Any) -> Training:
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
    small = training_of(tiny_store, micro_batch_rows=1)
    limit_rows(training, most=1)

    for each in (training, small):
        for _ in range(2):
            each.step(each.loader.batch_at(each.position, 4))

    assert training.history.certificate == small.history.certificate
    assert digest_tensors(training.tensors()) == digest_tensors(small.tensors())
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


def test_a_loss_term_and_an_algorithm_of_a_program_are_trained_with_and_in_the_identity_of_the_run(
    tiny_store: Store,
) -> None:
    optimizer = {"peak_learning_rate": 1e-2, "algorithm": {"name": "sign", "settings": {"factor": 0.5}}}
    with LOSS_TERMS.registered(LOGITS_Z_LOSS), ALGORITHMS.registered(Sign()):
        training = training_of(tiny_store, optimizer=optimizer)
        for _ in range(2):
            metrics = training.step(training.loader.batch_at(training.position, 4))
        stored, state = training.checkpoint(), training.optimizer_state()
        again = start_again(tiny_store, stored)
        again.restore(stored)

        assert digest_tensors(again.optimizer_state()) == digest_tensors(state)
    plain = training_of(tiny_store)

    assert metrics["logits_z_loss"] > 0
    assert "total/layers.0.block.query.weight" in state
    assert stored.identity["added"] == ["loss term logits_z_loss", "optimizer algorithm sign"]
    assert stored.identity["config"]["optimizer"]["algorithm"] == optimizer["algorithm"]
    assert "added" not in plain.inputs.identity
    with pytest.raises(TrainingError, match=r"added was .*'loss term logits_z_loss'.*, is now None"):
        check_resume("c" * 64, stored.identity, plain.inputs.identity, ["snapshot_id"])
    with pytest.raises(TrainingError, match=r"re-run: \[\] are registered; expected \['loss term logits_z_loss'"):
        start_again(tiny_store, stored)
