"""The command line over made rows, where nothing is built: compiled, stopped and resumed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.support.made.made_snapshot import CORPUS, commit_made
from tests.support.paths import ROOT
from trainer.proof.acceptance import SAME
from trainer.train.determinism import ENVIRONMENT_VARIABLES


def call(*arguments: str) -> tuple[int, dict[str, object], str]:
    line = [sys.executable, "-m", "trainer", *arguments, "--json"]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, **ENVIRONMENT_VARIABLES}, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout or "null"), done.stderr


@pytest.mark.slow
def test_a_compiled_training_of_made_rows_ends_and_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert commit_made(store) == commit_made(store)

    def session(run: str, steps: str) -> dict[str, object]:
        line = ["train", "--store", str(store.root), "--corpus", CORPUS, "--telemetry", "off", "--resume", "latest"]
        line += ["--compile", "fullgraph", "--compile-backend", "eager"]
        code, answer, errors = call(*line, "--run", run, "--out", str(tmp_path / run), "--stop-after", steps)
        assert code == 0, errors
        return answer

    straight, _, resumed = session("straight", "2"), session("stopped", "1"), session("stopped", "2")

    assert {name: resumed[name] for name in SAME} == {name: straight[name] for name in SAME}
