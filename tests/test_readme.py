"""The questions at the top of the README are answered by the commands that it names, pasted as they are."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from pipeline.cli.main import main as pipeline_main
from pipeline.store import store_layout
from pipeline.store.store import Store
from tests.support.paths import ROOT
from trainer.__main__ import main as trainer_main

PROGRAMS = {"pipeline": pipeline_main, "trainer": trainer_main}
STEPS = "2"
"""Steps of the trainings here, of which the page has 20."""
TOLD = (
    (r"file: +lantern/\S+, train", r"license: +MIT \(allowed\), by file", r"SPDX-License-Identifier: MIT"),
    (r"file: +\w+/\S+, train", r"license: ", r"received: +bytes \d+ to \d+"),
    (r"odds/data/scanner.c is not in the snapshot", r"normalize +dropped generated", r"max_generated_markers is 0"),
    (r"no document that is kept differs",),
    (),
    (r"equal",),
)
"""Words of the answer to each command."""


def commands() -> list[str]:
    page = (ROOT / "README.md").read_text().partition("Questions that it answers")[2].partition("\n## ")[0]
    return [" ".join(each.split()) for each in re.findall(r"`\.venv/bin/python -m ([^`]+)`", page)]


@pytest.fixture
def place(tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `store`, as the demo leaves it: the corpus was built and promoted, a run was stopped and resumed."""
    shutil.copytree(tiny_store.root, tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    # As where they are pasted, nothing names the store: each command finds it itself.
    monkeypatch.delenv("SLUICE_STORE", raising=False)
    monkeypatch.setattr(store_layout, "_BESIDE_DAGSTER", tmp_path / "store")
    line = ["train", "--corpus", "tiny", "--run", "demo-resumed-tiny", "--save-every", "1", "--out", "demo"]
    assert trainer_main([*line, "--stop-after", "1"]) == 0
    assert trainer_main([*line, "--stop-after", STEPS, "--resume", "latest"]) == 0
    return tmp_path


def test_the_four_questions_are_answered(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = commands()
    assert len(lines) == len(TOLD)
    for line, told in zip(lines, TOLD, strict=True):
        program, *arguments = shlex.split(line.replace("20", STEPS))
        capsys.readouterr()
        assert PROGRAMS[program](arguments) == 0, line
        answer = capsys.readouterr().out
        assert [pattern for pattern in told if not re.search(pattern, answer)] == [], answer
