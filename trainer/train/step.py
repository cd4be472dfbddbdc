"""Gradients of one step: those of its logical micro-batches, added as a tree.

Shapes: B rows of a batch, T slots of a row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pipeline.core.errors import TrainingError
from trainer.compile.activation_checkpointing import counted_once
from trainer.compile.weight_casts import cast_once, take_gradient
from trainer.data.batch import Batch
from trainer.distributed.partial_sums import Room, tree_sum
from trainer.distributed.ranks import Ranks
from trainer.distributed.shards import is_sharded
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel
from trainer.model.loss import LOSS_TERMS, LossMetrics, TrainingBatch


@dataclass(frozen=True)
class StepLoss:
    """Loss of a step: its mean, the summed cross-entropy in nats, and the weighted terms by name."""

    loss: Tensor
    cross_entropy_sum: Tensor
    terms: dict[str, Tensor]
    num_trained_tokens: int
    cross_entropy_B: Tensor
    """The summed cross-entropy of each row of the batch."""
    untouched: tuple[str, ...] = ()
    """The parameters that this rank's share gave no gradient."""
    expert_shares: dict[str, float] = field(default_factory=dict)
    """Shares of empty slots and of overflowing pairs of the experts, over all ranks; empty without experts."""
    peak_bytes: int = 0
    """The most that this rank's GPU held while the gradients were computed; 0 on a CPU."""

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the step that depend on its loss."""
        return {
            "loss": float(self.loss),
            "cross_entropy": float(self.cross_entropy_sum) / max(1, self.num_trained_tokens),
            "num_trained_tokens": self.num_trained_tokens,
            **{name: float(value) for name, value in self.terms.items()},
            **self.expert_shares,
        }


class ShareOutOfMemoryError(Exception):
    """Lack of device memory on some rank; every rank raises it, and no gradient is left."""


def to_device(batch: Batch, device: str, rows: slice = slice(None)) -> TrainingBatch:
    """Return rows of a batch as tensors on a device."""
    tensors = (torch.from_numpy(array[rows]) for array in batch.arrays)
    if device.startswith("cuda"):  # from pinned memory a copy runs beside the kernels before it
        return TrainingBatch(*(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors))
    return TrainingBatch(*(tensor.to(device) for tensor in tensors))


def nats_of_rows(parts: LossMetrics, batch: Batch) -> list[float]:
    """Return the summed cross-entropy of each row of a batch that was computed as a whole."""
    found: list[float] = parts.cross_entropy_M.view(len(batch.input_ids_BT), -1).sum(1).tolist()
    return found


def backward(model: HybridModel, batch: Batch, num_micro_batches: int, ranks: Ranks, device: str) -> StepLoss:
    """Compute the gradients of a batch into the model, the same on every rank, and return its loss.

    Every rank is given the whole batch and computes its share: reading rows is cheap, and all certify the same data. Of a
    sharded model each rank is left its rows of the gradients.
    """
    num_rows = len(batch.input_ids_BT)
    rows = num_rows // num_micro_batches
    num_trained = int(batch.loss_mask_BT.sum())
    divisor = torch.tensor(num_trained, device=device)
    trained = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    names, parameters = zip(*trained, strict=True)
    untouched: list[str] = []
    room = Room.of(device)
    model.zero_grad()

    def leaf(place: int) -> list[Tensor]:
        share = to_device(batch, device, slice(place * rows, (place + 1) * rows))
        loss, parts = model.loss(share, divisor)
        with counted_once(model):
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own signature
        pairs = [(name, each, casts.get(each, each)) for name, each in zip(names, parameters, strict=True)]
        untouched[:] = [name for name, each, cast in pairs if each.grad is None and cast.grad is None]
        fraction = parts.num_trained_tokens / divisor.clamp(min=1)
        terms = [value * fraction for value in parts.terms.values()]
        before, after = place * rows, num_rows - (place + 1) * rows  # a sum with zeros is exact
        nats_B = pad(parts.cross_entropy_M.view(rows, -1).sum(1), (before, after))
        is_second = not is_in_turns and len(share) > 1 and place % 2 == 1  # of two neighbors, added to the first
        gradients = [take_gradient(each, cast, is_second) for _, each, cast in pairs]
        return [*gradients, loss.detach(), parts.cross_entropy_sum, nats_B, *terms]

    share = ranks.share_of(num_micro_batches)
    with cast_once(model) as casts:
        is_in_turns = is_sharded(parameters[0])
        if is_in_turns:
            total = _sum_in_turns(share, leaf, ranks, device)
        else:
            total = _sum_of_shares(model, share, leaf, ranks, room)
    if total is None:
        model.zero_grad()
        raise ShareOutOfMemoryError
    for parameter, gradient in zip(parameters, total, strict=False):
        parameter.grad = gradient
    loss, cross_entropy_sum, nats_B, *terms = total[len(parameters) :]
    experts = [module for module in model.modules() if isinstance(module, Experts)]
    ranks.add_integers([counter for block in experts for counter in (block.load_E, block.overflow, block.empty_slots)])
    by_name = dict(zip(LOSS_TERMS.names, terms, strict=True))
    shares = _expert_shares(experts)
    return StepLoss(loss, cross_entropy_sum, by_name, num_trained, nats_B, tuple(untouched), shares, room.peak)


def _sum_of_shares(
    model: HybridModel, share: range, leaf: Callable[[int], list[Tensor]], ranks: Ranks, room: Room
) -> list[Tensor] | None:
    """Add the shares of each rank, then those sums over the ranks. None on all ranks if one is out of memory."""
    own = _sum_or_nothing(share, leaf, room)
    if own is None and room.has_kept:  # again, with sums in host memory: slower, and the same bits
        model.zero_grad()
        model.balance_experts(0.0)  # which empties the counters
        room.spend()
        own = _sum_or_nothing(share, leaf, room)
    return None if ranks.any_of(own is None) or own is None else ranks.add(own)


def _sum_or_nothing(share: range, leaf: Callable[[int], list[Tensor]], room: Room) -> list[Tensor] | None:
    """Return the sum of a share; None if the device has no memory for it, after all that was held for it is released."""
    try:
        return tree_sum(share, leaf, room)
    except torch.OutOfMemoryError:
        return None


def _sum_in_turns(share: range, leaf: Callable[[int], list[Tensor]], ranks: Ranks, device: str) -> list[Tensor]:
    """Give neighboring shares to the ranks, in turns; the backward pass adds their gradients: the tree's lowest levels."""

    def turn(number: int) -> list[Tensor]:
        parts = leaf(number * ranks.count + ranks.rank)
        num_scalars = 3 + len(LOSS_TERMS)  # the losses of rows are one of them
        return [*parts[:-num_scalars], *ranks.add(parts[-num_scalars:])]

    try:
        return tree_sum(range(len(share)), turn)
    except torch.OutOfMemoryError as error:
        # The others wait in the middle of a layer, so that the step cannot be repeated.
        found = "it does not hold this rank's share of a step"
        raise TrainingError(f"memory of {device} of rank {ranks.rank}", found, "", _SMALLER) from error


def _expert_shares(blocks: Sequence[Experts]) -> dict[str, float]:
    """Return empty slots over all slots, and pairs without a slot over all pairs, of all E layers together."""
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
