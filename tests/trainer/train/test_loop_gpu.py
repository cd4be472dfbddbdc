"""On a CUDA device: a training of made rows, stopped and resumed, ends in the certificate of one that was not stopped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline.store.store import Store
from tests.support.made.made_snapshot import CORPUS, commit_made
from tests.support.paths import ROOT
from trainer.proof.acceptance import SAME

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

DEVICE = "cuda"


@pytest.mark.parametrize(("dtype", "compile"), [("float32", "off"), ("bfloat16", "fullgraph")])
def test_a_training_that_is_stopped_and_resumed_ends_in_the_same_certificate(
    dtype: str, compile: str, tmp_path: Path
) -> None:
    commit_made(Store(tmp_path / "store"))

    def train(run: str, *more: str) -> dict[str, object]:
        line = [sys.executable, "-m", "trainer", "train", "--store", str(tmp_path / "store"), "--corpus", CORPUS]
        line += ["--device", DEVICE, "--dtype", dtype, "--compile", compile, "--run", run, "--out", str(tmp_path / run)]
        done = subprocess.run([*line, "--save-every", "3", "--json", *more], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    straight = train("straight", "--stop-after", "6")
    train("stopped", "--stop-after", "3")
    resumed = train("stopped", "--stop-after", "6", "--resume", "latest")

    assert {name: resumed[name] for name in SAME} == {name: straight[name] for name in SAME}
