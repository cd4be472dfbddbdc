"""Sharding of parameters over ranks (FSDP2): each holds some rows of every parameter, its gradient and its optimizer state.

A layer's parameters are gathered when it runs and released after it. Compile a model first, then shard it: a graph that was
traced over gathered parameters holds for any number of ranks.

Gradients are added by `trainer.distributed.ranks`'s tree and no other: ranks exchange shares of gradients, and each
adds those of its own rows in the order of the ranks. So a sharded training has the bits of one that is not.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

from pipeline.core.errors import TrainingError
from trainer.config.choices import CompileMode
from trainer.distributed.partial_sums import add_as_tree
from trainer.distributed.ranks import Ranks
from trainer.model.hybrid import HybridModel


def shard(model: HybridModel, ranks: Ranks, device: str = "cpu") -> None:
    """Shard each layer, then what is left, over all ranks, in place, a layer at a time on the device. Values stay as they are."""
    mesh = init_device_mesh(device.partition(":")[0], (ranks.count,))
    for part in (*model.layers, model):
        fully_shard(part, mesh=mesh)
        part.set_custom_reduce_scatter(TreeReduceScatter())  # type: ignore[attr-defined, operator]
        # The shares of a step's loss add up: nothing is divided.
        part.set_gradient_divide_factor(1.0)  # type: ignore[attr-defined, operator]
        part.set_force_sum_reduction_for_comms(True)  # type: ignore[attr-defined, operator]
    register_fsdp_forward_method(model, "loss")


def require_shardable(ranks: Ranks, mode: CompileMode) -> None:
    """Raise TrainingError for a single rank, or if the hooks of sharding would be inside a graph."""
    if ranks.count == 1:
        raise TrainingError("--shard", "there is one rank", "several, to share the parameters", _START)
    if mode is CompileMode.BUDGETED:
        raise TrainingError(
            "--shard",
            "in `budgeted` all layers are one frame, and each layer's parameters are gathered inside of it",
            "a frame a layer",
            "Train with --compile fullgraph or off.",
        )


class TreeReduceScatter:
    """Each rank's share of the sum of all ranks' inputs, added in the order of the ranks as a binary tree."""

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Allocate an input or an output."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        """Write this rank's share. `op` is always a sum."""
        shares = torch.empty_like(input_tensor)
        dist.all_to_all_single(shares, input_tensor, group=group)
        output_tensor.copy_(add_as_tree(shares.chunk(group.size())))


_START = (
    "Start it by torchrun, as docs/reproducibility.md shows, or leave --shard out: one rank holds everything anyway."
)
