"""The commands about rows that runs have read, on the store of a run of one step."""

from pathlib import Path

from tests.trainer.cli.conftest import Command


def test_a_token_and_the_reads_of_its_row_name_each_other(command: Command, trained: tuple[Path, str]) -> None:
    root, checkpoint_id = trained
    code, token = command("which", "--checkpoint", "one@latest", "--step", "1", "--row", "2", "--slot", "0", store=root)
    _, ((answer),) = command(
        "reads", token["row"], "--snapshot", token["snapshot_id"], "--checkpoint", "one@1", store=root
    )

    assert (code, token["checkpoint_id"], token["slot"], token["epoch"]) == (0, checkpoint_id, 0, 1)
    assert answer["checkpoint_id"] == checkpoint_id
    pack_id = int(token["row"].rpartition("/")[2])
    read = {"snapshot_id": token["snapshot_id"], "pack_id": pack_id, "step": 1, "epoch": 1}
    assert read in answer["reads"]
    named = command("reads", f"{token['row']}@{token['snapshot_id']}", "--checkpoint", "one@1", store=root)
    assert named == (0, [answer])


def test_rows_that_are_none_or_of_several_sources_are_refused(command: Command, trained: tuple[Path, str]) -> None:
    root, _ = trained
    for rows, words in (
        (["lantern/held_out/1"], "it is not the name of a training row; expected SOURCE/train/PACK_ID"),
        (["lantern/train/x"], "it is not the name of a training row"),
        (["lantern/train/0000000000003"], "it is not the name of a training row"),
        (["lantern/train/1", "odds/train/1"], "they are of sources lantern, odds; expected rows of one source"),
    ):
        code, answer = command("reads", *rows, "--snapshot", "0" * 64, "--checkpoint", "one@1", store=root)
        assert code == 1
        assert words in answer["message"]
    assert (
        "it names no snapshot" in command("reads", "lantern/train/1", "--checkpoint", "one@1", store=root)[1]["message"]
    )
