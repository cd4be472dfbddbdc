"""Ranks that each hold some rows of every tensor train as one process does, bit for bit, and leave the checkpoints of one."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.tools.sharding.sharded import NUM_RANKS, two_steps
from tests.trainer.train.test_loop import wait_for_step
from trainer.__main__ import main
from trainer.config.choices import CompileMode
from trainer.distributed.ranks import Ranks
from trainer.model.parallelize import require_shardable
from trainer.train import child_session
from trainer.train import step as stepping
from trainer.train.determinism import ENVIRONMENT_VARIABLES

SAME = (*child_session.SAME, "num_parameters")
RANKS = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
STEPS, TIMEOUT_SECONDS = 6, 300
ENVIRONMENT_OF_RANKS = {**os.environ, **ENVIRONMENT_VARIABLES, "OMP_WAIT_POLICY": "passive"}


@pytest.fixture(scope="module")
def root(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the built store, which trainings may write."""
    target = tmp_path_factory.mktemp("sharding") / "store"
    shutil.copytree(tiny_store.root, target)
    return target


def command(root: Path, run: str, *more: str, launcher: tuple[str, ...] = ()) -> list[str]:
    line = [sys.executable, *launcher, "-m", *(["--"] if launcher else []), "trainer", "train", "--store", str(root)]
    line += ["--corpus", "tiny", "--run", run, "--out", str(root / "runs" / run), "--json"]
    return [*line, "--micro-batch-rows", "1", "--stop-after", str(STEPS), "--save-every", "2", *more]


def train(root: Path, run: str, *more: str, launcher: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
    line = command(root, run, *more, launcher=launcher)
    done = subprocess.run(
        line, capture_output=True, text=True, check=False, env=ENVIRONMENT_OF_RANKS, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow  # four ranks
def test_four_ranks_with_uneven_and_empty_shares_have_the_bits_of_one_process(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "tests.tools.sharding.sharded", str(tmp_path / "meeting")]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    sharded, alone = json.loads(done.stdout), two_steps(Ranks(), tmp_path / "alone")

    for name in ("digests", "losses", "norms", "not_finite", "checkpoint_id"):
        assert sharded[name] == alone[name], name
    assert len(set(alone["digests"])) == 3
    assert alone["not_finite"] == ["output of norm", "weight of embedding_VD"]
    assert sharded["restored"] == sharded["digests"][-1]
    assert sharded["fewest_rows"] == 0
    assert max(sharded["shares"]) < 1.02 * alone["share"] / NUM_RANKS
    assert sum(sharded["shares"]) == alone["share"]
    for moved, whole in zip(zip(*sharded["moved"], strict=True), alone["moved"], strict=True):  # written, then read
        assert sum(moved) == whole
        assert max(moved) < 1.1 * whole / NUM_RANKS
    assert len(sharded["disagreements"]) == NUM_RANKS
    assert all(
        "stop_after differ: rank 0: 5;" in message and "rank 3: 6" in message for message in sharded["disagreements"]
    )


@pytest.mark.campaign  # three trainings, two of them on two ranks; tests/faults/test_training_kills.py kills others
def test_a_compiled_run_whose_rank_is_killed_resumes_to_the_checkpoint_of_one_process(root: Path) -> None:
    compiled = ("--compile", "fullgraph", "--compile-backend", "eager")
    alone, _ = train(root, "alone", *compiled)
    launcher = subprocess.Popen(
        command(root, "killed", "--shard", *compiled, launcher=RANKS),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT_OF_RANKS,
    )
    wait_for_step(root / "runs" / "killed" / "metrics.jsonl", 3)
    os.kill(process_of_rank(launcher.pid, 1), signal.SIGKILL)
    _, last_errors = launcher.communicate(timeout=TIMEOUT_SECONDS)
    left = Store(root).ref("runs/killed", "latest")
    more = ("--shard", "--evaluate-every", "2", "--resume", "latest", *compiled)
    resumed, errors = train(root, "killed", *more, launcher=RANKS)

    assert launcher.returncode != 0
    assert "exitcode  : -9" in last_errors
    assert left not in (None, alone["checkpoint_id"])
    assert {name: resumed[name] for name in SAME} == {name: alone[name] for name in SAME}
    assert (resumed["sharded"], resumed["num_ranks"], alone["sharded"]) == (True, 2, False)
    assert "compiled: 4 frames" in errors
    assert " 0 graph breaks" in errors


def test_what_cannot_be_sharded_is_refused_with_a_remedy(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["train", *command(root, "refused", "--shard")[4:]])

    assert code == 1
    assert "--shard: there is one rank" in json.loads(capsys.readouterr().out)["message"]
    with pytest.raises(TrainingError, match="Train with --compile fullgraph or off"):
        require_shardable(Ranks(0, 2), CompileMode.BUDGETED)


def test_a_rank_without_the_memory_ends_the_run_because_the_others_wait_inside_a_layer() -> None:
    def leaf(place: int) -> list[torch.Tensor]:
        raise torch.OutOfMemoryError(f"planted at {place}")

    with pytest.raises(TrainingError, match=r"memory of cuda:1 of rank 1: .* Resume with a smaller --micro-batch-rows"):
        stepping._sum_in_turns(range(2), leaf, Ranks(1, 2), "cuda:1")


def process_of_rank(launcher: int, rank: int) -> int:
    """The process that a launcher has started as a rank."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return next(int(child) for child in children if f"\0RANK={rank}\0" in Path(f"/proc/{child}/environ").read_text())
