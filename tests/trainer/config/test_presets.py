"""The presets: their layers, and their sizes against the counts that they were chosen for."""

import json

import pytest

from trainer.__main__ import main
from trainer.config.presets import PRESETS, preset
from trainer.model.parameter_count import describe_preset, sizes_of


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
    assert describe_preset(PRESETS[name])["letters"] == letters


def test_the_m2rnn_layers_of_nam56r_are_where_they_were_published() -> None:
    kinds = "".join(preset("nam56r").layer_kinds)

    assert [place for place, letter in enumerate(kinds, 1) if letter == "R"] == [12, 24, 36, 48]


@pytest.mark.parametrize("name", PRESETS.names)
def test_a_preset_is_near_the_counts_that_it_was_made_for(name: str) -> None:
    described = describe_preset(PRESETS[name])
    counted = sizes_of(PRESETS[name].model, PRESETS[name].target.vocabulary_size)

    assert (described["num_parameters"], described["num_active_parameters"]) == counted
    distances = [described[key] for key in ("distance", "active_distance") if described[key] is not None]
    assert distances
    assert all(abs(distance) < 0.1 for distance in distances), distances


def test_the_command_prints_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json", "--vocabulary-size", "1024"]) == 0
    captured = capsys.readouterr()

    answer = json.loads(captured.out)
    assert [entry["name"] for entry in answer] == list(PRESETS.names)
    assert all(entry["vocabulary_size"] == 1024 for entry in answer)
    assert "% of the published 4,730.0 M" in captured.err
    assert main(["presets", "--name", "huge"]) == 1
    assert "model preset huge: it is not registered; expected one of tiny" in capsys.readouterr().err
