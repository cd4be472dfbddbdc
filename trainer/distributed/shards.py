"""Shards of tensors over ranks: a rank holds some rows of a sharded tensor, and all of any other.

What needs whole tensors (a digest, a norm, an orthogonal update, a checkpoint) gathers one at a time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

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


def range_of(tensor: Tensor) -> range:
    """Return the rows of a sharded tensor that this rank holds: as many as others, or fewer if they do not divide evenly."""
    sharded: Any = tensor
    mesh, num_rows = sharded.device_mesh, tensor.shape[0]
    share = -(-num_rows // mesh.size())
    first = min(num_rows, share * mesh.get_local_rank())
    return range(first, min(num_rows, first + share))


def rows_like(value: Tensor, sharded: Tensor) -> Tensor:
    """Return of a tensor that every rank has whole the rows that this rank holds of `sharded`. Nothing is sent."""
    if not is_sharded(sharded):
        return value
    rows = range_of(sharded)
    return value[rows.start : rows.stop]


def slice_like(value: Tensor, sharded: Tensor) -> Tensor:
    """Return a tensor that every rank has whole, sharded like `sharded`. Nothing is sent."""
    from torch.distributed.tensor import DTensor

    own: Any = sharded
    rows = rows_like(value, sharded).to(sharded.device).contiguous()
    return DTensor.from_local(
        rows, own.device_mesh, own.placements, run_check=False, shape=value.shape, stride=value.stride()
    )


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
