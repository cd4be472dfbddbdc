"""Killed with -9 at random moments, a build ends with the same id: nothing half-written is ever taken for whole."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.build.run_stage import StageResult
from pipeline.store.fsck import fsck
from pipeline.store.store import Store

NUM_KILLS = 10


def start(root: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "pipeline",
        "build",
        "--recipe",
        "tiny",
        "--workers",
        "2",
        "--json",
        "--store",
        str(root),
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )


@pytest.mark.slow  # a build is started eleven times
def test_ten_kills_at_random_moments_do_not_move_the_snapshot_id(
    tmp_path: Path, tiny_results: list[StageResult]
) -> None:
    generator = random.Random(20)
    root = tmp_path / "store"
    num_killed = 0
    for _ in range(NUM_KILLS):
        child = start(root)
        try:
            child.communicate(timeout=generator.uniform(0.5, 6.0))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            num_killed += 1
        time.sleep(0.05)
    output, _ = start(root).communicate()

    assert num_killed > 0
    assert json.loads(output)["snapshot_id"] == tiny_results[-1].snapshot_id
    assert fsck(Store(root)) == []


@pytest.mark.slow  # two builds for each of five renames, the first killed before it
@pytest.mark.parametrize("number", [1, 3, 6, 10, 15])
def test_a_kill_before_a_rename_leaves_the_old_state(
    tmp_path: Path, tiny_results: list[StageResult], number: int
) -> None:
    root = tmp_path / "store"
    code = (
        "import os, sys, signal\n"
        "count = [0]; real = os.replace; rename = os.rename\n"
        "def dying(function):\n"
        "    def call(*arguments, **named):\n"
        "        count[0] += 1\n"
        f"        if count[0] == {number}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return function(*arguments, **named)\n"
        "    return call\n"
        "os.replace, os.rename = dying(real), dying(rename)\n"
        "from pipeline.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["build", "--recipe", "tiny", "--workers", "1", "--store", str(root), "--json"]
    died = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    assert fsck(Store(root)) == []

    output, _ = start(root).communicate()
    assert json.loads(output)["snapshot_id"] == tiny_results[-1].snapshot_id
