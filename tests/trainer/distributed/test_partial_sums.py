"""One tree of sums, for any division of its branches among ranks, and where its partial sums wait."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from trainer.bench.allocations import AllocationWatch
from trainer.distributed.partial_sums import Room, tree_sum
from trainer.distributed.ranks import Ranks


def leaf(place: int) -> list[Tensor]:
    return [torch.randn(1000, generator=torch.Generator().manual_seed(place))]


@pytest.mark.parametrize("num_ranks", [1, 2, 4, 8])
def test_the_sum_has_the_same_bits_for_any_number_of_ranks(num_ranks: int) -> None:
    g = [leaf(place)[0] for place in range(8)]
    expected = ((g[0] + g[1]) + (g[2] + g[3])) + ((g[4] + g[5]) + (g[6] + g[7]))
    parts = [tree_sum(Ranks(rank, num_ranks).share_of(8), leaf)[0] for rank in range(num_ranks)]
    while len(parts) > 1:
        parts = [parts[at] + parts[at + 1] for at in range(0, len(parts), 2)]

    assert torch.equal(parts[0], expected)
    assert not torch.equal(parts[0], sum(g[1:], g[0])), "a plain sum would round alike here: the test sees nothing"


class CountedMemory:
    """A device of so many bytes, counted by torch's own allocations on a CPU."""

    def __init__(self, watch: AllocationWatch, num_bytes: int) -> None:
        self.watch, self.num_bytes, self.num_away = watch, num_bytes, 0

    def held(self) -> int:
        return self.watch.held

    def mark(self) -> int:
        return self.watch.mark()

    def capacity(self) -> int:
        return self.num_bytes

    def take_away(self, tensor: Tensor) -> Tensor:
        if tensor.untyped_storage()._cdata not in self.watch._storages:
            return tensor
        self.num_away += 1
        with _disable_current_modes():  # so that the copy is not counted, until something is added to it
            return tensor.clone()

    def release(self) -> None:
        pass


SIZE = 4000
"""Bytes of a leaf's only tensor. While it is computed, some more are held besides."""


def greedy_leaf(place: int) -> list[Tensor]:
    kept, spent = torch.zeros(SIZE // 4), torch.zeros(SIZE // 2)
    kept.copy_(leaf(place)[0] + spent[:1])
    return [kept]


@contextmanager
def device(num_bytes: int) -> Iterator[CountedMemory]:
    with AllocationWatch() as watch:
        yield CountedMemory(watch, num_bytes)


def added(num_places: int) -> Tensor:
    parts = [leaf(place)[0] for place in range(num_places)]
    while len(parts) > 1:
        parts = [parts[at] + parts[at + 1] for at in range(0, len(parts), 2)]
    return parts[0]


@given(levels=st.integers(0, 5), num_sums=st.integers(1, 8))
def test_what_fits_beside_the_next_leaf_stays_and_the_rest_waits_elsewhere(levels: int, num_sums: int) -> None:
    with device(0) as memory:
        room = Room(memory)
        room.compute(greedy_leaf, 0)
        memory.num_bytes = room.peak + num_sums * SIZE
        (found,) = tree_sum(range(2**levels), greedy_leaf, room)

    assert torch.equal(found, added(2**levels))
    assert room.peak <= memory.num_bytes, "a sum stayed for which there was no room"
    if num_sums >= levels:
        assert memory.num_away == 0, "a sum was put away that had fitted"


def test_only_what_a_leaf_takes_is_kept_free_for_it_whatever_was_held_before() -> None:
    with device(100 * SIZE) as memory:
        del_me = torch.zeros(90 * SIZE // 4)  # a step's update, which has ended
        del del_me
        tree_sum(range(8), greedy_leaf, Room(memory))

    assert memory.num_away == 0


def test_a_room_that_is_spent_holds_the_sum_that_is_needed_first_alone() -> None:
    with device(100 * SIZE) as memory:
        room = Room(memory)
        tree_sum(range(8), greedy_leaf, room)
        assert room.has_kept
        room.spend()
        (found,) = tree_sum(range(8), greedy_leaf, room)

    assert torch.equal(found, added(8))
    assert memory.num_away == 3
    assert not room.has_kept
