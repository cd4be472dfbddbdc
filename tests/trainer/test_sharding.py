"""Two ranks that each hold half of every parameter train as one process does, on the same rows in the same order."""

import json
import subprocess
import sys

import pytest
import torch

from pipeline.errors import TrainingError
from tests.trainer.sharded import batch_of, two_steps
from trainer.model.hybrid import HybridModel
from trainer.parallel import Ranks
from trainer.presets import preset
from trainer.sharding import sharded_backward


def test_two_sharded_ranks_begin_with_the_same_bits_and_train_as_one_process() -> None:
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*line, "-m", "tests.trainer.sharded"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    sharded, whole = json.loads(done.stdout), two_steps(Ranks())

    assert sharded["initial"] == whole["initial"]
    assert sharded["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert sharded["norms"] == pytest.approx(whole["norms"], rel=1e-4)
    assert sharded["final"] == pytest.approx(whole["final"], rel=1e-4)


def test_rows_that_ranks_cannot_share_are_refused() -> None:
    with pytest.raises(TrainingError, match="they cannot share 4 rows"):
        sharded_backward(HybridModel(preset("tiny"), 64), batch_of(), Ranks(0, 3))


def test_one_rank_has_the_gradients_of_the_whole_batch() -> None:
    model = HybridModel(preset("tiny"), 64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.01)

    loss = sharded_backward(model, batch_of(), Ranks())

    assert torch.equal(loss, model.loss(batch_of())[0].detach())
