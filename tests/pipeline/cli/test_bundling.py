"""A snapshot goes from store to store by two commands, with its card, and what is wrong is said in a sentence."""

import io
import json
import shlex
import shutil
import tarfile
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.store.store import Store
from tests.conftest import WITHDRAWN


def test_a_snapshot_goes_from_store_to_store(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, live = str(tmp_path / "tiny.bundle"), tiny_store.ref("tiny", "live") or ""
    answers = []
    for line in (["export", file, "--corpus", "tiny", "--store", str(tiny_store.root)], ["import", file]):
        assert (
            main(["snapshot", *line, *([] if "--store" in line else ["--store", str(tmp_path / "other")]), "--json"])
            == 0
        )
        answers.append(json.loads(capsys.readouterr().out))

    assert answers[0]["digest"] == answers[1]["digest"]
    assert Store(tmp_path / "other").ref("imported", "candidate") == live
    with tarfile.open(file) as tar:
        card = (tar.extractfile("card.md") or io.BytesIO()).read().decode()
    assert f"# Snapshot `{live[:12]}`" in card
    assert "proved" not in card, "a date would be another one on another machine"


def test_rows_alone_say_what_can_be_done_with_them(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "other[red]")]
    file = str(tmp_path / "rows.bundle")
    assert main(["snapshot", "export", file, "--corpus", "tiny", "--rows-only", "--store", str(tiny_store.root)]) == 0
    assert main(["snapshot", "import", file, "--corpus", "rows", *store]) == 0
    train = shlex.join(["train", "--snapshot", "candidate", "--out", "FOLDER", "--corpus", "rows", *store])
    assert f"`python -m trainer {train}`" in " ".join(capsys.readouterr().err.split())
    for line in (["card"], ["why", "lantern", "src/glob.cc", "--of", "candidate"], ["promote"]):
        named = ["--snapshot", "candidate"] if line == ["card"] else []
        assert main([*line, *named, "--corpus", "rows", *store]) == 1
        assert "import its whole bundle" in " ".join(capsys.readouterr().err.split())

    monkeypatch.setattr("sys.stdin", io.StringIO("Ada Example"))
    assert main(["withdraw", "--author", *store]) == 1
    assert "1 snapshots are here without the files that their rows are of" in " ".join(capsys.readouterr().err.split())
    assert main(["withdraw", f"sha256:{'0' * 64}", *store]) == 0
    assert main(["withdraw", "--erase", *store]) == 0
    assert "\nmay still hold a copy: snapshot" in capsys.readouterr().out
    exporting = [
        "export",
        "megatron",
        "--out",
        str(tmp_path / "out"),
        "--snapshot",
        "candidate",
        "--corpus",
        "rows",
        *store,
    ]
    for lines in ([exporting], [["snapshot", "import", file, *store]]):
        assert [main(line) for line in lines] == [1]
        words = " ".join(capsys.readouterr().err.split())
        assert "nothing in the store tells whether it holds what sha256:00" in words
        assert "Import its whole bundle, which tells" in words
    whole = str(tmp_path / "whole.bundle")
    assert main(["snapshot", "export", whole, "--corpus", "tiny", "--store", str(tiny_store.root)]) == 0
    assert main(["snapshot", "import", whole, "--rows-only", *store]) == 0
    assert main(exporting) == 0, "the whole bundle has told"


def test_rows_alone_are_handed_on_with_a_card_that_says_where_the_evidence_is(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, live = [str(tmp_path / f"{name}.bundle") for name in ("first", "again")], tiny_store.ref("tiny", "live")
    stores = [tiny_store.root, tmp_path / "second", tmp_path / "third"]
    at = [["--corpus", "tiny", "--store", str(root)] for root in stores]
    for place, file in enumerate(files):
        named = ["--snapshot", "candidate" if place else "live"]
        assert main(["snapshot", "export", file, "--rows-only", *named, *at[place]]) == 0
        assert main(["snapshot", "import", file, *at[place + 1]]) == 0
    assert Store(stores[2]).ref("tiny", "candidate") == live
    with tarfile.open(files[1]) as tar:
        card = (tar.extractfile("card.md") or io.BytesIO()).read().decode()
    assert "The card of its whole bundle tells its gates" in card
    assert "## Licenses" in card
    assert "gates passed" not in card
    assert main(["snapshot", "export", files[1], "--snapshot", "candidate", *at[1]]) == 1
    assert "import its whole bundle" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("line", [["snapshot", "export"], ["export", "megatron", "--out"]], ids=" ".join)
def test_what_holds_withdrawn_files_is_not_handed_on(
    rebuilt_store: Store, line: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, store = str(tmp_path / "handed"), ["--corpus", "tiny", "--store", str(rebuilt_store.root)]
    assert main([*line, out, "--snapshot", "live", *store]) == 1
    words = " ".join(capsys.readouterr().err.split())
    assert f"it holds what {WITHDRAWN} withdraws" in words
    assert "Build and promote its corpus again" in words
    assert list(tmp_path.iterdir()) == []
    assert main([*line, out, "--snapshot", "candidate", *store]) == 0


def test_what_holds_withdrawn_files_is_shown_with_that_word(
    rebuilt_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--corpus", "tiny", "--store", str(rebuilt_store.root)]
    live = (rebuilt_store.ref("tiny", "live") or "")[:12]
    assert main(["show", *store]) == main(["show", "live", *store]) == main(["show", "candidate", *store]) == 0
    words = " ".join(capsys.readouterr().out.split())

    assert f"{live} holds what is withdrawn, {WITHDRAWN}: build and promote again" in words
    assert f"withdrawn {WITHDRAWN}, which it holds" in words
    assert words.count(WITHDRAWN) == 2, "the candidate holds nothing of it"


def test_a_damaged_log_of_withdrawals_is_said_where_it_would_tell(
    rebuilt_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = shutil.copytree(rebuilt_store.root, tmp_path / "store")
    with (root / "log" / "withdrawals.jsonl").open("a") as log:
        log.write("x")
    line = ["show", "--corpus", "tiny", "--store", str(root)]
    assert main(line) == main([*line, "live"]) == main([*line, "--json"]) == 0
    words = capsys.readouterr().out

    assert words.count("a damaged log does not tell") == 2
    assert '"withdrawn": null' in words


def test_questions_about_rows_alone_say_that_their_evidence_is_in_the_whole_bundle(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store = str(tmp_path / "rows.bundle"), ("--corpus", "r", "--store", str(tmp_path / "store"))
    assert main(["snapshot", "export", file, "--corpus", "tiny", "--rows-only", "--store", str(tiny_store.root)]) == 0
    assert main(["snapshot", "import", file, *store]) == 0
    capsys.readouterr()
    questions = [["which", "lantern/train/0", "9"], ["which", "lantern", "a.c"], ["why", "lantern", "a.c"], ["report"]]
    questions += [[*questions[0], "--of", "candidate"], ["diff", "candidate", "candidate"]]
    questions += [["show", "lantern", "a.c", "--structure"], ["report", "--of", "candidate"]]
    of = ["--snapshot", "candidate"]
    questions += [
        ["export", "huggingface", *of, "--out", str(tmp_path / "out")],
        ["card", *of],
        ["card", *of, "--as", "spdx"],
    ]
    questions += [["snapshot", "export", str(tmp_path / "again.bundle"), *of]]
    for question in questions:
        assert main([*question, *store]) == 1, question
        words = " ".join(capsys.readouterr().err.split())
        assert "import" in words.lower(), (question, words)
        assert "whole bundle" in words, (question, words)
        assert "Did you mean" not in words, (question, words)
    assert main(["export", "megatron", *of, "--out", str(tmp_path / "out"), *store]) == 0, "it needs the rows alone"
