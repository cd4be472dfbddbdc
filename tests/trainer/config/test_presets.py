"""The presets: their layers, and their sizes by hand and against the counts that they were chosen for."""

import json

import pytest
import torch

from trainer.__main__ import main
from trainer.config.presets import PRESETS, TARGETS, preset
from trainer.model.hybrid import HybridModel
from trainer.model.parameter_count import count_parameters, describe_preset, sizes_of


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("tiny", {"A": 1, "E": 1, "M": 1, "R": 1}),
        ("small", {"A": 3, "E": 5, "M": 3, "R": 1}),
        ("base", {"A": 6, "E": 12, "M": 6, "R": 0}),
        ("nam52", {"A": 13, "E": 26, "M": 13, "R": 0}),
        ("nam56r", {"A": 13, "E": 22, "M": 13, "R": 4}),
    ],
)
def test_a_preset_has_the_layers_of_its_pattern(name: str, letters: dict[str, int]) -> None:
    assert describe_preset(name)["letters"] == letters


def test_the_m2rnn_layers_of_nam56r_stand_where_they_were_published() -> None:
    kinds = "".join(preset("nam56r").layer_kinds)

    assert [place for place, letter in enumerate(kinds, 1) if letter == "R"] == [12, 24, 36, 48]


def test_nam56r_has_the_number_of_parameters_that_its_sizes_say() -> None:
    width, inner, heads, state = 3584, 7168, 112, 64
    experts = 16 * width + 16 * (2 * width * 896) + 2 * width * 1024
    mamba3 = (
        width * (2 * inner + 2 * state + 3 * heads + 16) + inner * width + 2 * state + 2 * heads * state + 2 * heads
    )
    channels = 56 * (64 + 64 + 16)
    m2rnn = width * (channels + 56 * 16 + 56) + 4 * channels + 56 * 16 * 16 + 3 * 56 + 56 * 16 + 56 * 16 * width
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


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_lies_near_the_counts_that_it_was_made_for(name: str) -> None:
    described = describe_preset(name)

    distances = [described[key] for key in ("distance", "active_distance") if described[key] is not None]
    assert distances
    assert all(abs(distance) < 0.1 for distance in distances), distances


def test_counting_allocates_nothing_and_agrees_with_a_model_that_is_there() -> None:
    assert sizes_of(preset("tiny"), 1024).num_parameters == count_parameters(HybridModel(preset("tiny"), 1024))
    with torch.device("meta"):
        assert all(parameter.is_meta for parameter in HybridModel(preset("nam56r"), 65_536).parameters())


def test_the_command_prints_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json", "--vocabulary-size", "1024"]) == 0
    captured = capsys.readouterr()

    answer = json.loads(captured.out)
    assert [entry["name"] for entry in answer] == list(TARGETS)
    assert all(entry["vocabulary_size"] == 1024 for entry in answer)
    assert "% of the published 4,730.0 M" in captured.err
    assert main(["presets", "--name", "huge"]) == 1
    assert "no preset named 'huge'; expected one of base" in capsys.readouterr().err
