"""One step: the gradients of its logical micro-batches, added as a tree, and whether they may change anything.

Shapes: B rows of a batch, T slots of a row.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor, nn

from pipeline.core.errors import TrainingError
from trainer.checkpoint.certificate import History
from trainer.data.batch import Batch
from trainer.distributed.ranks import Ranks, tree_sum
from trainer.distributed.shards import is_sharded
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.loss import LOSS_TERMS, TrainingBatch

NUM_RECENT = 20
"""Good steps that a loss is compared with; before there are as many, only numbers that are not finite count."""


@dataclass(frozen=True)
class StepLoss:
    """Loss of a step: its mean, the summed cross-entropy in nats, and the weighted terms by name."""

    loss: Tensor
    cross_entropy_sum: Tensor
    terms: dict[str, Tensor]
    num_trained_tokens: int
    untouched: tuple[str, ...] = ()
    """The parameters that this rank's share gave no gradient."""
    expert_shares: dict[str, float] = field(default_factory=dict)
    """How the experts' slots were filled, over all ranks; nothing where there are no experts."""


class MemorySpentError(Exception):
    """The memory of a rank's device did not suffice for its share; every rank raises it. No gradient is left."""


def to_device(batch: Batch, device: str, rows: slice = slice(None)) -> TrainingBatch:
    """Rows of a batch as tensors on a device."""
    tensors = (torch.from_numpy(array[rows]) for array in batch.arrays)
    if device.startswith("cuda"):  # from pinned memory a copy runs beside the kernels before it
        return TrainingBatch(*(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors))
    return TrainingBatch(*(tensor.to(device) for tensor in tensors))


def backward(model: HybridModel, batch: Batch, num_micro_batches: int, ranks: Ranks, device: str) -> StepLoss:
    """Leave the gradients of a batch in the model, the same on every rank, and return its loss.

    Every rank is given the whole batch and computes its share: reading rows is cheap, and all certify the same data. Of a
    sharded model each rank is left its rows of the gradients.
    """
    rows = len(batch.input_ids_BT) // num_micro_batches
    num_trained = int(batch.loss_mask_BT.sum())
    divisor = torch.tensor(num_trained, device=device)
    names, parameters = zip(*model.named_parameters(), strict=True)
    untouched: list[str] = []

    def leaf(place: int) -> list[Tensor]:
        for parameter in parameters:
            parameter.grad = None
        share = to_device(batch, device, slice(place * rows, (place + 1) * rows))
        loss, parts = model.loss(share, divisor)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own signature
        untouched[:] = [name for name, each in zip(names, parameters, strict=True) if each.grad is None]
        fraction = parts.num_trained_tokens / divisor.clamp(min=1)
        terms = [value * fraction for value in parts.terms.values()]
        return [*map(_gradient, parameters), loss.detach(), parts.cross_entropy_sum, *terms]

    share = ranks.share_of(num_micro_batches)
    total = (
        _sum_in_turns(share, leaf, ranks, device) if is_sharded(parameters[0]) else _sum_of_shares(share, leaf, ranks)
    )
    if total is None:
        for parameter in parameters:
            parameter.grad = None
        raise MemorySpentError
    for parameter, gradient in zip(parameters, total, strict=False):
        parameter.grad = gradient
    loss, cross_entropy_sum, *terms = total[len(parameters) :]
    ranks.add_integers(_counters(model))
    by_name = dict(zip(LOSS_TERMS.names, terms, strict=True))
    return StepLoss(loss, cross_entropy_sum, by_name, num_trained, tuple(untouched), _expert_shares(model))


def is_excursion(loss: float, norm: float, history: History, spike_factor: float) -> bool:
    """Whether a step must not change the weights: not finite, or far above the median of the last good steps."""
    if not torch.isfinite(torch.tensor([loss, norm])).all():
        return True
    places = range(history.num_steps - 1, -1, -1)
    recent = list(islice((history.losses[place] for place in places if not history.skipped[place]), NUM_RECENT))
    return len(recent) == NUM_RECENT and loss > spike_factor * statistics.median(recent)


def _sum_of_shares(share: range, leaf: Callable[[int], list[Tensor]], ranks: Ranks) -> list[Tensor] | None:
    """Each rank adds its own places, then the ranks their sums. None on all where the memory of one did not suffice."""
    try:
        own = tree_sum(share, leaf)
    except torch.OutOfMemoryError:
        own = None
    return None if ranks.any_of(own is None) or own is None else ranks.add(own)


def _sum_in_turns(share: range, leaf: Callable[[int], list[Tensor]], ranks: Ranks, device: str) -> list[Tensor]:
    """In each turn the ranks take neighboring places, and add their gradients on the way back: the tree's lowest levels."""

    def turn(number: int) -> list[Tensor]:
        parts = leaf(number * ranks.count + ranks.rank)
        num_scalars = 2 + len(LOSS_TERMS)
        return [*parts[:-num_scalars], *ranks.add(parts[-num_scalars:])]

    try:
        return tree_sum(range(len(share)), turn)
    except torch.OutOfMemoryError as error:  # the others are waiting in the middle of a layer: there is no way back
        found = "it does not hold this rank's share of a step"
        raise TrainingError(f"memory of {device} of rank {ranks.rank}", found, "", _SMALLER) from error


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _counters(model: nn.Module) -> list[Tensor]:
    experts = [module for module in model.modules() if isinstance(module, Experts)]
    return [counter for block in experts for counter in (block.load_E, block.overflow, block.empty_slots)]


def _expert_shares(model: nn.Module) -> dict[str, float]:
    """Empty slots over all slots, and pairs that found no room over all pairs, of all E layers together."""
    blocks = [module for module in model.modules() if isinstance(module, Experts)]
    if not blocks:
        return {}
    counted = [torch.stack((each.load_E.sum(), each.overflow, each.empty_slots)) for each in blocks]
    num_pairs, num_lost, num_empty = torch.stack(counted).sum(0).tolist()
    num_slots = num_pairs - num_lost + num_empty
    return {
        "expert_padding_fraction": num_empty / max(1, num_slots),
        "expert_overflow_fraction": num_lost / max(1, num_pairs),
    }


_SMALLER = "Resume with a smaller --micro-batch-rows, which forks the numbers, or start more ranks."
