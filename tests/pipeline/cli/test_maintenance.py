"""fsck reports a damaged store and its exit code says so; gc removes nothing that nobody confirmed."""

import argparse
import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.build.recipes import ROOT
from pipeline.cli import main as main_module
from pipeline.cli import maintenance
from pipeline.store.store import Store
from tests.pipeline.cli.conftest import Run


def test_fsck_finds_nothing_in_a_sound_store_and_the_flip_in_a_damaged_one(run: Run, tmp_path: Path) -> None:
    run("build", "--recipe", "tiny", "--workers", "1", "--until", "collect")
    assert run("fsck")[:2] == (0, {"problems": []})

    path = next((tmp_path / "store" / "objects" / "collect" / "part").glob("*/files.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    code, answer, _ = run("fsck")
    assert code == 1
    assert path.parent.name[:12] in answer["problems"][0]


def test_a_folder_that_is_no_store_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    for command in ("fsck", "gc"):
        code, answer, _ = run(command)
        assert (code, answer["error"]) == (1, "MissingError")
        assert f"store {tmp_path / 'store'}: it holds no store" in answer["message"]
    monkeypatch.setenv("SLUICE_STORE", "")
    assert main_module._parser().parse_args(["fsck"]).store == str(ROOT / "store")


def test_gc_says_what_it_keeps_and_removes_only_what_was_confirmed(
    run: Run, tmp_path: Path, rebuilt_store: Store
) -> None:
    shutil.copytree(rebuilt_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    for name in ("candidate", "last", "verify", "tokenize"):
        store.remove_ref("tiny", name, "a test")
    live = store.ref("tiny", "live") or ""

    code, answer, said = run("gc", "--forget", "tiny")
    assert (code, answer["is_rehearsal"], answer["kept"]) == (0, True, [])
    assert f"nothing was removed: `python -m pipeline gc --forget tiny --yes --store {store.root}` removes it" in said
    assert store.ref("tiny", "live") == live

    assert "refs of runs/nobody: it has none" in run("gc", "--forget", "runs/nobody")[2]

    code, answer, said = run("gc", "--dry-run")
    assert answer["object_ids"]
    assert all(store.locate(name) for name in answer["object_ids"])
    assert f"{live[:12]} and" in said
    assert "ref tiny/live" in said
    everything = {each["object_id"] for each in answer["kept"]} | answer["inputs"].keys()
    assert len(everything) == answer["num_kept"]
    assert run("gc", "--yes", "--dry-run")[0] == 2

    code, done, said = run("gc", "--yes")
    assert (code, done["object_ids"], done["is_rehearsal"]) == (0, answer["object_ids"], False)
    assert not any(store.locate(name) for name in done["object_ids"])


@pytest.mark.parametrize(("typed", "is_confirmed"), [("y", True), ("", False), ("n", False)])
def test_gc_asks_at_a_terminal(typed: str, is_confirmed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed + "\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    console = Console(file=io.StringIO(), force_terminal=True)
    assert maintenance._is_confirmed(argparse.Namespace(json=False), console) is is_confirmed
    assert maintenance._is_confirmed(argparse.Namespace(json=True), console) is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["made", "--promote", "--until", "collect"], "found --until, --promote without --recipe; expected the recipe"),
        (["made", "--undo", "--offline"], "found --offline without --recipe; expected the recipe"),
        (["--erase", "--evaluation-items", "items"], "found --evaluation-items without --recipe; expected the recipe"),
        (["--recipe", "tiny"], "found --recipe without SELECTOR or --author; expected what is withdrawn"),
        (["--erase", "--recipe", "tiny"], "found --recipe without SELECTOR or --author; expected what is withdrawn"),
    ],
)
def test_options_of_a_build_that_no_withdrawal_would_read_are_refused(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, answer, _ = run("withdraw", *arguments)
    assert (code, answer["error"]) == (2, "UsageError")
    assert message in answer["message"]
    assert not (tmp_path / "store").exists()


def test_a_command_that_reads_holds_the_store(run: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.log_blob("0" * 64)
    monkeypatch.setattr("pipeline.store.locks._READER_SECONDS", 0.1)
    with store.in_use(alone=True):
        code, answer, _ = run("why", "source", "path")
    assert (code, answer["error"]) == (1, "LockedError")
