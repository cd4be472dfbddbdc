"""A digest of a tensor's bytes depends on each of them and on its place, and on nothing else."""

import pytest
import torch

from kernels.tensor_digest import tensor_digest, tensor_digest_op, tensor_digest_reference

NODE_WORDS = 4096


def mixed(word: int) -> int:
    word = word * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 32) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 29


def digest_of(words: list[int]) -> int:
    """The definition, with whole numbers that have no end."""
    places = [(i + 1) * 0x9E3779B97F4A7C15 % 2**64 for i in range(NODE_WORDS)]
    while True:
        nodes = [words[first : first + NODE_WORDS] for first in range(0, max(1, len(words)), NODE_WORDS)]
        words = [mixed(sum(mixed(word ^ place) for word, place in zip(node, places, strict=False))) for node in nodes]
        if len(words) == 1:
            return words[0]


@pytest.mark.parametrize("num_words", [0, 1, NODE_WORDS, NODE_WORDS + 1, 9 * NODE_WORDS + 3])
def test_a_digest_is_that_of_the_definition_in_whole_numbers(num_words: int) -> None:
    words = torch.randint(-(2**63), 2**63 - 1, (num_words,), generator=torch.Generator().manual_seed(1))

    expected = digest_of([word % 2**64 for word in words.tolist()])
    assert tensor_digest(words) == expected
    assert int(tensor_digest_op(words)) == int(tensor_digest_reference(words))


def test_every_bit_and_every_place_is_in_the_digest() -> None:
    zeros = torch.zeros(2 * NODE_WORDS + 1, dtype=torch.int64)
    places = (0, 1, NODE_WORDS - 1, NODE_WORDS, 2 * NODE_WORDS)
    changed = [
        zeros.index_put((torch.tensor(place),), torch.tensor(1 << bit)) for place in places for bit in (0, 31, 62)
    ]

    assert len({tensor_digest(each) for each in (zeros, *changed)}) == 1 + len(changed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.bool, torch.int64])
def test_equal_bytes_have_one_digest_in_whatever_memory(dtype: torch.dtype) -> None:
    values = torch.arange(7 * 13).remainder(5).view(7, 13).to(dtype)
    copies = (values.clone(), values.t().contiguous().t(), torch.cat((values[:1], values))[1:])

    assert {tensor_digest(each) for each in copies} == {tensor_digest(values)}
    assert tensor_digest(values[1:]) != tensor_digest(values)
    assert isinstance(tensor_digest(values[:0]), int)
