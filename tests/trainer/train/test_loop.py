"""A run is a value: stopped anywhere, resumed in a fresh process, with any number of workers, it ends in the same bits."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.store import Store
from trainer.train.metrics import hold_folder

STEPS = 20
SAME = ("certificate", "losses", "final_loss", "parameters_sha256", "optimizer_sha256", "checkpoint_id", "loader")
Train = Callable[..., subprocess.CompletedProcess[str]]


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
    done = subprocess.run(command(root, run, stop_after, *more), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def refused(root: Path, run: str, stop_after: int, *more: str) -> str:
    done = subprocess.run(command(root, run, stop_after, *more), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return str(json.loads(done.stdout)["message"])


@pytest.fixture(scope="module")
def straight(root: Path) -> dict[str, Any]:
    return train(root, "straight", STEPS)


def test_losses_are_finite_and_fall(straight: dict[str, Any]) -> None:
    assert straight["steps"] == len(straight["losses"]) == STEPS
    assert sum(straight["losses"][-5:]) < sum(straight["losses"][:5])


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_killed_and_resumed_is_the_same_run_bit_for_bit(root: Path, straight: dict[str, Any], num_workers: int) -> None:
    run = f"killed-{num_workers}"
    line = command(root, run, STEPS, "--workers", str(num_workers))
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_step(root / "runs" / run / "metrics.jsonl", 11)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    resumed = train(root, run, STEPS, "--workers", str(num_workers), "--resume", "latest")

    assert {name: resumed[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_a_stop_in_the_middle_changes_nothing(root: Path, straight: dict[str, Any]) -> None:
    half = train(root, "stopped", 7)
    resumed = train(root, "stopped", STEPS, "--resume", half["checkpoint_id"])

    assert half["losses"] == straight["losses"][:7]
    assert {name: resumed[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_a_termination_signal_saves_and_ends_well(root: Path, straight: dict[str, Any]) -> None:
    child = subprocess.Popen(
        command(root, "terminated", STEPS), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_step(root / "runs" / "terminated" / "metrics.jsonl", 2)
    child.terminate()
    output, text = child.communicate()

    assert child.returncode == 0
    assert f"resumable at step {json.loads(output)['steps']}" in text
    resumed = train(root, "terminated", STEPS, "--resume", "latest")
    assert resumed["parameters_sha256"] == straight["parameters_sha256"]


def test_a_finished_run_is_recognized(root: Path, straight: dict[str, Any]) -> None:
    again = train(root, "straight", STEPS, "--resume", "latest")

    assert again["unchanged"] is True
    assert {name: again[name] for name in SAME} == {name: straight[name] for name in SAME}


def test_metrics_have_one_line_a_step_after_a_resume(root: Path, straight: dict[str, Any]) -> None:
    train(root, "metrics", 6)
    with (root / "runs" / "metrics" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "loss": 1')
    train(root, "metrics", 8, "--resume", "latest")
    lines = [json.loads(line) for line in (root / "runs" / "metrics" / "metrics.jsonl").read_text().splitlines()]

    assert [line["step"] for line in lines] == list(range(1, 9))
    assert [line["loss"] for line in lines] == straight["losses"][:8]


def test_a_checkpoint_that_does_not_exist_is_named(root: Path, straight: dict[str, Any]) -> None:
    message = refused(root, "straight", STEPS, "--resume", "f" * 64)

    assert "f" * 64 in message
    assert straight["checkpoint_id"] in message


def test_a_checkpoint_of_another_configuration_is_refused_by_field(root: Path, straight: dict[str, Any]) -> None:
    message = refused(root, "other", STEPS, "--seed", "43", "--resume", straight["checkpoint_id"])

    assert "seed was 42, is now 43" in message


def test_a_damaged_checkpoint_is_refused(root: Path, straight: dict[str, Any]) -> None:
    before = train(root, "damaged", 1)
    done = train(root, "damaged", 2, "--resume", "latest")
    path = Store(root).read(done["checkpoint_id"]).path / "parameters-layers.1.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    message = refused(root, "damaged", 4, "--resume", done["checkpoint_id"])

    assert "parameters-layers.1.safetensors" in message
    assert f"The one of step 1 is sound: --resume {before['checkpoint_id']}" in message


def test_a_second_trainer_on_one_run_is_refused(root: Path, straight: dict[str, Any]) -> None:
    with Store(root).writer("runs/straight", "training straight"):
        message = refused(root, "straight", STEPS, "--resume", "latest")

    assert "it is being written by training straight" in message


def test_a_second_run_into_one_folder_is_refused(root: Path, straight: dict[str, Any]) -> None:
    with hold_folder(root / "runs" / "straight", "training other"):
        message = refused(root, "straight", STEPS, "--resume", "latest")

    assert "folder" in message
    assert "it is being written by training other" in message


def test_an_evaluation_of_held_out_rows_changes_nothing(root: Path, straight: dict[str, Any]) -> None:
    evaluated = train(root, "evaluated", 7, "--evaluate-every", "3", "--evaluate-rows", "8")
    lines = [json.loads(line) for line in (root / "runs" / "evaluated" / "metrics.jsonl").read_text().splitlines()]
    seen = {line["step"]: line["held_out_cross_entropy"] for line in lines if "held_out_bits_per_byte" in line}

    assert evaluated["losses"] == straight["losses"][:7]
    assert list(seen) == [3, 6]
    assert seen[6] < seen[3]


def test_a_snapshot_withdrawn_under_a_running_training_stops_nothing_but_the_next_resume(
    root: Path, straight: dict[str, Any]
) -> None:
    line = command(root, "withdrawn", STEPS, "--evaluate-every", "9")
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_step(root / "runs" / "withdrawn" / "metrics.jsonl", 2)
    (root / "objects").rename(root / "withdrawn")
    (root / "objects").mkdir()
    try:
        output, text = child.communicate()
        kept = root / "objects" / "training"
        message = refused(root, "withdrawn", STEPS + 1, "--resume", "latest", "--snapshot", straight["snapshot_id"])
    finally:
        shutil.copytree(kept, root / "withdrawn" / "training", dirs_exist_ok=True)
        shutil.rmtree(root / "objects")
        (root / "withdrawn").rename(root / "objects")

    assert child.returncode == 0, text
    assert json.loads(output)["certificate"] == straight["certificate"]
    assert f"object {straight['snapshot_id'][:12]}: it is not in the store" in message


def test_another_seed_is_named_before_the_first_step_that_differs(root: Path, straight: dict[str, Any]) -> None:
    other = train(root, "seed", 2, "--seed", "43")
    line = [sys.executable, "-m", "trainer", "compare", straight["checkpoint_id"], other["checkpoint_id"]]
    done = subprocess.run([*line, "--store", str(root)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "seed: 42 | 43"
    assert "first batch that differs: step 1" in done.stderr


def test_a_snapshot_is_not_a_checkpoint(root: Path, straight: dict[str, Any]) -> None:
    assert "it is a snapshot/snapshot" in refused(root, "straight", STEPS, "--resume", straight["snapshot_id"])


def test_a_run_that_is_past_the_last_step_is_refused(root: Path, straight: dict[str, Any]) -> None:
    assert f"it is at step {STEPS}" in refused(root, "straight", 5, "--resume", "latest")


def test_sampling_twice_gives_the_same_text(root: Path, straight: dict[str, Any]) -> None:
    line = [sys.executable, "-m", "trainer", "sample", "--store", str(root), "--checkpoint", straight["checkpoint_id"]]
    line += ["--tokens", "12", "--json"]
    first, second = (subprocess.run(line, capture_output=True, text=True, check=True).stdout for _ in range(2))

    assert json.loads(first) == json.loads(second)


def wait_for_step(path: Path, step: int) -> None:
    deadline = time.monotonic() + 600  # a limit for a machine that others use too
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().count("\n") >= step:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never reached step {step}")
