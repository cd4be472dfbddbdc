"""PartialSums: the tree in which the gradients of micro-batches are added, and where its partial sums wait meanwhile.

Where a sum waits changes no bit. On a GPU it stays as long as the next leaf has room beside it: what a leaf takes is measured
while the leaf is computed, so that nothing is copied to host memory and back that would have fitted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

RESERVE_FRACTION = 0.05
"""Share of a device that is left to the driver, to libraries and to what the allocator cannot use. Chosen, not measured."""


class DeviceMemory(Protocol):
    """Memory of a device, as its allocator counts it, in bytes."""

    def held(self) -> int:
        """Return what tensors hold now."""

    def mark(self) -> int:
        """Return the most that they held since the last mark, and set a new one."""

    def capacity(self) -> int:
        """Return what this process may use."""

    def take_away(self, tensor: Tensor) -> Tensor:
        """Return a copy in host memory, or the tensor if it is there already."""

    def release(self) -> None:
        """Give back what the allocator keeps of freed tensors."""


@dataclass(frozen=True)
class GpuMemory:
    """Memory of a GPU: what other processes leave of it."""

    device: str

    def held(self) -> int:
        return torch.cuda.memory_allocated(self.device)

    def mark(self) -> int:
        most = torch.cuda.max_memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        return most

    def capacity(self) -> int:
        free, _ = torch.cuda.mem_get_info(self.device)
        return int((free + torch.cuda.memory_reserved(self.device)) * (1 - RESERVE_FRACTION))

    def take_away(self, tensor: Tensor) -> Tensor:
        if not tensor.is_cuda:
            return tensor
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return copy.copy_(tensor)

    def release(self) -> None:
        torch.cuda.empty_cache()


class Room:
    """Room of a device for the partial sums that wait, by what its leaves have taken so far. A CPU always has room."""

    def __init__(self, memory: DeviceMemory | None = None) -> None:
        self.peak = 0
        """The most that was held while leaves were computed."""
        self.has_kept = False
        """True once a sum has waited on the device that could have waited elsewhere."""
        self._memory, self._is_spent, self._largest_leaf = memory, False, 0

    @classmethod
    def of(cls, device: str) -> "Room":
        """Return the room of a device by torch's name of it."""
        return cls(GpuMemory(device) if device.startswith("cuda") else None)

    def spend(self) -> None:
        """Move every further sum to host memory: what was measured did not suffice."""
        self.has_kept, self._is_spent = False, True
        if self._memory:
            self._memory.release()

    def compute(self, leaf: Callable[[int], list[Tensor]], place: int) -> list[Tensor]:
        """Return a leaf, measured."""
        if self._memory is None:
            return leaf(place)
        self.peak = max(self.peak, self._memory.mark())
        before = self._memory.held()
        tensors = leaf(place)
        most = self._memory.mark()
        self.peak, self._largest_leaf = max(self.peak, most), max(self._largest_leaf, most - before)
        return tensors

    def put_away(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return the tensors where they are, if the next leaf fits beside all that is held now, else copies in host memory."""
        memory = self._memory
        if memory is None:
            return tensors
        if self._is_spent or memory.held() + self._largest_leaf > memory.capacity():
            return [memory.take_away(tensor) for tensor in tensors]
        self.has_kept = True
        return tensors


def tree_sum(places: range, leaf: Callable[[int], list[Tensor]], room: Room | None = None) -> list[Tensor]:
    """Return the sum of `leaf(place)` over a subtree's places, added in place: the tensors of a leaf are the sum's.

    While a leaf is computed, its device holds the partial sum that is needed first, and of the others what it has room for.
    """
    room = room or Room()
    stack: list[tuple[int, list[Tensor]]] = []
    for place in places:
        level, tensors = 0, room.compute(leaf, place)
        while stack and stack[-1][0] == level:
            tensors = _add(stack.pop()[1], tensors)
            level += 1
        if stack:
            stack[-1] = (stack[-1][0], room.put_away(stack[-1][1]))
        stack.append((level, tensors))
    ((_, total),) = stack
    return total


def add_as_tree(parts: Sequence[Tensor]) -> Tensor:
    """Return the sum of a power of two of tensors, ((0 + 1) + (2 + 3)) and so on, written over them."""
    (total,) = tree_sum(range(len(parts)), lambda place: [parts[place]])
    return total


def _add(before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
    """Add each tensor to the one before, where the later one is, and release it: two whole sums at most are in memory."""
    after.reverse()
    for place, one in enumerate(before):
        other = after.pop()
        before[place] = one.to(other.device).add_(other)
    return before
