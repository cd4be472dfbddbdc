"""What a rank holds of a tensor that is spread over ranks: some of its rows. A tensor that is not spread is held whole.

Everything that is asked of a whole tensor (a digest, a norm, an orthogonal update, a checkpoint) is asked of one at a time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn


def is_sharded(tensor: Tensor) -> bool:
    """Whether each rank holds only some of its rows."""
    return hasattr(tensor, "to_local")


def own_rows(tensor: Tensor) -> Tensor:
    """This rank's rows, sharing memory; all of them where the tensor is whole."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor  # type: ignore[no-any-return]


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor, on every rank: each has to ask for it at the same time."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # type: ignore[no-any-return]


def release(module: nn.Module) -> None:
    """Let go of parameters that a pass without gradients has left gathered: the next step changes what they were made of."""
    if hasattr(module, "reshard"):
        module.reshard()


def range_of(tensor: Tensor) -> range:
    """Which rows of a sharded tensor are this rank's: as many as the others', fewer or none where they do not share evenly."""
    sharded: Any = tensor
    mesh, num_rows = sharded.device_mesh, tensor.shape[0]
    share = -(-num_rows // mesh.size())
    first = min(num_rows, share * mesh.get_local_rank())
    return range(first, min(num_rows, first + share))


def rows_like(value: Tensor, sharded: Tensor) -> Tensor:
    """This rank's rows, as those of another, of a tensor that every rank has whole. Nothing is sent."""
    if not is_sharded(sharded):
        return value
    rows = range_of(sharded)
    return value[rows.start : rows.stop]


def slice_like(value: Tensor, sharded: Tensor) -> Tensor:
    """A tensor that every rank has whole, sharded as another is. Nothing is sent."""
    from torch.distributed.tensor import DTensor

    own: Any = sharded
    rows = rows_like(value, sharded).to(sharded.device).contiguous()
    return DTensor.from_local(
        rows, own.device_mesh, own.placements, run_check=False, shape=value.shape, stride=value.stride()
    )


class Whole(Mapping[str, Tensor]):
    """Tensors by name, in the order of their names, each whole only while it is looked at. Every rank looks at the same ones."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        return whole(self._tensors[name].detach())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._tensors))

    def __len__(self) -> int:
        return len(self._tensors)
