"""The keyed hash: a bijection at every size, another order for each key."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.keyed_hash import Permutation, mix, permute


def order_of(permutation: Permutation) -> list[int]:
    return permute([permutation], np.zeros(permutation.size, np.int64), np.arange(permutation.size)).tolist()


def walk(index: int, size: int, keys: list[int]) -> int:
    """The same in whole numbers of any size, index by index."""
    left_size = isqrt(size - 1) + 1
    right_size = -(-size // left_size)
    while True:
        left, right = divmod(index, right_size)
        for even, odd in zip(keys[::2], keys[1::2], strict=True):
            left = (left + mix(even ^ right)) % left_size
            right = (right + mix(odd ^ left)) % right_size
        index = left * right_size + right
        if index < size:
            return index


def test_it_is_a_bijection_at_every_size_up_to_5000() -> None:
    for first in range(1, 5001, 250):
        permutations = [Permutation(size, key=size * 0x9E37) for size in range(first, first + 250)]
        sizes = np.arange(first, first + 250)
        which, starts = np.repeat(np.arange(250), sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = permute(permutations, which, np.arange(sizes.sum()) - starts)
        assert (np.bincount(places + starts, minlength=sizes.sum()) == 1).all()


@pytest.mark.parametrize("size", [65_537, 999_983])
def test_it_is_a_bijection_at_large_sizes(size: int) -> None:
    assert len(set(order_of(Permutation(size, key=1)))) == size


@given(st.integers(1, 2**62 - 1), st.integers(0, 2**64 - 1), st.data())
def test_far_apart_indices_of_huge_sizes_stay_apart_and_inside(size: int, key: int, data: st.DataObject) -> None:
    indices = data.draw(st.sets(st.integers(0, size - 1), max_size=20))
    permutation = Permutation(size, key)
    places = {permutation(index) for index in indices}
    assert len(places) == len(indices)
    assert all(0 <= place < size for place in places)
    assert places == {walk(index, size, permutation.round_keys) for index in indices}


def test_keys_give_different_orders_far_from_the_identity() -> None:
    orders = [order_of(Permutation(1000, key)) for key in range(8)]
    assert len({tuple(order) for order in orders}) == 8
    for order in orders:
        assert sum(place == index for index, place in enumerate(order)) < 10
        assert 200 < sum(abs(place - index) for index, place in enumerate(order)) / 1000 < 470  # a random one: 333


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(IndexError):
        Permutation(10, key=0)(index)
