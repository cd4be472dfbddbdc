"""The commands about checkpoints, on the store of a run of one step."""

import json
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.trainer.cli.conftest import Command
from trainer.__main__ import main


def test_a_checkpoint_is_listed_shown_and_equal_to_itself(command: Command, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    _, (entry,) = command("checkpoints", "list", "--run", "one", store=root)
    _, shown = command("checkpoints", "show", checkpoint_id, store=root)
    code, diff = command("checkpoints", "diff", checkpoint_id, checkpoint_id, store=root)

    assert (entry["checkpoint_id"], entry["step"], shown["step"]) == (checkpoint_id, 1, 1)
    assert entry["num_bytes"] == sum(shown["files"].values())
    assert code == 0
    assert all(row["is_equal"] for row in diff["tensors"])
    assert command("checkpoints", "list", "--run", "other", store=root)[0] == 1


def test_a_store_without_checkpoints_or_none_at_all_is_said(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, refusal = command("checkpoints", "list", store=tmp_path / "nowhere")
    assert (code, refusal["error"]) == (1, "MissingError")
    assert "there is no such folder" in refusal["message"]

    Store(tmp_path / "store").prepare()
    assert main(["checkpoints", "list", "--store", str(tmp_path / "store")]) == 0
    assert capsys.readouterr() == ("", f"no checkpoint is in the store {tmp_path / 'store'}\n")


def test_an_exported_checkpoint_is_imported_as_the_same(
    command: Command, trained: tuple[Path, str], tmp_path: Path
) -> None:
    root, checkpoint_id = trained
    _, exported = command("checkpoints", "export", checkpoint_id, str(tmp_path / "a.tar"), store=root)
    _, imported = command("checkpoints", "import", str(tmp_path / "a.tar"), store=tmp_path / "other")

    assert len(exported["sha256"]) == 64
    assert imported == {"checkpoint_id": checkpoint_id}


def test_a_comparison_with_its_own_result_is_equal(command: Command, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    result = root / "out" / "result.json"
    code, answer = command("compare", checkpoint_id, str(result), store=root)

    assert json.loads(result.read_text())["checkpoint_id"] == checkpoint_id
    assert (code, answer["equal"]) == (0, True)


def test_prune_needs_a_limit_and_spares_the_newest(command: Command, trained: tuple[Path, str]) -> None:
    root, _ = trained
    code, answer = command("checkpoints", "prune", "--run", "one", store=root)
    _, pruned = command("checkpoints", "prune", "--run", "one", "--keep-every", "7", "--rehearse", store=root)

    assert code == 1
    assert "prune: no limit is given" in answer["message"]
    assert pruned == {"removed": [], "rehearsal": True}
