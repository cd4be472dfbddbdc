"""Runs by options of a recipe: mixtures that change at a step, caps on epochs, and a model with a structure embedding."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY as TINY_CORPUS
from pipeline.build.recipes import pins_of
from pipeline.build.run_stage import run_stages
from pipeline.core.errors import SnapshotError, TrainingError
from pipeline.store.store import Store
from tests.conftest import known_answers
from tests.support.made.made_snapshot import commit_made
from trainer.checkpoint.checkpoint import load
from trainer.config.model import StructureConfig
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.data.batch import Batch
from trainer.data.row_selection import Dimension, RowSelection
from trainer.inference.sampling import open_trained
from trainer.inference.scores import ScoreOptions, exact_middles, held_out_loss
from trainer.train.evaluation import EvaluationSchedule
from trainer.train.loop import train
from trainer.train.session import RunInputs, TrainSession
from trainer.train.training_state import Training

TINY = training_recipe("tiny")
CHANGES = [{"at_step": 2, "weights": {"lantern": 0, "odds": 4}}, {"at_step": 5, "weights": {"lantern": 8, "q*": 0}}]
STEPS = 8


def config_of(**changes: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({**dict(TINY), "batch_rows": 4, **changes})


@pytest.fixture(scope="module")
def mixed(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy of the built store, with five sources, which trainings may write."""
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


def test_rows_of_the_first_two_epochs_are_read_as_stored_where_the_recipe_says_so(mixed: Store) -> None:
    loader = start(mixed, epoch_order="published").loader
    sources, epochs, rows = loader.locate(0, 4 * loader.num_rows)
    of_one = rows[(sources == 0) & (epochs <= 2)]
    size = len(loader.sources[0].rows)

    assert of_one.tolist() == [*range(size), *range(size)]
    permuted, _, others = start(mixed).loader.locate(0, len(rows))
    assert others[permuted == 0][:size].tolist() != list(range(size))


def test_the_shares_are_those_of_the_steps(mixed: Store) -> None:
    training = start(mixed, mixture_changes=CHANGES)
    names = [source.name for source in training.loader.sources]
    first, then, last = (sources_drawn(training, 4 * a, 4 * b) for a, b in ((0, 2), (2, 5), (5, 400)))

    assert first[names.index("lantern")] > 0
    assert then[names.index("lantern")] == 0
    assert last[names.index("quarry")] == 0
    assert last[names.index("lantern")] > first[names.index("lantern")]


def test_a_run_with_shares_says_which_hold_from_each_step_on(
    mixed: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = RowSelection((), Dimension.SOURCE, (("lantern", 0.6), ("odds", 0.2), ("quarry", 0.2)))
    changes = [{"at_step": 1, "weights": {"lantern": 2}}, {"at_step": 2, "weights": {"lantern": 0}}]
    inputs = RunInputs(mixed.ref("tiny", "live") or "", config_of(mixture_changes=changes), 42, selection=shares)
    session = TrainSession(inputs, "tiny", 1, 5, tmp_path, run="shares")
    result = train(mixed, session)
    told = capsys.readouterr().err.splitlines()[1:4]

    assert told == [
        "shares of tokens from step 0 on: lantern 60.00 %, odds 20.00 %, quarry 20.00 %",
        "shares of tokens from step 1 on: lantern 75.00 %, odds 12.50 %, quarry 12.50 %",
        "shares of tokens from step 2 on: lantern 0.00 %, odds 50.00 %, quarry 50.00 %",
    ]
    assert [each["at_step"] for each in result["shares"]] == [0, 1, 2]
    assert result["shares"][1]["shares"] == pytest.approx({"lantern": 0.75, "odds": 0.125, "quarry": 0.125}, abs=1e-3)
    assert json.loads((tmp_path / "result.json").read_text())["shares"] == result["shares"]


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


def test_a_run_ends_when_every_source_has_reached_its_cap(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = TrainSession(
        RunInputs(commit_made(store), config_of(epoch_caps={"made": 0.75}), 42), "tiny", 20, 5, tmp_path, run="capped"
    )
    ended = train(store, session)
    told = capsys.readouterr().err
    again = train(store, replace(session, resume="latest"))

    assert "all sources have reached their caps after step 6: the run ends there, before step 20" in told
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
            "have reached their caps after 1 rows; expected a batch",
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
            {"mixture_changes": [{"at_step": 2, "weights": {"*": 0}}]},
            {},
            SnapshotError,
            "the mixture from step 2 on: all sources have the weight 0; expected one at least that is read",
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


STRUCTURED = TINY.model_copy(update={"model": TINY.model.model_copy(update={"structure": StructureConfig()})})


@pytest.fixture(scope="module")
def structured(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy of the built structured, in which the candidate was tokenized again, with structure."""
    root = tmp_path_factory.mktemp("structured") / "store"
    shutil.copytree(tiny_store.root, root)
    tokenize = TINY_CORPUS.params.tokenize.model_copy(update={"with_structure": True})
    params = TINY_CORPUS.params.model_copy(update={"tokenize": tokenize})
    request = BuildRequest("tiny", params, pins_of(TINY_CORPUS), "a test", 1)
    with known_answers(tiny_store), open_build(request, Store(root)) as build:
        *_, verified = run_stages(build)
    assert not verified.blocked, [verdict.sentence for verdict in verified.verdicts if not verdict.passed]
    return Store(root)


def session_of(snapshot_id: str, out: Path, stop_after: int, **more: Any) -> TrainSession:
    return TrainSession(
        RunInputs(snapshot_id, STRUCTURED, 42), "structured", stop_after, 2, out, run="structured", **more
    )


def test_structure_is_trained_on_and_resumed_and_certified(structured: Store, tmp_path: Path) -> None:
    candidate = structured.ref("tiny", "candidate") or ""
    session = session_of(candidate, tmp_path / "out", 4, evaluation=EvaluationSchedule(2, 4))
    train(structured, replace(session, stop_after=2))
    resumed = train(structured, replace(session, resume="latest", num_workers=1))
    straight = train(structured, replace(session, run="straight", out=tmp_path / "straight"))
    assert resumed["checkpoint_id"] == straight["checkpoint_id"]
    trained = open_trained(structured, straight["checkpoint_id"])
    assert trained.model.structure is not None
    assert trained.model.structure.out_DN.abs().sum() > 0, "what starts at zero has learned"
    assert held_out_loss(trained, 4)["bits_per_byte"] > 0
    assert exact_middles(trained, ScoreOptions(num_middles=2, num_tokens=20))["num_middles"] == 2


def test_the_certificate_sees_structure_and_the_same_ids_without_it(structured: Store) -> None:
    candidate = structured.ref("tiny", "candidate") or ""
    with_, without = (Training(structured, RunInputs(candidate, config, 42)) for config in (STRUCTURED, TINY))
    batch = with_.loader.batch_at(0, 4)
    plain = without.loader.batch_at(0, 4)
    assert np.array_equal(batch.input_ids_BT, plain.input_ids_BT)
    assert plain.structure_kind_BT is None
    assert batch.structure_kind_BT is not None
    assert len(np.unique(batch.structure_kind_BT)) > 2
    before = _step(with_, batch)
    again = Training(structured, RunInputs(candidate, STRUCTURED, 42))
    assert before != _step(again, replace(batch, structure_kind_BT=batch.structure_kind_BT + 1))


def _step(training: Training, batch: Batch) -> bytes:
    training.step(batch)
    return training.history.data


def test_rows_without_structure_are_refused_with_the_fields_that_would_mend_it(
    structured: Store, tmp_path: Path
) -> None:
    live = structured.ref("tiny", "live") or ""
    with pytest.raises(SnapshotError, match=r"no structure.*tokenize\.with_structure.*model\.structure"):
        train(structured, replace(session_of(live, tmp_path / "out", 1), run="without"))
