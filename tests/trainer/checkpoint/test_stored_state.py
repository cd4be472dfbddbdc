"""Checkpoints are found by run and step, and by the first digits of an id; another object is refused."""

import pytest

from pipeline.core.errors import MissingError, TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.stored_state import CHECKPOINT_KIND, checkpoint_id, find


def test_a_checkpoint_is_found_by_each_of_its_names(store: Store) -> None:
    with store.writer("runs/mine", "a test") as scratch:
        (scratch / "one").mkdir()
        saved = store.commit(scratch / "one", CHECKPOINT_KIND, {"step": 3}, {})
        (scratch / "other").mkdir()
        other = store.commit(scratch / "other", "collect/stage", {}, {})
        store.move_ref("runs/mine", "latest", None, saved, "saved")

    assert {checkpoint_id(store, name) for name in (saved, saved[:6], "mine@3", "mine@latest")} == {saved}
    assert (find(store, "mine", "latest"), find(store, "new", "latest")) == (saved, None)
    with pytest.raises(TrainingError, match="it is a collect/stage; expected a checkpoint"):
        checkpoint_id(store, other)
    with pytest.raises(MissingError, match=r"no object's id begins so|it is no training/checkpoint"):
        checkpoint_id(store, other[:6])
