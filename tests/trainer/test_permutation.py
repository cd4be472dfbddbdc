import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.permutation import Permutation


@pytest.mark.parametrize("size", [*range(1, 301), *range(301, 5001, 94)])
def test_it_is_a_bijection_at_every_size(size: int) -> None:
    permutation = Permutation(size, key=size * 0x9E37)
    assert sorted(map(permutation, range(size))) == list(range(size))


@pytest.mark.parametrize("size", [4096, 65_537, 99_991])
def test_it_is_a_bijection_at_large_sizes(size: int) -> None:
    assert len({Permutation(size, key=1)(index) for index in range(size)}) == size


@given(st.integers(1, 2**62), st.integers(0, 2**64 - 1), st.data())
def test_far_apart_indices_of_huge_sizes_stay_apart_and_inside(size: int, key: int, data: st.DataObject) -> None:
    indices = data.draw(st.sets(st.integers(0, size - 1), max_size=20))
    places = {Permutation(size, key)(index) for index in indices}
    assert len(places) == len(indices)
    assert all(0 <= place < size for place in places)


def test_keys_give_different_orders_far_from_the_identity() -> None:
    orders = [[Permutation(1000, key)(index) for index in range(1000)] for key in range(8)]
    assert len({tuple(order) for order in orders}) == 8
    for order in orders:
        assert sum(place == index for index, place in enumerate(order)) < 10
        assert 200 < sum(abs(place - index) for index, place in enumerate(order)) / 1000 < 470  # a random one: 333


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(IndexError):
        Permutation(10, key=0)(index)
