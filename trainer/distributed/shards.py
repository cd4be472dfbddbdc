"""Shards of tensors over ranks: a rank holds some rows of a sharded tensor, and all of any other.

What needs whole tensors on every rank (a digest, a norm, an orthogonal update) gathers one at a time. Of a checkpoint each tensor
has one rank that owns it: the others send it their rows, or get them from it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def is_sharded(tensor: Tensor) -> bool:
    """Return whether each rank holds only some of the rows."""
    return hasattr(tensor, "to_local")


def own_rows(tensor: Tensor) -> Tensor:
    """Return this rank's rows, sharing memory; all rows if the tensor is not sharded."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor  # type: ignore[no-any-return]


def whole(tensor: Tensor) -> Tensor:
    """Return the whole tensor, on every rank: each has to call this at the same time."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # type: ignore[no-any-return]


def release(module: nn.Module) -> None:
    """Release parameters that a pass without gradients left gathered: the next step changes their shards."""
    if hasattr(module, "reshard"):
        module.reshard()


def range_of(tensor: Tensor, rank: int | None = None) -> range:
    """Return the rows of a sharded tensor that a rank holds, this one unless given.

    They are as many as those of others, or fewer if they do not divide evenly.
    """
    sharded: Any = tensor
    mesh, num_rows = sharded.device_mesh, tensor.shape[0]
    share = -(-num_rows // mesh.size())
    first = min(num_rows, share * (mesh.get_local_rank() if rank is None else rank))
    return range(first, min(num_rows, first + share))


def rows_like(value: Tensor, sharded: Tensor) -> Tensor:
    """Return of a tensor that every rank has whole the rows that this rank holds of `sharded`. Nothing is sent."""
    if not is_sharded(sharded):
        return value
    rows = range_of(sharded)
    return value[rows.start : rows.stop]


def gathered_by(owner: int, tensor: Tensor) -> Tensor | None:
    """Return the whole tensor on the rank that owns it, None on the others: each has to call this at the same time."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    if not is_sharded(tensor):
        return tensor if rank == owner else None
    own = own_rows(tensor)
    if rank != owner:
        if len(own):
            dist.send(own.contiguous(), owner)
        return None
    found = torch.empty(tensor.shape, dtype=tensor.dtype, device=own.device)
    for other, part in _parts(tensor, found):
        if other == rank:
            part.copy_(own)
        else:
            dist.recv(part, other)
    return found


def copy_from(owner: int | None, value: Tensor | None, target: Tensor) -> None:
    """Copy a whole tensor into `target`, of a sharded one each rank its rows; without an owner every rank has the value.

    Every rank has to call this at the same time.
    """
    own, is_owner = own_rows(target), owner is None or owner == dist.get_rank()
    if value is not None and is_owner:
        own.copy_(rows_like(value, target))
    if owner is None:
        return
    if not is_sharded(target):
        dist.broadcast(own, owner)
    elif value is None:
        if len(own):
            dist.recv(own, owner)
    else:
        for other, part in _parts(target, value):
            if other != owner:
                dist.send(part.to(own.device).contiguous(), other)


def _parts(sharded: Tensor, value: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield each rank that holds rows of a sharded tensor, and those rows of the whole one."""
    spread: Any = sharded
    for rank in range(spread.device_mesh.size()):
        rows = range_of(sharded, rank)
        if len(rows):
            yield rank, value[rows.start : rows.stop]


class Whole(Mapping[str, Tensor]):
    """Tensors by name, sorted, each gathered only while it is used. Every rank must use the same ones."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        return whole(self._tensors[name].detach())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._tensors))

    def __len__(self) -> int:
        return len(self._tensors)
