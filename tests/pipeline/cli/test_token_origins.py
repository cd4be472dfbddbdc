"""`which` answers for a token of a row, for one that a run has read, and for a file; wrong arguments are refused in words."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import main
from pipeline.store.store import Store
from tests.conftest import WITHDRAWN
from trainer.__main__ import main as train
from trainer.checkpoint.rows_read import RowsRead

RUN = "read"


@pytest.fixture(scope="module")
def root(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of one step."""
    root = tmp_path_factory.mktemp("which") / "store"
    shutil.copytree(tiny_store.root, root)
    line = ["train", "--store", str(root), "--corpus", "tiny", "--run", RUN, "--stop-after", "1", "--quiet"]
    assert train([*line, "--out", str(root / "out")]) == 0
    return root


def _answer(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["which", *arguments, "--store", str(root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def _row_and_slot(root: Path) -> tuple[int, int]:
    """Return a row of the first batch, and a slot with text."""
    store = Store(root)
    read = RowsRead(store, store.ref(f"runs/{RUN}", "latest") or "")
    slots = [slot for slot in range(20, 60) if _is_text(read, slot)]
    return 1, slots[-1]


def _is_text(read: RowsRead, slot: int) -> bool:
    try:
        return read.token(1, 1, slot).token_id >= 16
    except Exception:
        return False


def test_a_token_that_a_run_has_read_is_that_of_its_row_and_its_file_names_the_run(
    capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    row, slot = _row_and_slot(root)
    place = ("--checkpoint", f"{RUN}@1", "--step", "1", "--row", str(row), "--slot", str(slot))
    code, read = _answer(capsys, root, *place)
    assert code == 0
    same = _answer(capsys, root, read["row"], str(read["slot"]), "--corpus", "tiny")[1]
    assert {**same, "read": read["read"]} == read

    document = read["document"]
    code, rows = _answer(capsys, root, document["source"], document["path"], "--corpus", "tiny")
    assert code == 0
    (found,) = rows["snapshots"]
    assert found["document_id"] == document["document_id"]
    placed = {each["row"]: range(each["first_slot"], each["first_slot"] + each["num_slots"]) for each in found["rows"]}
    assert read["slot"] in placed[read["row"]]
    (run,) = found["runs"]
    assert (run["run"], run["step"], run["is_by_ancestor"]) == (RUN, 1, False)
    assert {"row": read["row"], "step": 1, "epoch": 1} in run["reads"]


def test_runs_that_read_a_file_in_an_earlier_snapshot_stay_when_it_is_withdrawn(
    capsys: pytest.CaptureFixture[str], root: Path, rebuilt_store: Store, tmp_path: Path
) -> None:
    where, path, corpus = tmp_path / "store", "src/arena.c", ("--corpus", "tiny")
    shutil.copytree(rebuilt_store.root, where)
    shutil.copytree(root / "objects" / "training", where / "objects" / "training")
    newest, live = Store(root).ref(f"runs/{RUN}", "latest") or "", rebuilt_store.ref("tiny", "live")
    Store(where).move_ref(f"runs/{RUN}", "latest", None, newest, "a test")

    code, rows = _answer(capsys, where, "lantern", path, *corpus)
    assert (code, "collect dropped it: withdrawn" in rows["missing"], rows["left_out"]) == (0, True, [])
    (found,) = rows["snapshots"]
    assert (found["snapshot_id"], found["runs"][0]["run"]) == (live, RUN)
    assert found["runs"][0]["reads"]
    assert [line.startswith(f"by {WITHDRAWN} on ") for line in rows["withdrawn"]] == [True]
    assert _answer(capsys, where, "lantern", path, *corpus, "--of", live or "")[1]["snapshots"] == [found]
    assert _answer(capsys, where, "lantern", path, *corpus, "--of", "last")[0] == 1, "one build, by its name"


def test_answers_for_people_name_bytes_license_and_rules(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    main(["which", "lantern/train/3", "17", "--corpus", "tiny", "--store", str(root)])
    printed = capsys.readouterr().out

    for words in (
        "received:  bytes",
        "license:   MIT (allowed)",
        "lane:      syntax_only",
        "too_large (",
        "no better copy",
    ):
        assert words in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected SOURCE/SPLIT/PACK_ID SLOT, SOURCE PATH, or --checkpoint"),
        (("lantern/train/3",), "found no SLOT and no PATH"),
        (("lantern/train/3", "x"), "found slot 'x'; expected a whole number"),
        (("lantern/train/3", "0000000000017"), "expected a whole number, in digits without leading zeros"),
        (("--checkpoint", "a", "--step", "1"), "expected --checkpoint, --step, --row and --slot"),
        (
            ("--checkpoint", f"{RUN}@1", "--step", "0", "--row", "0", "--slot", "0"),
            "pipeline which: argument --step: found '0'; expected a whole number from 1 to",
        ),
        (("lantern/train/3", "1", "--step", "1"), "expected --checkpoint, --step, --row and --slot"),
        (("lantern", "LICENSE", "--corpus", "tiny"), "it is in no row: it is license evidence"),
        (("lantern", "nope.cpp", "--corpus", "tiny"), "the source contains no such file"),
        (("--checkpoint", f"{RUN}@1", "--step", "2", "--row", "0", "--slot", "0"), "expected 1 to 1"),
    ],
)
def test_wrong_questions_are_refused_in_words(
    capsys: pytest.CaptureFixture[str], root: Path, arguments: tuple[str, ...], words: str
) -> None:
    code, answer = _answer(capsys, root, *arguments)

    assert code in (1, 2)
    assert words in answer["message"]
