"""The trainer's command line in this process, on stores that trainings may write."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.store import Store
from trainer.__main__ import main

Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tiny_store: Store) -> Command:
    """Run a command on a store, by default the built one; returns the exit code and the JSON value."""

    def call(*arguments: str, store: Path = tiny_store.root) -> tuple[int, Any]:
        code = main([*arguments, "--json", "--store", str(store)])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture(scope="session")
def trained(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with a run of one step, and the id of its checkpoint."""
    root = tmp_path_factory.mktemp("trained") / "store"
    shutil.copytree(tiny_store.root, root)
    line = ["train", "--store", str(root), "--corpus", "tiny", "--run", "one", "--stop-after", "1"]
    assert main([*line, "--out", str(root / "out")]) == 0
    return root, Store(root).ref("runs/one", "latest") or ""
