"""`config` prints a training, what differs and the schema of its file; options and files of a training end in the same run."""

import json
from pathlib import Path

from pipeline.store.store import Store
from tests.trainer.cli.conftest import Command
from trainer.config.training_config import training_recipe


def test_config_prints_a_recipe_with_what_is_set_and_what_differs_from_another(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[optimizer]\nmuon = "none"\nweight_decay = 0.2\n')
    line = [
        "config",
        "--recipe",
        str(tmp_path / "mine.toml"),
        "--set",
        "optimizer.schedule=linear",
        "--dtype",
        "bfloat16",
    ]
    code, answer = command(*line)
    assert code == 0
    assert (answer["config"]["dtype"], answer["config"]["optimizer"]["muon"]) == ("bfloat16", None)

    code, answer = command(*line, "--diff", "tiny")
    assert {name: now for name, (_, now) in answer["differences"].items() if now is not None} == {
        "dtype": "bfloat16",
        "optimizer.schedule": "linear",
        "optimizer.weight_decay": 0.2,
    }
    assert answer["on_a_resume"]["optimizer.weight_decay"] == "refused"
    assert command("config", "--set", "batch_rows=8", "--diff", "tiny")[1]["on_a_resume"] == {"batch_rows": "forking"}


def test_config_prints_the_schema_of_a_recipe(command: Command) -> None:
    code, schema = command("config", "--schema")

    assert code == 0
    assert {"base", "model", "optimizer", "batch_rows"} <= schema["properties"].keys()
    assert schema["$defs"]["OptimizerConfig"]["additionalProperties"] is False


def test_a_file_an_option_and_its_short_form_are_one_run(command: Command, copied: Store, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text('base = "tiny"\nbatch_rows = 2\n')
    ways = [["--recipe", str(tmp_path / "tiny.toml")], ["--set", "batch_rows=2"], ["--batch-rows", "2"]]
    line = ["train", "--corpus", "tiny", "--stop-after", "1", "--out", str(tmp_path / "out")]
    answers = [command(*line, *way, "--resume", "latest", store=copied.root)[1] for way in ways]

    assert len({answer["run"] for answer in answers}) == 1
    assert [answer["unchanged"] for answer in answers] == [False, True, True]
    report = json.loads((tmp_path / "out" / "result.json").read_text())
    expected = training_recipe("tiny").model_copy(update={"batch_rows": 2})
    assert report["config"] == expected.model_dump(mode="json")
    assert report["recipe"] == "tiny"
