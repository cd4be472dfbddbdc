"""A mixture that changes at a step, and caps on epochs: a run is the same wherever it was stopped, and ends when all is read."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.core.errors import SnapshotError, TrainingError
from pipeline.store.store import Store
from tests.support.made.made_snapshot import commit_made
from trainer.checkpoint.checkpoint import load
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.train.loop import train
from trainer.train.session import RunInputs, TrainSession
from trainer.train.training_state import Training, position_of_step

TINY = training_recipe("tiny")
CHANGES = [{"at_step": 2, "weights": {"lantern": 0, "odds": 4}}, {"at_step": 5, "weights": {"lantern": 8, "q*": 0}}]
STEPS = 8


def config_of(**changes: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({**dict(TINY), "batch_rows": 4, **changes})


@pytest.fixture(scope="module")
def mixed(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy of the built store, with four sources, which trainings may write."""
    return Store(shutil.copytree(tiny_store.root, tmp_path_factory.mktemp("mixed") / "store"))


def trained(training: Training, upto: int) -> Training:
    while training.num_steps < upto:
        training.step(training.loader.batch_at(training.position, training.config.batch_rows))
    return training


def start(store: Store, **changes: Any) -> Training:
    return Training(store, RunInputs(store.ref("tiny", "live") or "", config_of(**changes), 42))


def sources_drawn(training: Training, first: int, last: int) -> np.ndarray:
    places, _, _ = training.loader.locate(first, last - first)
    return np.bincount(places, minlength=len(training.loader.sources)) / (last - first)


def test_stopped_at_any_step_it_reads_the_same_rows(mixed: Store) -> None:
    declared = {"mixture_changes": CHANGES, "epoch_caps": {"odds": 0.25}}
    whole, resumed = trained(start(mixed, **declared), STEPS), start(mixed, **declared)
    for stop in range(1, STEPS + 1):
        before = trained(resumed, stop)
        resumed = start(mixed, **declared)
        resumed.restore(before.checkpoint())

    assert resumed.history.certificate == whole.history.certificate
    assert whole.history.certificate != trained(start(mixed), STEPS).history.certificate


def test_the_shares_are_those_of_the_steps(mixed: Store) -> None:
    training = start(mixed, mixture_changes=CHANGES)
    names = [source.name for source in training.loader.sources]
    first, then, last = (sources_drawn(training, 4 * a, 4 * b) for a, b in ((0, 2), (2, 5), (5, 400)))

    assert first[names.index("lantern")] > 0
    assert then[names.index("lantern")] == 0
    assert last[names.index("quarry")] == 0
    assert last[names.index("lantern")] > first[names.index("lantern")]


def test_a_change_stays_at_its_step_after_a_resume_with_other_batches(mixed: Store) -> None:
    half = trained(start(mixed, mixture_changes=CHANGES), 3)
    training = start(mixed, mixture_changes=CHANGES, batch_rows=8)
    training.restore(half.checkpoint(), {"config.batch_rows": [4, 8]})
    names = [source.name for source in training.loader.sources]
    lantern, position = names.index("lantern"), 3 * 4 + 2 * 8

    assert sources_drawn(training, 3 * 4, position)[lantern] == 0
    assert sources_drawn(training, position, position + 80)[lantern] > 0
    again = start(mixed, mixture_changes=CHANGES, batch_rows=8)
    again.restore(trained(training, 4).checkpoint())
    assert trained(again, 7).history.certificate == trained(training, 7).history.certificate


def test_the_position_of_a_step_counts_the_batches_as_they_were() -> None:
    sizes = [(3, 4, 8), (5, 8, 2)]

    assert [position_of_step(step, sizes, 2) for step in (0, 2, 3, 4, 5, 9)] == [0, 8, 12, 20, 28, 36]
    assert position_of_step(9, [], 4) == 36


def test_a_run_ends_when_every_source_has_reached_its_cap(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = TrainSession(
        RunInputs(commit_made(store), config_of(epoch_caps={"made": 0.75}), 42), "tiny", 20, 5, tmp_path, run="capped"
    )
    ended = train(store, session)
    told = capsys.readouterr().err
    again = train(store, replace(session, resume="latest"))

    assert "no source has rows left after step 6: the run ends there, before step 20" in told
    assert (ended["steps"], ended["finished"], again["unchanged"]) == (6, True, True)
    assert ended["loader"]["position"] == 24 == load(store, again["checkpoint_id"]).loader["position"]
    assert json.loads((tmp_path / "result.json").read_text())["steps"] == 6


@pytest.mark.parametrize(
    ("changes", "session_changes", "error", "message"),
    [
        (
            {"epoch_caps": {"made": 0.05}},
            {},
            TrainingError,
            "the weight 0, after 1 rows; expected a batch",
        ),
        (
            {"epoch_caps": {"made": 1}},
            {"follow": "made/live"},
            TrainingError,
            "a snapshot that it adopts is counted anew",
        ),
        ({"frozen": ["blocks.0.*"]}, {}, TrainingError, "frozen pattern 'blocks.0.*': it matches no parameter"),
        ({"mixture_changes": [{"at_step": 1, "weights": {"mad": 1}}]}, {}, SnapshotError, r"Did you mean made\?"),
        (
            {"mixture_changes": [{"at_step": 0, "weights": {"made": 0}}]},
            {},
            TrainingError,
            "the weight 0, after 0 rows",
        ),
    ],
)
def test_what_names_nothing_is_refused_and_nothing_is_written(
    store: Store,
    tmp_path: Path,
    changes: dict[str, Any],
    session_changes: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    inputs = RunInputs(commit_made(store), config_of(**changes), 42)
    session = TrainSession(inputs, "tiny", 20, 5, tmp_path / "out", run="refused", **session_changes)

    with pytest.raises(error, match=message):
        train(store, session)
    assert not (tmp_path / "out").exists()
    assert store.refs("runs/refused") == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mixture_changes": [CHANGES[1], CHANGES[0]]}, r"their steps are \[5, 2\]; expected each once, in ascending"),
        ({"mixture_changes": [{"at_step": 1, "weights": {}}]}, "at least 1 item"),
        ({"mixture_changes": [{"at_step": 1, "weights": {"made": -1}}]}, "greater than or equal to 0"),
        ({"epoch_caps": {"made": 0}}, "greater than 0"),
    ],
)
def test_a_schedule_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_of(**changes)
