"""Shards: a tensor that is not sharded is its own rows and whole, and names are read in their order."""

import torch

from trainer.distributed.shards import Whole, copy_from, gathered_by, is_sharded, own_rows, range_of, rows_like, whole


class Mesh:
    """Three ranks, of which this is one."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def size(self) -> int:
        return 3

    def get_local_rank(self) -> int:
        return self.rank


class Sharded:
    """A tensor of seven rows over the ranks of a mesh, as far as its rows are looked at."""

    def __init__(self, rank: int) -> None:
        self.device_mesh, self.shape = Mesh(rank), (7,)

    def to_local(self) -> None: ...


def test_a_tensor_that_is_not_sharded_is_whole_on_its_rank() -> None:
    tensor = torch.arange(4.0)

    assert not is_sharded(tensor)
    assert own_rows(tensor) is tensor
    assert whole(tensor) is tensor
    assert rows_like(tensor, tensor) is tensor


def test_ranks_hold_all_rows_once_the_last_ones_fewer() -> None:
    assert [range_of(Sharded(rank)) for rank in range(3)] == [range(3), range(3, 6), range(6, 7)]
    assert [rows_like(torch.arange(7), Sharded(rank)).tolist() for rank in range(3)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_tensors_are_read_by_sorted_name_and_without_their_history() -> None:
    found = Whole({"b": torch.ones(2, requires_grad=True), "a": torch.zeros(1)})

    assert (list(found), len(found)) == (["a", "b"], 2)
    assert not found["b"].requires_grad


def test_one_process_owns_all_and_copies_without_sending() -> None:
    target, value = torch.zeros(3), torch.arange(3.0)
    copy_from(None, value, target)

    assert target.tolist() == [0.0, 1.0, 2.0]
    assert gathered_by(0, value) is value
    assert gathered_by(1, value) is None
    assert [range_of(Sharded(0), rank) for rank in range(3)] == [range(3), range(3, 6), range(6, 7)]
