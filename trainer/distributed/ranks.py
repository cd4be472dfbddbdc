"""Ranks of a training, and sums whose order does not depend on their number.

A step's batch is cut into logical micro-batches, a power of two of them. Their gradients are added as a binary tree over
their places: ((g0 + g1) + (g2 + g3)). A rank holds a whole subtree, and the ranks continue the same tree, so that one
process with four micro-batches, two with two and four with one end in the same bits. No collective operation adds
floating-point numbers: ranks exchange tensors pairwise, and an addition of two gives both sides the same.

If parameters are sharded, ranks take neighboring places instead, turn by turn: sums over ranks are then the lowest
levels of the same tree, and what a rank keeps from turn to turn is its own rows (`trainer.model.parallelize`).
"""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from pipeline.core.errors import SluiceError, TrainingError

MAX_SENT_ELEMENTS = 2**26
"""Limit of the numbers that ranks exchange at once: copies of all gradients would not fit beside a large model."""


Made = TypeVar("Made")


@dataclass(frozen=True)
class Ranks:
    """Rank of this process and number of processes."""

    rank: int = 0
    count: int = 1
    group: Any = None
    """The connections over which they talk; None is the first that they made."""

    @classmethod
    @contextmanager
    def joined(cls, device: str = "cpu") -> Iterator["Ranks"]:
        """Join the ranks that torchrun started, until all are done; without torchrun a single one.

        Raises TrainingError if another rank is gone; that rank's own message names the step.
        """
        count = _number_of_ranks()
        if count == 1:
            yield cls()
            return
        timeout = _timeout()
        backend = "cpu:gloo,cuda:nccl" if device == "cuda" and torch.cuda.is_available() else "gloo"
        try:
            if not dist.is_initialized():
                _meet(backend, timeout)
            yield cls(dist.get_rank(), count)
            dist.barrier()
            dist.destroy_process_group()
        except RuntimeError as error:
            if not (isinstance(error, dist.DistError) or "gloo" in str(error).lower()):
                raise
            found = f"another rank has ended or does not respond ({' '.join(str(error).split())[:200]})"
            raise TrainingError(f"rank {os.environ['RANK']} of {count}", found, "all of them", _GONE) from error

    def device_of(self, device: str) -> str:
        """Return the device of this rank: under torchrun `cuda` is the GPU of its number. Raises TrainingError if it is missing."""
        if self.count == 1 or device != "cuda":
            return device
        place, num_gpus = int(os.environ.get("LOCAL_RANK", self.rank)), torch.cuda.device_count()
        if place >= num_gpus:
            found = f"it is number {place} on its machine, where torch sees {num_gpus} GPUs"
            raise TrainingError(f"rank {self.rank}", found, "a GPU for each rank", "Start fewer ranks.")
        torch.cuda.set_device(place)
        return f"cuda:{place}"

    def require_agreement(self, arguments: dict[str, Any]) -> None:
        """Raise TrainingError, on every rank, unless all have the same arguments."""
        require_equal(self.all_gather(arguments), "ranks", _AGREE, self.names())

    def names(self) -> list[str]:
        """Return a name of each rank for messages; it names the host where there are several."""
        hosts = self.all_gather(platform.node())
        return [f"rank {rank}" + (f" on {host}" if len({*hosts}) > 1 else "") for rank, host in enumerate(hosts)]

    def share_of(self, num_micro_batches: int) -> range:
        """Return the logical micro-batches of this rank. Raises TrainingError unless all ranks get as many."""
        if num_micro_batches % self.count:
            found = f"they cannot share {num_micro_batches} logical micro-batches"
            remedy = "Set a smaller --micro-batch-rows, or start fewer ranks."
            raise TrainingError(f"{self.count} ranks", found, "a number of ranks that divides it", remedy)
        share = num_micro_batches // self.count
        return range(self.rank * share, (self.rank + 1) * share)

    def any_of(self, flag: bool) -> bool:
        """Return whether the flag is set on any rank."""
        if self.count == 1:
            return flag
        maximum = torch.tensor(int(flag))
        dist.all_reduce(maximum, dist.ReduceOp.MAX, group=self.group)
        return bool(maximum)

    def broadcast(self, text: str) -> str:
        """Return the text of rank 0, on every rank."""
        texts = [text]
        if self.count > 1:
            dist.broadcast_object_list(texts, 0, group=self.group)
        return texts[0]

    def all_gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order, on every rank."""
        values = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value, group=self.group)
        return values

    def beside(self) -> "Ranks":
        """Return the same ranks with connections of their own, for another thread. All ranks call this at the same time."""
        return replace(self, group=dist.new_group(backend="gloo", timeout=_timeout())) if self.count > 1 else self

    def all_of(self, make: Callable[[], Made]) -> list[Made]:
        """Return what `make` returns on each rank, on every rank. An error on one is raised on all."""
        made: Made | None = None
        error: Exception | None = None
        try:
            made = make()
        except (SluiceError, OSError) as raised:
            if self.count == 1:
                raise
            error = raised
        found = self.all_gather((made, error))
        for _, each in found:
            if each is not None:
                raise each from error
        return [each for each, _ in found]

    def first(self, make: Callable[[], Made]) -> Made:
        """Return what `make` returns on rank 0, which alone calls it, on every rank. Its error is raised on all."""
        return self.all_of(make if self.rank == 0 else lambda: None)[0]  # type: ignore[return-value, arg-type, list-item]

    def add_integers(self, tensors: Sequence[Tensor]) -> None:
        """Add counters over the ranks, in place. Integers: any order is exact."""
        for tensor in tensors if self.count > 1 else ():
            dist.all_reduce(tensor)

    def add(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return the sums over all ranks, as the upper levels of the tree, written over the tensors, some at a time."""
        for some in _together(tensors) if self.count > 1 else ():
            flat = torch.cat([tensor.flatten() for tensor in some])
            level = 1
            while level < self.count:
                flat = flat + self._exchange(flat, self.rank ^ level)
                level *= 2
            for tensor, part in zip(some, flat.split([tensor.numel() for tensor in some]), strict=True):
                tensor.copy_(part.view_as(tensor))
        return tensors

    def _exchange(self, own: Tensor, partner: int) -> Tensor:
        other = torch.empty_like(own)
        both = [dist.P2POp(dist.isend, own, partner), dist.P2POp(dist.irecv, other, partner)]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        return other


def number_and_rank() -> tuple[int, int]:
    """Return how many ranks have joined, and which this is: for what is called without a `Ranks`."""
    return (dist.get_world_size(), dist.get_rank()) if dist.is_initialized() else (1, 0)


def receive_from(owner: int, tensor: Tensor) -> Tensor:
    """Return the owner's tensor on every rank, written over the others'. Every rank has to call this at the same time."""
    if dist.is_initialized():
        dist.broadcast(tensor, owner)
    return tensor


def require_equal(by_rank: Sequence[dict[str, Any]], subject: str, remedy: str, names: Sequence[str] = ()) -> None:
    """Raise TrainingError naming the first entry that is not the same on all ranks, with each one's value."""
    for name, value in by_rank[0].items():
        values = [each.get(name) for each in by_rank]
        if any(other != value for other in values):
            labels = names or [f"rank {rank}" for rank in range(len(values))]
            found = "; ".join(f"{label}: {other!r}" for label, other in zip(labels, values, strict=True))
            raise TrainingError(subject, f"their {name} differ: {found}", f"{value!r} on all", remedy)


def _together(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the tensors in order, as many together as the limit of what is sent at once allows, and at least one."""
    some: list[Tensor] = []
    for tensor in tensors:
        if some and sum(each.numel() for each in (*some, tensor)) > MAX_SENT_ELEMENTS:
            yield some
            some = []
        some.append(tensor)
    if some:
        yield some


def _number_of_ranks() -> int:
    """Return how many processes were started. Raises TrainingError for an incomplete environment of torchrun."""
    size = os.environ.get("WORLD_SIZE", "1")
    missing = [name for name in _OF_TORCHRUN if name not in os.environ] if size != "1" else []
    if missing or not size.isdecimal() or int(size) == 0:
        found = f"WORLD_SIZE is {size!r}" + (f", and {', '.join(missing)} are not set" if missing else "")
        raise TrainingError("ranks", found, f"a number, with {', '.join(_OF_TORCHRUN)}", "Start them by torchrun.")
    return int(size)


def _meet(backend: str, timeout: timedelta) -> None:
    """Join this rank with all others. Raises TrainingError if they do not come in time, or cannot be reached."""
    try:
        dist.init_process_group(backend, timeout=timeout)
    except (RuntimeError, ValueError) as error:
        address, port, rank, size = (os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"))
        found = f"not all came to {address}:{port} within {timeout.total_seconds():.0f} s"
        found += f" ({' '.join(str(error).split())[:200]})"
        raise TrainingError(f"rank {rank} of {size}", found, f"{size} ranks", _MEETING) from error


def _timeout() -> timedelta:
    """Return how long a rank waits for another. The variable is that of the compile policy; torch itself does not read it."""
    name = "TORCH_DISTRIBUTED_DEFAULT_TIMEOUT"
    seconds = os.environ.get(name, "7200")
    if not (seconds.isdecimal() and 0 < int(seconds) < 10**7):
        raise TrainingError(f"variable {name}", f"{seconds!r}", "a whole number of seconds")
    return timedelta(seconds=int(seconds))


_OF_TORCHRUN = ("RANK", "MASTER_ADDR", "MASTER_PORT")
_MEETING = (
    "Start torchrun on every host with the same meeting place and --nnodes, and see that each reaches that address."
)
_GONE = "The rank that ended first says why. Then start all again with --resume latest."
_AGREE = "Start every rank with the same arguments, versions and store."
