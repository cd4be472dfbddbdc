"""kill -9 at random moments and at the worst ones: the certificate is always that of a run that was not killed.

SLUICE_KILLS says how many (5; `make campaign` 200).
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.tools.kill_campaign import run_campaign

NUM_KILLS = int(os.environ.get("SLUICE_KILLS", "5"))


@pytest.mark.slow  # a training of 60 steps, started again after each kill
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_certificate(tiny_store: Store, tmp_path: Path) -> None:
    found = run_campaign(tiny_store, tiny_store.ref("tiny", "live") or "", tmp_path, NUM_KILLS)

    assert found.num_kills == NUM_KILLS
    assert len(found.moments) >= min(4, NUM_KILLS)
    assert found.differences == []
    assert found.damage == []


def test_loader_workers_end_with_the_trainer_that_started_them(tiny_store: Store, tmp_path: Path) -> None:
    store = shutil.copytree(tiny_store.root, tmp_path / "store")
    line = [sys.executable, "-m", "trainer", "train", "--store", str(store), "--out", str(tmp_path / "out")]
    line += [
        "--corpus",
        "tiny",
        "--run",
        "orphans",
        "--stop-after",
        "100000",
        "--save-every",
        "100000",
        "--workers",
        "2",
    ]
    with (tmp_path / "log").open("wb") as log:
        trainer = subprocess.Popen(line, stdout=log, stderr=log, start_new_session=True)
    wait_until(lambda: b"] 2/" in (tmp_path / "log").read_bytes())
    started = processes_of_session(trainer.pid)
    trainer.kill()
    trainer.wait()

    assert len(started) >= 4, "the trainer, its fork server and two workers"
    wait_until(lambda: not processes_of_session(trainer.pid))


def processes_of_session(session: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, its_session = path.read_text().rpartition(")")[2].split()[:4]
            found += [int(path.parent.name)] if int(its_session) == session and state != "Z" else []
    return found


def wait_until(is_time: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120  # a limit for a machine that others use too
    while not is_time():
        assert time.monotonic() < deadline
        time.sleep(0.05)
