"""A session: equal runs share a name, so that they find their checkpoints."""

from dataclasses import replace
from pathlib import Path

from trainer.config.training_config import training_recipe
from trainer.train.session import RunInputs, TrainSession

INPUTS = RunInputs("a" * 64, training_recipe("tiny"), 42)
SESSION = TrainSession(INPUTS, "tiny", stop_after=4, save_every=2, out=Path("out"))


def test_a_name_depends_on_the_inputs_alone() -> None:
    assert SESSION.run_name.startswith("tiny-")
    assert replace(SESSION, stop_after=9, num_workers=2, out=Path("other")).run_name == SESSION.run_name
    assert replace(SESSION, inputs=replace(INPUTS, seed=43)).run_name != SESSION.run_name
    assert replace(SESSION, run="mine").run_name == "mine"


def test_a_run_that_follows_a_ref_has_one_name_whatever_the_ref_names() -> None:
    following = replace(SESSION, follow="quick/live")
    moved = replace(following, inputs=replace(INPUTS, snapshot_id="b" * 64))

    assert following.run_name == moved.run_name != SESSION.run_name


def test_a_mixture_is_part_of_the_identity_where_there_is_one() -> None:
    mixture = (("a" * 64, 1.0), ("b" * 64, 2.0))

    assert "mixture" not in INPUTS.identity
    assert replace(INPUTS, mixture=mixture).identity["mixture"] == dict(mixture)
