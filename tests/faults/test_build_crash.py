"""Killed with -9 at random moments, a build ends with the same id: nothing half-written is ever taken for whole.

SLUICE_KILLS says how many (6).
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.run_stage import StageResult
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.conftest import build_tiny, copy_consumer_proof, known_answers
from tests.faults.injected_faults import die, in_child
from tests.tools.fork_server import ForkServer

NUM_KILLS = int(os.environ.get("SLUICE_KILLS", "6"))
BUILD = ("build", "--recipe", "tiny", "--json", "--store")
LATEST_MOMENTS = {"1": 1.5, "2": 3.5}
"""Seconds after which a build is killed at the latest, by its number of workers: it takes a second or two to start some."""


def is_after(seconds: float) -> Callable[[], bool]:
    moment = time.monotonic() + seconds
    return lambda: time.monotonic() >= moment


@pytest.mark.slow  # a build is started seven times
def test_kills_at_random_moments_do_not_move_the_snapshot_id(
    tmp_path: Path, tiny_results: list[StageResult], tiny_store: Store
) -> None:
    """Of all processes of a build at once: its workers, of which every fifth has two, and the trainer too."""
    generator = random.Random(20)
    root = tmp_path / "store"
    num_killed = 0
    with ForkServer("pipeline") as server:
        for number in range(NUM_KILLS):
            workers = "1" if number % 5 else "2"
            line = [*BUILD, str(root), "--workers", workers]
            moment = is_after(generator.uniform(0.05, LATEST_MOMENTS[workers]))
            num_killed += server.kill(line, tmp_path / "log", moment, with_children=True)
    copy_consumer_proof(tiny_store, root)
    line = [sys.executable, "-m", "pipeline", *BUILD, str(root), "--workers", "2"]
    done = subprocess.run(line, capture_output=True, check=False)

    assert num_killed > 0
    assert json.loads(done.stdout)["snapshot_id"] == tiny_results[-1].snapshot_id
    assert fsck(Store(root)) == []


@pytest.mark.slow  # two builds for each of three renames, the first killed before it
@pytest.mark.parametrize("number", [1, 6, 15])
def test_a_kill_before_a_rename_leaves_the_old_state(
    tmp_path: Path, tiny_results: list[StageResult], tiny_store: Store, number: int
) -> None:
    root = tmp_path / "store"

    def work() -> None:
        count = [0]

        def dying(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                count[0] += 1
                if count[0] == number:
                    die()
                return function(*arguments, **named)

            return call

        os.replace, os.rename = dying(os.replace), dying(os.rename)
        build_tiny(root)

    assert in_child(work) == -signal.SIGKILL
    assert fsck(Store(root)) == []

    with known_answers(tiny_store):
        assert build_tiny(root)[-1].snapshot_id == tiny_results[-1].snapshot_id
