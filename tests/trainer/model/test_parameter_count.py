"""Counts of parameters: by hand, and without memory for the largest preset."""

import torch

from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.parameter_count import count_parameters, sizes_of


def test_tiny_has_the_number_of_parameters_that_its_sizes_say() -> None:
    width, vocabulary = 64, 1024
    memory = 16 * 4
    table_primes = [503, 509, 521, 523, 541, 547, 557, 563, 569, 571, 577, 587, 593, 599, 601, 607]
    attention = width * 64 * 2 + width * 32 * 2
    engram = sum(table_primes) * 4 + 2 * memory * width + 3 * width + 4 * width
    experts = 4 * width + 4 * (3 * width * 128) + 3 * width * 128
    mamba3 = width * (2 * 128 + 2 * 32 + 3 * 4 + 8) + 128 * width + 2 * 32 + 2 * 4 * 32 + 2 * 4
    channels = 2 * 64 + 32
    m2rnn = width * (channels + 32 + 2) + 4 * channels + 2 * 16 * 16 + 2 * 2 + 2 * 16 + 32 + 32 * width
    norms = 5 * width

    blocks = attention + engram + experts + mamba3 + m2rnn + norms

    assert blocks == 226_220
    assert count_parameters(HybridModel(preset("tiny"), vocabulary)) == blocks + vocabulary * width


def test_nam56r_has_the_number_of_parameters_that_its_sizes_say() -> None:
    width, inner, heads, state = 3584, 7168, 112, 64
    experts = 16 * width + 16 * (2 * width * 896) + 2 * width * 1024
    mamba3 = (
        width * (2 * inner + 2 * state + 3 * heads + 16) + inner * width + 2 * state + 2 * heads * state + 2 * heads
    )
    channels = 56 * (64 + 64 + 16)
    m2rnn = width * (channels + 56 * 16 + 56) + 4 * channels + 56 * 16 * 16 + 2 * 56 + 2 * (56 * 16) + 56 * 16 * width
    attention = 2 * width * 56 * 64 + 2 * width * 8 * 64
    found = primes_from(100_000, 16)
    engram = sum(found) * 32 + 2 * (16 * 32) * width + 3 * width + 4 * width
    norms, vocabulary = 53 * width, 65_536

    total = 13 * attention + 22 * experts + 13 * mamba3 + 4 * m2rnn + 2 * engram + norms + 2 * vocabulary * width
    idle = 22 * 12 * (2 * width * 896) + 2 * (sum(found) - 16) * 32

    assert sizes_of(preset("nam56r"), vocabulary) == (total, total - idle)


def primes_from(least: int, count: int) -> list[int]:
    """By a sieve."""
    is_prime = [True] * (least + 1000)
    for factor in range(2, 400):
        is_prime[factor * factor :: factor] = [False] * len(is_prime[factor * factor :: factor])
    return [number for number in range(least, least + 1000) if is_prime[number]][:count]


def test_counting_allocates_nothing_and_agrees_with_an_allocated_model() -> None:
    assert sizes_of(preset("tiny"), 1024).num_parameters == count_parameters(HybridModel(preset("tiny"), 1024))
    with torch.device("meta"):
        assert all(parameter.is_meta for parameter in HybridModel(preset("nam56r"), 65_536).parameters())
