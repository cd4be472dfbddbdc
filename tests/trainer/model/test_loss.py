"""The training loss: cross-entropy of the trained tokens, its terms, and its shares."""

import re

import pytest
import torch
from torch.nn import functional

from pipeline.core.errors import ParamsError
from tests.support.added_to_runs import LOGITS_Z_LOSS
from trainer.model.hybrid import HybridModel
from trainer.model.loss import LOSS_TERMS, LossTerm, TrainingBatch

VOCABULARY, NUM_TOKENS = 60, 27
LENGTHS = [[9, 1, 14], [27]]


@pytest.fixture
def model_of(config_of, shaken):
    """A small shaken model for a pattern."""
    return lambda pattern: shaken(HybridModel(config_of(pattern), VOCABULARY))


def token_ids() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (2, NUM_TOKENS), generator=torch.Generator().manual_seed(0))


def batch_of(ids_BT: torch.Tensor, doc_ids_BT: torch.Tensor) -> TrainingBatch:
    is_last = functional.pad(doc_ids_BT[:, 1:] != doc_ids_BT[:, :-1], (0, 1), value=True)
    return TrainingBatch(ids_BT, ids_BT.roll(-1, dims=1), (doc_ids_BT > 0) & ~is_last, doc_ids_BT)


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
