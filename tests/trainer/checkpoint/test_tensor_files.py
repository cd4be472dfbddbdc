"""Files of tensors are the same for any number of ranks, and ranks divide them evenly."""

import pytest
import torch

from trainer.checkpoint.tensor_files import (
    OPTIMIZER,
    PARAMETERS,
    describe_tensor,
    digest_tensors,
    digests_of,
    digests_of_descriptions,
    divide,
    owners_of,
    share_of,
    tensor_file,
)
from trainer.distributed.ranks import Ranks

STATE = {
    PARAMETERS: {
        "embedding_VD": torch.arange(4096.0).view(64, 64),
        "layers.0.norm.weight": torch.ones(2048),
        "layers.1.bias": torch.ones(2),
    },
    OPTIMIZER: {"exp_avg/layers.0.norm.weight": torch.zeros(2048), "step/layers.0.norm.weight": torch.tensor(3.0)},
}


def test_a_tensor_is_in_the_file_of_its_layer_or_with_all_small_ones() -> None:
    assert tensor_file(PARAMETERS, "embedding_VD", torch.ones(4096)) == "parameters-embedding_VD.safetensors"
    assert tensor_file(OPTIMIZER, "momentum/layers.11.up_DF", torch.ones(4096)) == "optimizer-layers.11.safetensors"
    assert tensor_file(OPTIMIZER, "step/layers.11.up_DF", torch.ones(1)) == "optimizer-small.safetensors"


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 8, 20])
def test_each_file_has_one_rank_and_no_rank_has_more_than_a_file_beyond_its_share(num_ranks: int) -> None:
    sizes = {f"layers.{number}": 1000 + number for number in range(16)} | {"embedding": 4000, "small": 3}
    owners = divide(sizes, num_ranks)
    loads = [sum(size for name, size in sizes.items() if owners[name] == rank) for rank in range(num_ranks)]

    assert owners.keys() == sizes.keys()
    assert max(loads) - min(loads) <= 4000
    assert max(loads) <= sum(sizes.values()) / num_ranks + 4000
    assert divide(dict(reversed(sizes.items())), num_ranks) == owners


def test_the_shares_of_ranks_are_the_whole_and_give_its_digests() -> None:
    shares = [share_of(STATE, Ranks(0, count)) for count in (1, 3)]
    owners = owners_of(STATE, 3)

    assert {kind: list(found) for kind, found in shares[0].items()} == {kind: sorted(STATE[kind]) for kind in STATE}
    assert list(shares[1][PARAMETERS]) == [name for name, rank in owners[PARAMETERS].items() if rank == 0]
    described = [
        {
            kind: {name: describe_tensor(tensor) for name, tensor in tensors.items() if owners[kind][name] == rank}
            for kind, tensors in STATE.items()
        }
        for rank in range(3)
    ]
    expected = {kind: digest_tensors(tensors) for kind, tensors in STATE.items()}
    assert digests_of_descriptions(described) == digests_of(STATE, Ranks()) == expected


def test_a_copy_of_a_share_does_not_change_with_the_training() -> None:
    tensor = torch.ones(4)
    share = share_of({PARAMETERS: {"a": tensor}}, Ranks())
    tensor.add_(1)

    assert share[PARAMETERS]["a"].tolist() == [1.0] * 4


@pytest.mark.parametrize("change", [lambda one: one + 1, lambda one: one.view(2, 2), lambda one: one.to(torch.float64)])
def test_a_digest_takes_in_values_shape_and_type(change) -> None:  # type: ignore[no-untyped-def]
    one = torch.ones(4)

    assert digest_tensors({"a": one}) == digest_tensors({"a": one.clone()})
    assert digest_tensors({"a": one}) != digest_tensors({"a": change(one)})
    assert digest_tensors({"a": one}) != digest_tensors({"b": one})
