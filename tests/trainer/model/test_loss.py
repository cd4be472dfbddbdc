"""The training loss: cross-entropy of the trained tokens, its terms, and its shares."""

import re

import pytest
import torch
from torch.nn import functional

from pipeline.core.errors import ParamsError
from tests.support.added_to_runs import LOGITS_Z_LOSS
from tests.trainer.model.test_hybrid import LENGTHS, NUM_TOKENS, batch_of, model_of, token_ids
from trainer.model.loss import LOSS_TERMS, LossTerm, TrainingBatch

__all__ = ["model_of"]


def test_a_registered_term_is_in_the_loss_its_gradients_and_its_parts(model_of, doc_ids_from) -> None:
    model, batch = model_of("AEMR"), batch_of(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))
    plain, _ = model.loss(batch)
    plain.backward()
    before = model.embedding_VD.grad.clone()
    model.zero_grad()
    with LOSS_TERMS.registered(LOGITS_Z_LOSS):
        loss, metrics = model.loss(batch)
    loss.backward()

    assert list(metrics.terms) == [*LOSS_TERMS.names, "logits_z_loss"]
    torch.testing.assert_close(loss, plain + metrics.terms["logits_z_loss"])
    assert not torch.equal(model.embedding_VD.grad, before)


def test_the_loss_is_cross_entropy_of_the_trained_tokens_plus_the_z_loss(model_of, doc_ids_from) -> None:
    model, batch = model_of("AEMR"), batch_of(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))

    loss, metrics = model.loss(batch)

    logits_BTV = model.logits(model(batch.input_ids_BT, batch.doc_ids_BT))
    expected = functional.cross_entropy(logits_BTV[batch.loss_mask_BT], batch.target_ids_BT[batch.loss_mask_BT])
    assert metrics.num_trained_tokens == 9 + 1 + 14 + 27 - 4
    torch.testing.assert_close(metrics.cross_entropy_sum / metrics.num_trained_tokens, expected)
    torch.testing.assert_close(loss, expected + metrics.terms["router_z_loss"])
    assert 0 < metrics.terms["router_z_loss"] < 0.1


def test_without_experts_there_is_no_penalty(model_of, doc_ids_from) -> None:
    _, metrics = model_of("AMR").loss(batch_of(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS)))

    assert metrics.terms["router_z_loss"] == 0


def test_shares_of_a_step_add_up_to_its_loss(model_of, doc_ids_from) -> None:
    model, batch = model_of("AMR"), batch_of(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))

    whole, metrics = model.loss(batch)
    shares = [
        model.loss(TrainingBatch(*(tensor[row : row + 1] for tensor in batch[:4])), metrics.num_trained_tokens)[0]
        for row in range(2)
    ]

    torch.testing.assert_close(sum(shares), whole)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "None"),
        (0.5, "float"),
        (torch.zeros(3), "it is a tensor of torch.float32, shape (3,)"),
        (torch.tensor(1), "it is a tensor of torch.int64, shape ()"),
    ],
)
def test_a_term_that_is_no_scalar_is_refused_by_its_name(model_of, doc_ids_from, value, found) -> None:
    model, batch = model_of("A"), batch_of(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))
    with (
        LOSS_TERMS.registered(LossTerm("wrong", lambda outputs: value)),
        pytest.raises(
            ParamsError, match=re.escape(f"loss term wrong: {found}; expected a scalar tensor of a floating-point")
        ),
    ):
        model.loss(batch)
