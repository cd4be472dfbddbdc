"""Each command of docs/operations.md does what it says, in that order, on one store."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from assets import instance
from pipeline.build.promotion import promote
from pipeline.build.withdrawal import restore
from pipeline.cli.main import main
from pipeline.pins.pins import pin_toml
from pipeline.stages.collect.propose_pin import propose_local
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.conftest import WITHDRAWN
from tests.support.paths import ROOT

PIPELINE, INSTANCE = "python -m pipeline ", "python -m assets.instance "


def commands() -> list[str]:
    """The lines of the fenced blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE | re.DOTALL)
    return [line.partition("  #")[0].partition(" #")[0].strip() for block in blocks for line in block.splitlines()]


@pytest.fixture
def place(rebuilt_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `store`: a snapshot was live, another is, and a training has a ref."""
    shutil.copytree(rebuilt_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    promote(store, "tiny")
    restore(store, WITHDRAWN, "a test")
    store.move_ref("runs/NAME", "latest", None, store.ref("tiny", "candidate") or "", "a test")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_STORE", str(tmp_path / "store"))
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.c").write_text("int a;")
    (tmp_path / "mine.toml").write_text(pin_toml(propose_local("mine", tmp_path / "own", "MIT")))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return tmp_path


def test_every_command_of_the_page_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = commands()
    assert len(lines) > 20
    moves = [move["new"] for move in Store(place / "store").history("tiny") if move["ref"] == "live"]
    for line in lines:
        real = line.replace("quick", "tiny").replace("SOURCE/GLOB", WITHDRAWN).replace(" ID", f" {moves[0]}")
        told, _, into = real.partition(" > ")
        if told.startswith(PIPELINE):
            capsys.readouterr()
            assert main(shlex.split(told.removeprefix(PIPELINE))) == 0, line
            if into:
                (place / into).write_text(capsys.readouterr().out)
        elif told.startswith(INSTANCE):
            assert instance.main(shlex.split(told.removeprefix(INSTANCE))) == 0, line
        else:
            subprocess.run(told, shell=True, check=True, cwd=place)

    store = Store(place / "store")
    live = [move["new"] for move in store.history("tiny") if move["ref"] == "live"]
    assert live[: len(moves)] == moves
    assert live[len(moves) :].count(moves[0]) == 1  # gone back to, then withdrawn
    assert live[-1] == store.ref("tiny", "live") != moves[0]
    assert json.loads((place / "withdrawn").read_text())["active"] == [WITHDRAWN]
    assert store.locate(moves[0]) is None
    assert store.refs("runs/NAME") == {}
    assert fsck(store) == fsck(Store(place / "backup")) == []
