"""A run is a value: stopped anywhere, resumed in a fresh process, with any number of workers, it ends in the same bits.

Claims about processes start some; the others train in this one, which saves an import of torch each.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.store.store import Store
from tests.support.made.made_snapshot import CORPUS, commit_made
from tests.support.paths import ROOT
from tests.tools.fork_server import ForkServer
from trainer.__main__ import main
from trainer.train import child_session
from trainer.train.determinism import ENVIRONMENT_VARIABLES
from trainer.train.metrics import hold_folder

STEPS = 20
SAME = (*child_session.SAME, "final_loss", "loader")
Here = Callable[..., tuple[int, dict[str, Any]]]
Trained = Callable[..., dict[str, Any]]
Refused = Callable[..., str]


@pytest.fixture(scope="module")
def root(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the built store, which trainings may write."""
    target = tmp_path_factory.mktemp("training") / "store"
    shutil.copytree(tiny_store.root, target)
    return target


def command(root: Path, run: str, stop_after: int, *more: str) -> list[str]:
    line = [sys.executable, "-m", "trainer", "train", "--store", str(root), "--corpus", "tiny", "--snapshot", "live"]
    line += ["--recipe", "tiny", "--stop-after", str(stop_after), "--save-every", "5", "--run", run]
    return [*line, "--out", str(root / "runs" / run), "--json", *more]


def train(root: Path, run: str, stop_after: int, *more: str) -> dict[str, Any]:
    """Train in a fresh process."""
    line = command(root, run, stop_after, *more)
    done = subprocess.run(
        line, capture_output=True, text=True, check=False, env={**os.environ, **ENVIRONMENT_VARIABLES}
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def here(root: Path, capsys: pytest.CaptureFixture[str]) -> Here:
    """Train in this process: the exit code and the answer."""

    def call(run: str, stop_after: int, *more: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main(command(root, run, stop_after, *more)[3:])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def trained(here: Here) -> Trained:
    def call(run: str, stop_after: int, *more: str) -> dict[str, Any]:
        code, answer = here(run, stop_after, *more)
        assert code == 0, answer
        return answer

    return call


@pytest.fixture
def refused(here: Here) -> Refused:
    def call(run: str, stop_after: int, *more: str) -> str:
        code, answer = here(run, stop_after, *more)
        assert code == 1, answer
        return str(answer["message"])

    return call


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    """Sessions to be killed: what resumes them is a fresh process."""
    with ForkServer("trainer") as server:
        yield server


@pytest.fixture(scope="module")
def straight(root: Path) -> dict[str, Any]:
    return train(root, "straight", STEPS)


def test_losses_are_finite_and_fall(straight: dict[str, Any]) -> None:
    assert straight["steps"] == len(straight["losses"]) == STEPS
    assert sum(straight["losses"][-5:]) < sum(straight["losses"][:5])


def test_a_refused_resume_of_another_runs_checkpoint_leaves_no_ref_that_keeps_it(
    root: Path, straight: dict[str, Any], trained: Trained, refused: Refused
) -> None:
    def refs() -> dict[str, str]:
        return Store(root).refs("runs/other")

    assert "of another configuration" in refused("other", STEPS, "--resume", f"straight@{STEPS}", "--seed", "7")
    assert refs() == {}
    trained("other", STEPS, "--resume", f"straight@{STEPS}")
    assert straight["checkpoint_id"] in refs().values()


@pytest.mark.slow  # sessions that are killed and a fresh one, for each number of workers
@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_killed_and_resumed_is_the_same_run_bit_for_bit(
    root: Path, straight: dict[str, Any], forks: ForkServer, num_workers: int
) -> None:
    run = f"killed-{num_workers}"
    line, metrics = command(root, run, STEPS, "--workers", str(num_workers)), root / "runs" / run / "metrics.jsonl"
    assert forks.kill(line[3:], root / f"{run}.log", lambda: num_lines(metrics) >= 11)
    resumed = train(root, run, STEPS, "--workers", str(num_workers), "--resume", "latest")

    assert {name: resumed[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_with_initial_weights_killed_and_resumed_is_the_same_run(
    root: Path, straight: dict[str, Any], trained: Trained, forks: ForkServer
) -> None:
    more = ("--init-from", straight["checkpoint_id"])
    whole, metrics = trained("initial", 8, *more), root / "runs" / "initial-killed" / "metrics.jsonl"
    assert forks.kill(
        command(root, "initial-killed", 8, *more)[3:], root / "initial.log", lambda: num_lines(metrics) >= 6
    )
    resumed = trained("initial-killed", 8, "--resume", "latest", *more)

    assert {name: resumed[name] for name in SAME} == {name: whole[name] for name in SAME}
    assert whole["losses"][0] < straight["losses"][0]


def test_a_stop_in_the_middle_changes_nothing(root: Path, straight: dict[str, Any], trained: Trained) -> None:
    half = trained("stopped", 7)
    resumed = train(root, "stopped", STEPS, "--resume", half["checkpoint_id"])

    assert half["losses"] == straight["losses"][:7]
    assert {name: resumed[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_a_termination_signal_saves_and_ends_well(root: Path, straight: dict[str, Any], trained: Trained) -> None:
    child = subprocess.Popen(
        command(root, "terminated", STEPS), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_step(root / "runs" / "terminated" / "metrics.jsonl", 2)
    child.terminate()
    output, text = child.communicate()

    assert child.returncode == 0
    assert f"resumable at step {json.loads(output)['steps']}" in text
    resumed = trained("terminated", STEPS, "--resume", "latest")
    assert resumed["parameters_sha256"] == straight["parameters_sha256"]


def test_loader_workers_end_with_the_session_that_started_them(root: Path) -> None:
    line = command(root, "orphans", 100_000, "--save-every", "100000", "--workers", "2")
    with (root / "orphans.log").open("wb") as log:
        trainer = subprocess.Popen(line, stdout=log, stderr=log, start_new_session=True)
    wait_for_step(root / "runs" / "orphans" / "metrics.jsonl", 2)
    started = processes_of(trainer.pid)
    trainer.kill()
    trainer.wait()

    assert len(started) >= 4, "the trainer, its fork server and two workers"
    deadline = time.monotonic() + 120  # a limit for a machine that others use too
    while processes_of(trainer.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("stop_after", [STEPS, 5], ids=["at its last step", "past it"])
def test_a_finished_run_is_unchanged(stop_after: int, straight: dict[str, Any], trained: Trained) -> None:
    again = trained("straight", stop_after, "--resume", "latest")

    assert again["unchanged"] is True
    assert {name: again[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_metrics_have_one_line_a_step_after_a_resume(root: Path, straight: dict[str, Any], trained: Trained) -> None:
    trained("metrics", 6)
    with (root / "runs" / "metrics" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "loss": 1')
    trained("metrics", 8, "--resume", "latest")
    lines = [json.loads(line) for line in (root / "runs" / "metrics" / "metrics.jsonl").read_text().splitlines()]

    assert [line["step"] for line in lines] == list(range(1, 9))
    assert [line["loss"] for line in lines] == straight["losses"][:8]


def test_a_checkpoint_that_does_not_exist_is_named(straight: dict[str, Any], refused: Refused) -> None:
    message = refused("straight", STEPS, "--resume", "f" * 64)

    assert "f" * 64 in message
    assert straight["checkpoint_id"] in message


def test_a_checkpoint_of_another_configuration_is_refused_by_field(straight: dict[str, Any], refused: Refused) -> None:
    message = refused("other", STEPS, "--seed", "43", "--resume", straight["checkpoint_id"])

    assert "seed was 42, is now 43" in message


def test_a_damaged_checkpoint_is_refused(root: Path, trained: Trained, refused: Refused) -> None:
    before = trained("damaged", 1)
    done = trained("damaged", 2, "--resume", "latest")
    path = Store(root).read(done["checkpoint_id"]).path / "parameters-layers.1.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    message = refused("damaged", 4, "--resume", done["checkpoint_id"])

    assert "parameters-layers.1.safetensors" in message
    assert f"The one of step 1 is sound: --resume {before['checkpoint_id']}" in message


def test_a_second_trainer_on_one_run_is_refused(root: Path, straight: dict[str, Any], refused: Refused) -> None:
    with Store(root).writer("runs/straight", "training straight"):
        message = refused("straight", STEPS, "--resume", "latest")

    assert "it is being written by training straight" in message


def test_a_second_run_into_one_folder_is_refused(root: Path, straight: dict[str, Any], refused: Refused) -> None:
    with hold_folder(root / "runs" / "held", "training other"):
        message = refused("held", STEPS)

    assert "folder" in message
    assert "it is being written by training other" in message


def test_an_evaluation_of_held_out_rows_changes_nothing(root: Path, straight: dict[str, Any], trained: Trained) -> None:
    evaluated = trained("evaluated", 7, "--evaluate-every", "3", "--evaluate-rows", "8")
    lines = [json.loads(line) for line in (root / "runs" / "evaluated" / "metrics.jsonl").read_text().splitlines()]
    seen = {line["step"]: line["held_out_cross_entropy"] for line in lines if "held_out_bits_per_byte" in line}

    assert evaluated["losses"] == straight["losses"][:7]
    assert list(seen) == [3, 6]
    assert seen[6] < seen[3]


def test_a_snapshot_withdrawn_under_a_running_training_stops_nothing_but_the_next_resume(
    root: Path, straight: dict[str, Any], refused: Refused
) -> None:
    line = command(root, "withdrawn", STEPS, "--evaluate-every", "9")
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_step(root / "runs" / "withdrawn" / "metrics.jsonl", 2)
    (root / "objects").rename(root / "withdrawn")
    (root / "objects").mkdir()
    try:
        output, text = child.communicate()
        kept = root / "objects" / "training"
        message = refused("withdrawn", STEPS + 1, "--resume", "latest", "--snapshot", straight["snapshot_id"])
    finally:
        shutil.copytree(kept, root / "withdrawn" / "training", dirs_exist_ok=True)
        shutil.rmtree(root / "objects")
        (root / "withdrawn").rename(root / "objects")

    assert child.returncode == 0, text
    assert json.loads(output)["certificate"] == straight["certificate"]
    assert f"object {straight['snapshot_id'][:12]}: it is not in the store" in message


def test_another_seed_is_named_before_the_first_step_that_differs(
    root: Path, straight: dict[str, Any], trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    other = trained("seed", 2, "--seed", "43")
    assert main(["compare", straight["checkpoint_id"], other["checkpoint_id"], "--store", str(root)]) == 1

    told = capsys.readouterr().out
    assert told.splitlines()[0] == "seed: 42 | 43"
    assert "first batch that differs: step 1" in told


def test_a_snapshot_is_not_a_checkpoint(straight: dict[str, Any], refused: Refused) -> None:
    assert "it is a snapshot/snapshot" in refused("straight", STEPS, "--resume", straight["snapshot_id"])


def test_a_checkpoint_that_was_asked_for_and_is_past_the_last_step_is_refused(
    straight: dict[str, Any], refused: Refused
) -> None:
    assert f"it is at step {STEPS}" in refused("straight", 5, "--resume", straight["checkpoint_id"])


def test_sampling_twice_gives_the_same_text(
    root: Path, straight: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sample", "--store", str(root), "--checkpoint", straight["checkpoint_id"], "--tokens", "12", "--json"]
    fresh = subprocess.run([sys.executable, "-m", "trainer", *line], capture_output=True, text=True, check=True).stdout
    assert main(line) == 0

    assert json.loads(fresh) == json.loads(capsys.readouterr().out)


def processes_of(session: int) -> list[int]:
    """Return the processes of a session of the kernel that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, its_session = path.read_text().rpartition(")")[2].split()[:4]
            found += [int(path.parent.name)] if int(its_session) == session and state != "Z" else []
    return found


def wait_for_step(path: Path, step: int) -> None:
    deadline = time.monotonic() + 600  # a limit for a machine that others use too
    while time.monotonic() < deadline:
        if num_lines(path) >= step:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never reached step {step}")


def num_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("dtype", "compile"), [("float32", "off"), ("bfloat16", "fullgraph")])
def test_a_training_of_made_rows_on_a_gpu_that_is_resumed_ends_in_the_same_certificate(
    dtype: str, compile: str, tmp_path: Path
) -> None:
    commit_made(Store(tmp_path / "store"))

    def train(run: str, *more: str) -> dict[str, object]:
        line = [sys.executable, "-m", "trainer", "train", "--store", str(tmp_path / "store"), "--corpus", CORPUS]
        line += ["--device", "cuda", "--dtype", dtype, "--compile", compile, "--run", run, "--out", str(tmp_path / run)]
        done = subprocess.run([*line, "--save-every", "3", "--json", *more], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    straight = train("straight", "--stop-after", "6")
    train("stopped", "--stop-after", "3")
    resumed = train("stopped", "--stop-after", "6", "--resume", "latest")

    assert {name: resumed[name] for name in child_session.SAME} == {name: straight[name] for name in child_session.SAME}
