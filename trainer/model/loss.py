"""Training loss: cross-entropy of the trained tokens, plus terms such as the router's z-loss.

To add a term, write a function of ModelOutputs here and add it to LOSS_TERMS: the gradients and the metrics of each step then
include it. The identity of a run names the terms that a program registers.

Shapes: B rows, T tokens of a row, M = B T tokens, D width, V vocabulary.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from kernels.chunked_cross_entropy import cross_entropy_of_tokens
from pipeline.core.declared import type_of
from pipeline.core.errors import ParamsError
from pipeline.core.registry import Registry
from trainer.config.model import ModelConfig


class TrainingBatch(NamedTuple):
    """A batch of packed rows. `loss_mask_BT` is zero where the target is not trained: a piece's last token, padding.

    The last two are present if the recipe has structure; a model with a structure embedding needs both.
    """

    input_ids_BT: Tensor
    target_ids_BT: Tensor
    loss_mask_BT: Tensor
    doc_ids_BT: Tensor
    structure_kind_BT: Tensor | None = None
    dependency_level_BT: Tensor | None = None


class ModelOutputs(NamedTuple):
    """Inputs of a loss term. `layer_penalty` is the sum of the layers' own terms, each a mean over tokens."""

    config: ModelConfig
    hidden_MD: Tensor
    head_VD: Tensor
    targets_M: Tensor
    is_trained_M: Tensor
    layer_penalty: Tensor


class LossTerm(NamedTuple):
    """A weighted mean over the trained tokens of a batch, a scalar, that is added to the cross-entropy."""

    name: str
    compute: Callable[[ModelOutputs], Tensor]
    version: int = 1
    """Version of a term that a program registers: raise it where `compute` gives something else; it is in the run's identity."""


LOSS_TERMS = Registry("loss term", LossTerm("router_z_loss", lambda outputs: outputs.layer_penalty), is_in_runs=True)


class LossMetrics(NamedTuple):
    """Parts of a loss, detached: summed cross-entropy in nats, trained tokens, LOSS_TERMS by name, and the nats of each token."""

    cross_entropy_sum: Tensor
    num_trained_tokens: Tensor
    terms: dict[str, Tensor]
    cross_entropy_M: Tensor


def training_loss(outputs: ModelOutputs, num_divisor_tokens: Tensor | None = None) -> tuple[Tensor, LossMetrics]:
    """Return the mean cross-entropy over the trained tokens plus all terms, and its parts.

    `num_divisor_tokens` is the number of trained tokens of the whole step if this batch is one share of it: the losses of
    all shares then add up to the step's loss. None: this batch's own number.
    """
    cross_entropy_sum, cross_entropy_M = cross_entropy_of_tokens(
        outputs.hidden_MD, outputs.head_VD, outputs.targets_M, outputs.is_trained_M, outputs.config.loss_chunk_tokens
    )
    loss_sum, num_trained = cross_entropy_sum, outputs.is_trained_M.sum()
    terms = {term.name: _value(term, outputs) for term in LOSS_TERMS}
    for value in terms.values():
        loss_sum = loss_sum + value * num_trained
    divisor = (num_trained if num_divisor_tokens is None else num_divisor_tokens).clamp(min=1)
    detached = {name: value.detach() for name, value in terms.items()}
    return loss_sum / divisor, LossMetrics(cross_entropy_sum.detach(), num_trained, detached, cross_entropy_M)


def _value(term: LossTerm, outputs: ModelOutputs) -> Tensor:
    """Compute a term. Raises ParamsError naming one that is not a scalar."""
    value = term.compute(outputs)
    if isinstance(value, Tensor) and value.ndim == 0 and value.is_floating_point():
        return value
    found = (
        f"it is a tensor of {value.dtype}, shape {tuple(value.shape)}" if isinstance(value, Tensor) else type_of(value)
    )
    expected = "a scalar tensor of a floating-point dtype"
    raise ParamsError(f"loss term {term.name}", found, expected, "Correct its `compute`.")
