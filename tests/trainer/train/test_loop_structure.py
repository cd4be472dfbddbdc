"""A model with a structure embedding, from the made corpus to a checkpoint and back."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import run_stages
from pipeline.core.errors import SnapshotError
from pipeline.store.store import Store
from trainer.config.model import StructureConfig
from trainer.config.training_config import training_recipe
from trainer.data.batch import Batch
from trainer.inference.sampling import open_trained
from trainer.inference.scores import ScoreOptions, exact_middles, held_out_loss
from trainer.train.evaluation import EvaluationSchedule
from trainer.train.loop import train
from trainer.train.session import RunInputs, TrainSession
from trainer.train.training_state import Training

_TINY = training_recipe("tiny")
CONFIG = _TINY.model_copy(update={"model": _TINY.model.model_copy(update={"structure": StructureConfig()})})


@pytest.fixture(scope="module")
def store(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy of the built store, in which the candidate was tokenized again, with structure."""
    root = tmp_path_factory.mktemp("structured") / "store"
    shutil.copytree(tiny_store.root, root)
    tokenize = TINY.params.tokenize.model_copy(update={"with_structure": True})
    params = TINY.params.model_copy(update={"tokenize": tokenize})
    with open_build(BuildRequest("tiny", params, pins_of(TINY), "a test", 1), Store(root)) as build:
        *_, verified = run_stages(build)
    assert not verified.blocked, [verdict.sentence for verdict in verified.verdicts if not verdict.passed]
    return Store(root)


def session_of(snapshot_id: str, out: Path, stop_after: int, **more: Any) -> TrainSession:
    return TrainSession(RunInputs(snapshot_id, CONFIG, 42), "structured", stop_after, 2, out, run="structured", **more)


def test_structure_is_trained_on_and_resumed_and_certified(store: Store, tmp_path: Path) -> None:
    candidate = store.ref("tiny", "candidate") or ""
    session = session_of(candidate, tmp_path / "out", 4, evaluation=EvaluationSchedule(2, 4))
    train(store, replace(session, stop_after=2))
    resumed = train(store, replace(session, resume="latest", num_workers=1))
    straight = train(store, replace(session, run="straight", out=tmp_path / "straight"))
    assert resumed["checkpoint_id"] == straight["checkpoint_id"]
    trained = open_trained(store, straight["checkpoint_id"])
    assert trained.model.structure is not None
    assert trained.model.structure.out_DN.abs().sum() > 0, "what starts at zero has learned"
    assert held_out_loss(trained, 4)["bits_per_byte"] > 0
    assert exact_middles(trained, ScoreOptions(num_middles=2, num_tokens=20))["num_middles"] == 2


def test_the_certificate_sees_structure_and_the_same_ids_without_it(store: Store) -> None:
    candidate = store.ref("tiny", "candidate") or ""
    with_, without = (Training(store, RunInputs(candidate, config, 42)) for config in (CONFIG, _TINY))
    batch = with_.loader.batch_at(0, 4)
    plain = without.loader.batch_at(0, 4)
    assert np.array_equal(batch.input_ids_BT, plain.input_ids_BT)
    assert plain.structure_kind_BT is None
    assert batch.structure_kind_BT is not None
    assert len(np.unique(batch.structure_kind_BT)) > 2
    before = _step(with_, batch)
    again = Training(store, RunInputs(candidate, CONFIG, 42))
    assert before != _step(again, replace(batch, structure_kind_BT=batch.structure_kind_BT + 1))


def _step(training: Training, batch: Batch) -> bytes:
    training.step(batch)
    return training.history.data


def test_rows_without_structure_are_refused_with_the_fields_that_would_mend_it(store: Store, tmp_path: Path) -> None:
    live = store.ref("tiny", "live") or ""
    with pytest.raises(SnapshotError, match=r"no structure.*tokenize\.with_structure.*model\.structure"):
        train(store, replace(session_of(live, tmp_path / "out", 1), run="without"))
