"""A group of commands, a model and a training recipe are declared once: registered at run time, the command line has them."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.store import Store
from tests.trainer.cli.conftest import Command
from trainer.__main__ import main
from trainer.cli.arguments import add_command
from trainer.cli.command_groups import COMMAND_GROUPS, CommandGroup
from trainer.config.presets import PRESETS, Preset, preset
from trainer.config.training_config import TRAINING_RECIPES, TrainingRecipe, training_recipe


def count_layers(options: argparse.Namespace) -> dict[str, int]:
    return {"num_layers": preset(options.name).depth}


def add_made_commands(commands: Any) -> None:
    add_command(commands, "layers", count_layers, "count layers", needs_store=False).add_argument("--name")


MADE = CommandGroup("made", add_made_commands)
MODEL = Preset("made", preset("tiny").model_copy(update={"pattern": "AE", "depth": 2}))
RECIPE = TrainingRecipe("made", training_recipe("tiny").model_copy(update={"model": MODEL.model, "batch_rows": 2}))


def test_a_registered_group_is_in_help_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["layers", "--name", "small", "--json"]
    assert main(line) == 2
    capsys.readouterr()
    with COMMAND_GROUPS.registered(MADE):
        with pytest.raises(SystemExit):
            main(["--help"])
        assert "count layers" in capsys.readouterr().out
        assert main(line) == 0
    assert json.loads(capsys.readouterr().out) == {"num_layers": 12}


def test_a_group_whose_command_exists_is_refused_by_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    group = CommandGroup("other", lambda commands: add_command(commands, "train", count_layers, "again") and None)
    with COMMAND_GROUPS.registered(group):
        assert main(["doctor", "--json"]) == 1
    assert "conflicting subparser: train. Rename what it declares twice" in capsys.readouterr().err


def test_a_registered_model_is_described_and_a_registered_recipe_trains_it(
    command: Command, copied: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["train", "--corpus", "tiny", "--recipe", "made", "--run", "made", "--stop-after", "2", "--out"]
    code, refused = command(*line, str(tmp_path / "before"), store=copied.root)
    assert (code, refused["message"].partition(";")[0]) == (1, "training recipe made: it is not registered")

    with PRESETS.registered(MODEL), TRAINING_RECIPES.registered(RECIPE):
        code, (described,) = command("presets", "--name", "made")
        assert (code, described["letters"], described["target_parameters"]) == (
            0,
            {"A": 1, "E": 1, "M": 0, "R": 0},
            None,
        )
        with pytest.raises(SystemExit):
            main(["train", "--help"])
        assert "nam56r, made" in " ".join(capsys.readouterr().out.split())
        code, trained = command(*line, str(tmp_path / "out"), store=copied.root)
    report = json.loads((tmp_path / "out" / "result.json").read_text())

    assert (code, report["recipe"], report["steps"]) == (0, "made", 2)
    assert report["config"]["model"]["pattern"] == "AE"
    listed = command("checkpoints", "list", "--run", "made", store=copied.root)[1]
    assert trained["checkpoint_id"] in json.dumps(listed)
