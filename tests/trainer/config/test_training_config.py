"""Training recipes: named, stored without what is off, and their batches cut into a power of two of micro-batches."""

import pytest
from pydantic import ValidationError

from pipeline.core.errors import ParamsError
from pipeline.core.params import digest
from pipeline.core.settings.overrides import setting
from trainer.config.choices import CompileMode
from trainer.config.training_config import TRAINING_RECIPES, TrainingConfig, training_recipe

IDENTITIES = {"tiny": "4f9d3b26e9bf", "small": "146bbbb9afa4", "base": "6ebc97bba46d", "nam52": "8cc55d065d7e"}
"""The first digits of the digest of each recipe as a run stores it. Runs are named after it: a new option must not move it."""


def test_no_option_moves_the_identity_of_a_shipped_recipe() -> None:
    found = {name: digest(TRAINING_RECIPES[name].config.model_dump(mode="json"))[:12] for name in IDENTITIES}

    assert found == IDENTITIES


def test_an_unknown_recipe_is_refused_with_the_names_that_exist() -> None:
    assert training_recipe("tiny") is TRAINING_RECIPES["tiny"].config
    with pytest.raises(
        ParamsError, match="training recipe huge: it is not registered; expected one of tiny, small, base"
    ):
        training_recipe("huge")


def test_what_is_off_is_left_out_of_the_identity() -> None:
    tiny = training_recipe("tiny")
    stored = tiny.model_dump(mode="json")

    assert not {"dtype", "attention", "compile", "compile_backend", "epoch_order"} & stored.keys()
    assert "structure" not in stored["model"]
    assert TrainingConfig.model_validate(stored) == tiny
    compiled = tiny.model_copy(update={"compile": CompileMode.BUDGETED}).model_dump(mode="json")
    assert compiled.keys() - stored.keys() == {"compile", "compile_backend"}
    assert training_recipe("tiny", setting("epoch_order=published")).model_dump()["epoch_order"] == "published"


def test_micro_batches_are_a_power_of_two() -> None:
    assert training_recipe("small").num_micro_batches == 4
    with pytest.raises(ValidationError, match="3 does not cut 4 rows"):
        TrainingConfig.model_validate({**dict(training_recipe("tiny")), "micro_batch_rows": 3})
