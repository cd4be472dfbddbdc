"""Rerun of two trainings that differ: the first step and tensor, and a side that is not repeatable."""

import shutil
from dataclasses import replace

import pytest

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import Checkpoint, save
from trainer.config.training_config import training_recipe
from trainer.proof.rerun import rerun
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


@pytest.fixture(scope="module")
def store(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("rerun") / "store"
    shutil.copytree(tiny_store.root, root)
    return Store(root)


def trained(store: Store, num_steps: int, shared: Checkpoint | None = None, **changes: float) -> Checkpoint:
    """Train the smallest recipe, from `shared` if given, and record its tensors every second step."""
    config = training_recipe("tiny").model_copy(update={"certify_every": 2, **changes})
    snapshot_id = store.ref("tiny", "live") or ""
    training = Training(store, RunInputs(snapshot_id, config, 42))
    if shared is not None:
        training.restore(replace(shared, history=shared.history.copy()))
    while training.num_steps < num_steps:
        training.step(training.loader.batch_at(training.position, config.batch_rows))
    return training.checkpoint()


@pytest.fixture(scope="module")
def repeatable(store: Store) -> Checkpoint:
    shared = trained(store, 3)
    with store.writer("runs/r", "a test") as scratch:
        save(store, scratch, shared)
    return trained(store, 6, shared)


def test_the_first_tensor_is_named_at_its_step_though_the_record_shows_it_later(
    store: Store, repeatable: Checkpoint
) -> None:
    other = trained(store, 4, balance_rate=0.5)
    found = rerun(store, repeatable, other)

    assert repeatable.history.losses[0] == other.history.losses[0]
    assert (found.base_step, found.last_step, found.first_step) == (0, 2, 1)
    assert [name.rpartition(".")[2] for name in found.first_tensors] == ["selection_bias_E"]
    assert found.left_record_at == [None, None]


def test_a_side_that_does_not_repeat_is_named_and_the_last_shared_checkpoint_is_where_the_rerun_begins(
    store: Store, repeatable: Checkpoint
) -> None:
    history = repeatable.history.copy()
    history.losses[5] += 2**-18
    found = rerun(store, repeatable, replace(repeatable, history=history))

    assert (found.base_step, found.last_step, found.first_step) == (3, 6, None)
    assert found.left_record_at == [None, 6]
    assert "the second is not repeatable: run again, it leaves its own record at step 6" in found.lines


def test_equal_trainings_are_not_run_again(store: Store, repeatable: Checkpoint) -> None:
    with pytest.raises(TrainingError, match="no common step differs"):
        rerun(store, repeatable, repeatable)
