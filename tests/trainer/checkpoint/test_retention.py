"""Retention: a run keeps the newest, the regular and the best of its checkpoints, and what others need."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline.core.file_locks import acquire
from pipeline.store.store import Store
from tests.support.made.made_checkpoints import write_run
from trainer.checkpoint import retention
from trainer.checkpoint.retention import RetentionPolicy


def test_a_clock_that_goes_back_changes_neither_order_nor_what_is_kept(tmp_path: Path) -> None:
    hours = iter(range(100, 0, -1))
    store = Store(tmp_path / "store", clock=lambda: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=next(hours)))
    ids = write_run(store, "r", range(1, 6), RetentionPolicy(last=2))

    assert [entry.checkpoint_id for entry in retention.list_checkpoints(store, "r")] == ids[-2:]
    assert store.ref("runs/r", "latest") == ids[-1]


def test_what_a_run_keeps_is_the_newest_the_regular_and_the_best(store: Store) -> None:
    ids = write_run(store, "r", range(1, 10), RetentionPolicy(last=2, every=4, best=1))

    assert [entry.step for entry in retention.list_checkpoints(store, "r")] == [4, 8, 9]
    assert store.ref("runs/r", "latest") == ids[-1]


def test_prune_spares_what_a_ref_a_certificate_or_a_running_job_needs(store: Store) -> None:
    ids = write_run(store, "r", range(1, 6))
    store.move_ref("runs/r", "certified-2", None, ids[1], "a session ended here")
    store.move_ref("runs/other", "started-from", None, ids[2], "resumed by id")
    rehearsed = [entry.step for entry in retention.prune(store, "r", RetentionPolicy(last=1), is_rehearsal=True)]

    assert rehearsed == [1, 4]
    with (store.root / "locks" / "runs" / "s").open("w") as held:
        # A running job `s` has written what `r` has written too: equal checkpoints are one object.
        store.move_ref("runs/s", "latest", None, ids[3], "step 4")
        store.move_ref("runs/s", "latest", ids[3], ids[4], "step 5")
        acquire(held.fileno(), Path(held.name), "run s", 0, print)
        assert [entry.step for entry in retention.prune(store, "r", RetentionPolicy(last=1))] == [1]
    assert [entry.step for entry in retention.prune(store, "r", RetentionPolicy(last=1))] == [4]
    assert [entry.step for entry in retention.list_checkpoints(store)] == [2, 3, 5]
