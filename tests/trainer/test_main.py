"""The trainer's command line refuses what it cannot do in one sentence, before it makes anything."""

import json
import math
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pipeline.store.store import Store
from trainer.__main__ import main
from trainer.inference.sampling import open_trained

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], tiny_store: Store) -> Ask:
    def call(*arguments: str, store: Path = tiny_store.root) -> tuple[int, Any]:
        code = main([*arguments, "--json", "--store", str(store)])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--seed", "-1"],
        ["--seed", str(2**63)],
        ["--workers", "-1"],
        ["--workers", "1000"],
        ["--stop-after", "0"],
        ["--stop-after", "ten"],
        ["--save-every", "-1"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_json_value(ask: Ask, tmp_path: Path, arguments: list[str]) -> None:
    code, answer = ask("train", *arguments, *(["--out", str(tmp_path / "out")] if arguments else []))

    assert (code, answer["error"]) == (2, "UsageError")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--run", "a/b"], "run 'a/b': it is not a valid name"),
        (["--run", "../x"], "run '../x': it is not a valid name"),
        (["--corpus", "../x"], "corpus '../x': it is not a valid name"),
        (["--snapshot", "live?"], "it is not an id"),
        (["--recipe", "huge"], "expected one of base, nam52, nam56r, small, tiny"),
    ],
)
def test_odd_values_are_refused_by_name(ask: Ask, tmp_path: Path, arguments: list[str], words: str) -> None:
    code, answer = ask("train", "--corpus", "tiny", "--out", str(tmp_path / "out"), *arguments)

    assert code == 1
    assert words in answer["message"]
    assert not (tmp_path / "out").exists()


@pytest.fixture
def copied(tiny_store: Store, tmp_path: Path) -> Path:
    """A copy of the built store, which trainings may write."""
    shutil.copytree(tiny_store.root, tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize("device", ["tpu", "meta", "cuda:", "cuda:x", "cuda:99", "cuda"])
def test_a_device_that_is_not_there_is_named(ask: Ask, copied: Path, tmp_path: Path, device: str) -> None:
    if device in ("cuda", "cuda:") and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    code, answer = ask("train", "--corpus", "tiny", "--out", str(tmp_path / "out"), "--device", device, store=copied)

    assert code == 1
    assert f"device {device}" in answer["message"].replace("'", "")
    assert not (tmp_path / "out").exists()


def test_a_way_of_attention_that_cannot_run_here_is_refused(ask: Ask, copied: Path, tmp_path: Path) -> None:
    line = ["train", "--corpus", "tiny", "--out", str(tmp_path / "out"), "--attention", "flex"]
    code, answer = ask(*line, store=copied)

    assert code == 1
    assert "attention flex: the device is cpu; expected a CUDA device" in answer["message"]
    assert "--attention math" in answer["message"]
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_json_value(ask: Ask, copied: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    out = str(tmp_path / "file" / "out")
    code, answer = ask("train", "--corpus", "tiny", "--stop-after", "1", "--out", out, store=copied)

    assert code == 1
    assert "Not a directory" in answer["message"]


def test_a_second_training_of_one_run_is_refused_and_told_whose_it_is(ask: Ask, copied: Path, tmp_path: Path) -> None:
    with Store(copied).writer("runs/mine", "training mine"):
        code, answer = ask("train", "--corpus", "tiny", "--run", "mine", "--out", str(tmp_path / "out"), store=copied)

    assert code == 1
    assert "run mine: it is being written by training mine" in answer["message"]


@pytest.mark.parametrize("line", ["no json", "[]", "{}", '{"step": "one"}', "\udcff"])
def test_a_broken_line_of_metrics_is_dropped(ask: Ask, copied: Path, tmp_path: Path, line: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "metrics.jsonl").write_text(f"{line}\n", errors="surrogateescape")
    code, _ = ask("train", "--corpus", "tiny", "--stop-after", "1", "--out", str(out), store=copied)

    assert code == 0
    assert [json.loads(text)["step"] for text in (out / "metrics.jsonl").read_text().splitlines()] == [1]


@pytest.mark.parametrize(
    "name", ["parameters-layers.1.safetensors", "optimizer-small.safetensors", "history.safetensors", "state.json"]
)
@pytest.mark.parametrize("damage", ["flipped", "empty", "gone"])
def test_a_damaged_checkpoint_is_refused_and_its_file_named(
    ask: Ask, trained: tuple[Path, str], tmp_path: Path, name: str, damage: str
) -> None:
    root, checkpoint_id = trained
    place = Store(root).read(checkpoint_id).path / name
    content = place.read_bytes()
    try:
        if damage == "gone":
            place.unlink()
        else:
            flipped = bytes([content[0] ^ 1]) + content[1:]
            place.write_bytes(b"" if damage == "empty" else flipped)
        line = ["train", "--corpus", "tiny", "--stop-after", "2", "--out", str(tmp_path / "out"), "--resume", "latest"]
        code, answer = ask(*line, store=root)
    finally:
        place.write_bytes(content)

    assert (code, answer["error"]) == (1, "DamagedError")
    assert name in answer["message"]


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
def test_odd_samples_are_drawn(ask: Ask, trained: tuple[Path, str], arguments: list[str]) -> None:
    root, checkpoint_id = trained
    code, answer = ask("sample", "--checkpoint", checkpoint_id, "--tokens", "2", *arguments, store=root)

    assert code == 0
    assert isinstance(answer["completion"], str)


@pytest.mark.parametrize(
    ("arguments", "words"),
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
    ask: Ask, trained: tuple[Path, str], arguments: list[str], words: str
) -> None:
    root, checkpoint_id = trained
    code, answer = ask("sample", "--checkpoint", checkpoint_id, *arguments, store=root)

    assert code == 1
    assert words in answer["message"]


def test_the_best_of_several_is_the_one_that_its_seed_draws_alone(ask: Ask, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    line = ["sample", "--checkpoint", checkpoint_id, "--tokens", "4", "--seed"]
    _, several = ask(*line, "7", "--best-of", "3", store=root)
    best = several["completions"][0]
    _, alone = ask(*line, str(best["seed"]), store=root)

    assert sorted(found["seed"] for found in several["completions"]) == [7, 8, 9]
    assert best["mean_log_probability"] == max(found["mean_log_probability"] for found in several["completions"])
    assert alone["completions"] == [best]


def test_held_out_rows_are_measured_and_an_untrained_model_is_near_chance(ask: Ask, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    line = ["evaluate", "--checkpoint", checkpoint_id, "--rows", "3", "--middles", "2", "--samples", "1"]
    code, answer = ask(*line, "--tokens", "6", store=root)

    assert code == 0
    assert answer["num_tokens"] > 0
    assert answer["nats_per_token"] == pytest.approx(math.log(1024), abs=0.7)
    assert 1 < answer["num_bytes"] / answer["num_tokens"] < 8, "a token of source spells a few bytes"
    nats = answer["bits_per_byte"] * answer["num_bytes"] * math.log(2)
    assert nats == pytest.approx(answer["nats_per_token"] * answer["num_tokens"])
    assert (answer["num_middles"], answer["exact_middle_fraction"]) == (2, 0.0)
    assert sum(answer["compile_verdicts"].values()) == 1


def test_an_exported_folder_scores_as_the_checkpoint_and_is_never_overwritten(
    ask: Ask, trained: tuple[Path, str], tmp_path: Path
) -> None:
    root, checkpoint_id = trained
    line = ["export", "--checkpoint", checkpoint_id, "--out", str(tmp_path / "model")]
    code, answer = ask(*line, store=root)
    again = ask(*line, store=root)

    assert code == 0
    assert answer["files"] == ["config.json", "model.safetensors", "modeling_sluice.py", "tokenizer.json"]
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


def test_a_prompt_that_is_no_text_is_refused(ask: Ask, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    code, answer = ask("sample", "--checkpoint", checkpoint_id, "--prompt", "\udcff", store=root)

    assert code == 1
    assert "not UTF-8" in answer["message"]


@pytest.fixture(scope="module")
def trained(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with a run of one step, and the id of its checkpoint."""
    root = tmp_path_factory.mktemp("trained") / "store"
    shutil.copytree(tiny_store.root, root)
    assert (
        main(["train", "--store", str(root), "--corpus", "tiny", "--stop-after", "1", "--out", str(root / "out")]) == 0
    )
    (latest,) = (root / "refs" / "runs").glob("*/latest")
    return root, latest.read_text().strip()
