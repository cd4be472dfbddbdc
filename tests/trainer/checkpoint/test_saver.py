"""Saving in the background: a slow or full disk costs checkpoints, and never `latest`."""

import fcntl
import resource
import time

import pytest

from pipeline.core.errors import TrainingError
from pipeline.store.objects import read_manifest
from pipeline.store.store import Store
from tests.support.made.made_checkpoints import made
from trainer.checkpoint import retention
from trainer.checkpoint.checkpoint import load
from trainer.checkpoint.retention import RetentionPolicy
from trainer.checkpoint.saver import Saver
from trainer.checkpoint.stored_state import CHECKPOINT_KIND


def test_a_disk_that_is_full_in_the_middle_of_a_file_costs_that_save_alone(store: Store) -> None:
    logged: list[str] = []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), logged.append)
        saver.save(made(1))
        first = saver.finish(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, before[1]))  # the system refuses what a file holds beyond
        try:
            saver.save(made(2, moved=1.0))
            saver.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert store.ref("runs/r", "latest") == first
        saver.save(made(3))
        saver.finish(3)

    assert [entry.step for entry in retention.list_checkpoints(store, "r")] == [1, 3]
    assert ["step 2 was not saved" in line and first in line for line in logged] == [True]


def test_a_save_that_the_disk_refuses_is_logged_and_leaves_the_last_good_one(store: Store) -> None:
    logged: list[str] = []
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), logged.append)
        saver.save(made(1))
        first = saver.finish(1)
        (scratch / "step-2").write_bytes(b"")  # where the next save wants a folder: the system refuses it
        saver.save(made(2))
        with pytest.raises(TrainingError, match=rf"step 2 could not be saved.*last good one is {first}"):
            saver.finish(2)
        saver.save(made(3))
        third = saver.finish(3)

    assert "step 2 was not saved" in logged[0]
    assert load(store, third).step == 3
    assert read_manifest(store.read(third).path).kind == CHECKPOINT_KIND


def test_a_slow_disk_delays_no_step_and_the_newest_checkpoint_takes_the_turn_of_one_that_waits(store: Store) -> None:
    logged: list[str] = []
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), logged.append)
        with (store.root / "locks" / ".refs").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # the save of step 1 hangs where it moves `latest`
            saver.save(made(1))
            while not list(store.root.glob("objects/*/*/*/manifest.json")):
                time.sleep(0.01)
            saver.save(made(2))
            saver.save(made(3))
            assert store.ref("runs/r", "latest") is None
        saver.finish(3)

    assert [entry.step for entry in retention.list_checkpoints(store, "r")] == [1, 3]
    assert ["step 2 was not saved" in line for line in logged] == [True]
