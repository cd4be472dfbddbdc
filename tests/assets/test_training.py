"""The asset of the training reads the arguments of its form, and shows what a session logged."""

import math
import os
import signal
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import definitions
from assets.forms import filled, form, params_from
from assets.training import TrainingParams, command_of, params_of, training_metadata
from pipeline.build.recipes import RECIPES
from pipeline.build.run_stage import BuildCallback
from pipeline.core.errors import ParamsError
from pipeline.pins.corpora import Corpus, load_corpora
from trainer.config.mix import divide_mix


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({}, "--snapshot live"),
        ({"follow": "live"}, "--follow live"),
        ({"mix": ("quick=2", "tiny=0.5")}, "--mix quick=2 --mix tiny=0.5"),
        ({"init_from": "mine@20"}, "--init-from mine@20"),
        (
            {"set": ("batch_rows=4",), "overrides": {"optimizer": {"weight_decay": 0.2}, "epoch_caps": {"heron": 2}}},
            "--set batch_rows=4 --set optimizer.weight_decay=0.2 --set epoch_caps.heron=2.0",
        ),
        ({"overrides": {"epoch_caps": {}}}, "latest --set epoch_caps={}"),
        ({"overrides": {"epoch_caps": {"*/MPL-2.0": 2}}}, 'latest --set epoch_caps."*/MPL-2.0"=2.0'),
        ({"set": ('epoch_caps."a.b"=2',)}, 'latest --set epoch_caps."a.b"=2'),
        ({"overrides": {"optimizer": {"muon": {"momentum": 0.9}}}}, "latest --set optimizer.muon.momentum=0.9"),
        (
            {"set": ("optimizer.muon=none",), "overrides": {"optimizer": {"muon": {"momentum": 0.9}}}},
            "latest --set optimizer.muon.momentum=0.9",
        ),
        ({"track": ("wandb", "mlflow")}, "--track wandb --track mlflow"),
        ({"mix": ("a=1,b=2",), "only": ("lane=x", "source=a")}, "--mix a=1,b=2 --only lane=x --only source=a"),
        ({}, "--device auto"),
        ({"device": "cuda", "precision": "bfloat16"}, "--device cuda --dtype bfloat16"),
        (
            {"evaluate_every": 5, "keep_last": 3, "keep_best": 1},
            "--evaluate-every 5 --evaluate-rows 32 --keep-last 3 --keep-best 1",
        ),
    ],
)
def test_a_training_reads_what_its_form_names(values: dict[str, object], part: str, tmp_path: Path) -> None:
    params = params_from(filled(TrainingParams.model_validate(values)), TrainingParams)
    line = " ".join(command_of("tiny", params, tmp_path))
    assert part in line
    is_mixture = bool(divide_mix(params.mix).snapshots)
    assert sum(f"--{name} " in line for name in ("snapshot", "follow")) + is_mixture == 1


@pytest.mark.parametrize(
    ("mix", "is_named"), [(("quick=2", "tiny=0.5"), False), (("syntax_only=1",), True), ((), True)]
)
def test_shares_of_rows_are_of_the_corpus_and_snapshots_name_their_own(
    mix: tuple[str, ...], is_named: bool, tmp_path: Path
) -> None:
    line = " ".join(command_of("tiny", TrainingParams(mix=mix, snapshot="candidate"), tmp_path))
    assert ("--corpus tiny" in line) is is_named
    assert ("--snapshot candidate" in line) is is_named


def test_a_declared_corpus_says_what_its_trainings_begin_with_and_a_launch_has_precedence(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\nbatch_rows = 2\n')
    (tmp_path / "corpora.toml").write_text(
        '[[corpus]]\nname = "other"\nrecipe = "tiny"\n[[corpus]]\nname = "mine"\nrecipe = "tiny"\n'
        '[corpus.training]\nrecipe = "mine.toml"\nset.optimizer.weight_decay = 0.05\nset.batch_rows = 4\n'
    )
    corpora = load_corpora(tmp_path / "corpora.toml", RECIPES.names)
    defs = definitions(BuildCallback(), corpora)
    op = defs.resolve_job_def("train_mine").run_config["ops"]["mine__training"]["config"]
    kind, recipe = params_of(corpora[1]), str(tmp_path / "mine.toml")

    def words(**launched: object) -> str:
        return " ".join(command_of("mine", params_from(form(kind)(**launched), kind), tmp_path))

    assert params_of(corpora[0]) is TrainingParams
    assert (op["recipe"], op["set"]) == (recipe, ["optimizer.weight_decay=0.05", "batch_rows=4"])
    assert f"--recipe {recipe} " in words(stop_after=3), "a launch that says nothing of it"
    assert words().endswith("--set optimizer.weight_decay=0.05 --set batch_rows=4")
    assert words(overrides={"batch_rows": 8}).endswith("--set optimizer.weight_decay=0.05 --set batch_rows=8")
    assert "--recipe tiny " in words(recipe="tiny")
    declared = "--set optimizer.weight_decay=0.05 --set batch_rows=4"
    assert words(set=[]).endswith(declared)
    assert words(set=["frozen=[]"]).endswith(f"{declared} --set frozen=[]"), "a launch that sets another field"
    assert words(set=["batch_rows=8"]).endswith("--set optimizer.weight_decay=0.05 --set batch_rows=8")
    with pytest.raises(dg.DagsterInvalidConfigError, match="smal"):
        defs.resolve_job_def("train_mine").execute_in_process(
            {"ops": {"mine__training": {"config": {"recipe": "smal"}}}}
        )


def test_terminate_ends_the_trainer_and_the_run_is_canceled_without_another_try(
    instance: dg.DagsterInstance, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    program = f"""
import signal, sys, time
def save(*_):
    print("saving", file=sys.stderr, flush=True)
    open({str(saved)!r}, "a").write("x")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", file=sys.stderr, flush=True)
time.sleep(60)
"""
    monkeypatch.setattr("assets.training.command_of", lambda *_: [sys.executable, "-c", program])

    class Terminate(BuildCallback):
        def said(self, text: str) -> None:
            (run,) = instance.get_runs()
            instance.report_run_canceling(run)
            os.kill(os.getpid(), signal.SIGINT)

    defs = definitions(Terminate(), [Corpus(name="tiny", recipe="tiny")])
    done = defs.resolve_job_def("train").execute_in_process(instance=instance, raise_on_error=False)

    assert saved.read_text() == "x", "the trainer was not told to save, or was told twice"
    (run,) = instance.get_runs()
    assert run.status is dg.DagsterRunStatus.CANCELED
    assert "STEP_UP_FOR_RETRY" not in [event.event_type_value for event in done.all_events]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("follow", "newest", "follow is 'newest'; expected a text, one of the form"),
        ("stop_after", 0, r"stop_after is 0; expected a whole number, at least 1, at most 10,000,000 \(Step at which"),
        ("recipe", "tinny", "recipe is 'tinny'; expected one of tiny, small"),
        ("recipe_file", "nowhere.toml", "nowhere.toml: there is no such file"),
        ("set", ["batch_row=4"], "set: batch_row: there is no such field.*Did you mean batch_rows"),
        (
            "set",
            ["batch_rows=0"],
            r"set: batch_rows: it is 0; expected a whole number, at least 1, .*\(Packed rows in one",
        ),
        ("set", ["batch_rows=1", "batch_rows=2"], "they set batch_rows to 1 and to 2"),
        ("snapshot", "live\0", "field `snapshot`: it holds a NUL character; expected text without one"),
        ("mix", ["a=1", "b\0=1"], "field `mix`: it holds a NUL character"),
        ("set", ["dtype=bfloat16"], "set and precision: they set dtype to 'bfloat16' and to 'float32'"),
    ],
)
def test_a_training_that_could_not_begin_is_refused_before_it_starts(field: str, value: Any, said: str) -> None:
    with pytest.raises(ParamsError, match=said):
        params_from({"precision": "float32", field: value}, TrainingParams)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_no_number_of_a_form_is_lost(value: float) -> None:
    given: Any = form(TrainingParams)(overrides={"optimizer": {"max_gradient_norm": value}})  # type: ignore[call-arg]  # derived
    with pytest.raises(ParamsError, match=f"overrides.optimizer.max_gradient_norm is {value}; expected a number"):
        params_from(given, TrainingParams)


def test_a_long_training_shows_its_first_and_last_loss_and_few_between() -> None:
    losses = [9.0 - step / 1_000 for step in range(1_234)]
    result = {
        "losses": losses,
        "final_loss": losses[-1],
        "steps": len(losses),
        "num_parameters": 291_756,
        "unchanged": False,
        "seeds": {"global": 42},
        "environment": {"torch": "2"},
        "snapshot_id": "a",
        "checkpoint_id": "b",
        "parameters_sha256": "c",
        "certificate": "d",
        "tokens_per_second": 1_700,
        "mixture": {},
        "adoptions": [{"position": 12, "old": "a", "new": "e"}],
    }
    metadata = training_metadata(result, "tiny", Path("runs"))
    assert metadata["adoptions"].records[0].data == result["adoptions"][0]
    assert "mixture" not in metadata
    assert metadata["tokens per second"] == 1_700
    unchanged = training_metadata(result | {"unchanged": True, "tokens_per_second": 0}, "tiny", Path("runs"))
    assert "tokens per second" not in unchanged
    records = metadata["losses"].records

    assert [records[0].data["step"], records[-1].data["step"]] == [1, 1_234]
    assert len(records) <= 13


def test_a_launch_that_names_no_snapshot_is_refused_by_its_field() -> None:
    with pytest.raises(ParamsError, match="snapshot is ''; expected a text, length at least 1"):
        params_from({"snapshot": ""}, TrainingParams)


def test_a_recipe_that_is_null_is_told_with_the_names_that_it_takes() -> None:
    found = "launchpad form of training: recipe is null; expected one of tiny, "
    with pytest.raises(ParamsError, match=found):
        params_from({"recipe": None}, TrainingParams)
