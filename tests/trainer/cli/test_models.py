"""`sample`, `evaluate` and `export` on the checkpoint of a run of one step."""

import json
import math
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pipeline.store.log import Holding
from pipeline.store.store import Store
from tests.trainer.cli.conftest import Command
from trainer.__main__ import main
from trainer.inference.sampling import open_trained


@pytest.mark.parametrize(
    "arguments",
    [
        ["--temperature", "1e-300"],
        ["--temperature", "1e30", "--top-k", "3", "--top-p", "0.5"],
        ["--prompt", ""],
        ["--prompt-ids", "1,17,33", "--best-of", "2"],
        ["--prompt-ids", ""],
    ],
)
def test_odd_samples_are_drawn(command: Command, trained: tuple[Path, str], arguments: list[str]) -> None:
    root, checkpoint_id = trained
    code, answer = command("sample", "--checkpoint", checkpoint_id, "--tokens", "2", *arguments, store=root)

    assert code == 0
    assert isinstance(answer["completion"], str)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt-ids", "1,x"], "whole numbers, separated by commas"),
        (["--prompt-ids", "1,1024"], "id 1024 is not in the vocabulary; expected 0 to 1023"),
        (["--prompt-ids", "-3"], "id -3 is not in the vocabulary"),
        (["--tokens", "1000"], "expected at most 128 together"),
        (["--top-p", "1.5"], "--top-p: 1.5; expected a probability"),
        (["--seed", str(2**63 - 1), "--best-of", "2"], "at most 2^63 - 1"),
    ],
)
def test_odd_prompts_and_draws_are_refused_by_name(
    command: Command, trained: tuple[Path, str], arguments: list[str], message: str
) -> None:
    root, checkpoint_id = trained
    code, answer = command("sample", "--checkpoint", checkpoint_id, *arguments, store=root)

    assert code == 1
    assert message in answer["message"]


def test_the_best_of_several_is_the_one_that_its_seed_draws_alone(command: Command, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    line = ["sample", "--checkpoint", checkpoint_id, "--tokens", "4", "--seed"]
    _, several = command(*line, "7", "--best-of", "3", store=root)
    best = several["completions"][0]
    _, alone = command(*line, str(best["seed"]), store=root)

    assert sorted(found["seed"] for found in several["completions"]) == [7, 8, 9]
    assert best["mean_log_probability"] == max(found["mean_log_probability"] for found in several["completions"])
    assert alone["completions"] == [best]


def test_held_out_rows_are_measured_and_an_untrained_model_is_near_chance(
    command: Command, trained: tuple[Path, str]
) -> None:
    root, checkpoint_id = trained
    line = ["evaluate", "--checkpoint", checkpoint_id, "--rows", "3", "--middles", "2", "--samples", "1"]
    code, answer = command(*line, "--tokens", "6", "--by", "source", store=root)

    assert code == 0
    alone = {name: answer[name] for name in ("bits_per_byte", "nats_per_token", "num_bytes", "num_tokens")}
    assert answer["by"] == {"source": {"heron": alone}}
    assert answer["num_tokens"] > 0
    assert answer["nats_per_token"] == pytest.approx(math.log(1024), abs=0.7)
    assert 1 < answer["num_bytes"] / answer["num_tokens"] < 8, "a token of source spells a few bytes"
    nats = answer["bits_per_byte"] * answer["num_bytes"] * math.log(2)
    assert nats == pytest.approx(answer["nats_per_token"] * answer["num_tokens"])
    assert (answer["num_middles"], answer["exact_middle_fraction"]) == (2, 0.0)
    assert sum(answer["compile_verdicts"].values()) == 1


def test_an_exported_folder_scores_as_the_checkpoint_and_is_never_overwritten(
    command: Command, trained: tuple[Path, str], tmp_path: Path
) -> None:
    root, checkpoint_id = trained
    line = ["export", "--checkpoint", checkpoint_id, "--out", str(tmp_path / "model")]
    code, answer = command(*line, store=root)
    again = command(*line, store=root)

    assert code == 0
    described = ["config.json", "generation_config.json", "model.safetensors", "modeling_sluice.py"]
    assert answer["files"] == [*described, "tokenizer.json", "tokenizer_config.json"]
    assert again[0] == 1
    assert "it exists already" in again[1]["message"]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    module = runpy.run_path(str(tmp_path / "model" / "modeling_sluice.py"))
    theirs = module["SluiceForCausalLM"](module["SluiceConfig"](config["model"], config["vocab_size"]))
    theirs.load_state_dict(load_file(tmp_path / "model" / "model.safetensors"))
    ours = open_trained(Store(root), checkpoint_id).model
    ids_BT = torch.arange(40).reshape(2, 20)
    expected_BTV = ours.logits(ours(ids_BT, torch.ones_like(ids_BT)))
    torch.testing.assert_close(theirs(ids_BT).logits, expected_BTV, rtol=1e-4, atol=1e-5)


def test_a_prompt_that_is_not_text_is_refused(command: Command, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    code, answer = command("sample", "--checkpoint", checkpoint_id, "--prompt", "\udcff", store=root)

    assert code == 2
    assert "not UTF-8" in answer["message"]


@pytest.fixture
def with_withdrawn(trained: tuple[Path, str]) -> Iterator[str]:
    """The id of a checkpoint of which a snapshot holds what is withdrawn, while the test runs."""
    store = Store(trained[0])
    store.log_withdrawal(
        "lantern/src/**", "its owner asked", holding=Holding(frozenset({store.ref("tiny", "live") or ""}))
    )
    yield trained[1]
    store.log_withdrawal("lantern/src/**", "a mistake", is_undone=True)


@pytest.mark.parametrize("line", [("export", "--out", "--checkpoint"), ("checkpoints", "export")], ids=" ".join)
def test_weights_of_withdrawn_data_are_not_handed_on(
    command: Command, trained: tuple[Path, str], with_withdrawn: str, line: tuple[str, ...], tmp_path: Path
) -> None:
    out = str(tmp_path / "handed")
    arguments = [*line[:-1], out, line[-1], with_withdrawn] if line[0] == "export" else [*line, with_withdrawn, out]
    code, answer = command(*arguments, store=trained[0])
    assert code == 1
    assert "which shaped its weights, holds what lantern/src/** withdraws" in answer["message"]
    assert "Train again on a snapshot that was built since, or take the withdrawal back" in answer["message"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line", [("sample", "--tokens", "1"), ("evaluate", "--rows", "1", "--middles", "0", "--samples", "0")]
)
def test_what_reads_weights_of_withdrawn_data_warns(
    trained: tuple[Path, str], with_withdrawn: str, line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*line, "--checkpoint", with_withdrawn, "--store", str(trained[0])]) == 0
    warnings = [each for each in capsys.readouterr().err.splitlines() if each.startswith("warning: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"warning: checkpoint {with_withdrawn[:12]}: snapshot ")
    assert "holds what lantern/src/** withdraws" in warnings[0]
