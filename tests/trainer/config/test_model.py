"""A model configuration that cannot be built is refused, and the message names what was wrong."""

import pytest
from pydantic import ValidationError

from pipeline.core.errors import ParamsError
from trainer.config.model import (
    AlgorithmConfig,
    AttentionConfig,
    EngramConfig,
    ExpertsConfig,
    Mamba3Config,
    ModelConfig,
    MuonConfig,
    OptimizerConfig,
)
from trainer.config.presets import PRESETS, preset


def test_a_pattern_is_tiled_to_the_depth_and_its_last_tile_may_be_cut() -> None:
    config = ModelConfig(pattern="AEMR", depth=6, width=64)

    assert "".join(config.layer_kinds) == "AEMRAE"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "AXMQ"}, "unknown letters Q, X in 'AXMQ'"),
        ({"depth": 0}, "depth"),
        ({"mamba3": Mamba3Config(head_size=48)}, "48 does not divide twice the width 64"),
        (
            {"attention": AttentionConfig(engram=EngramConfig(layers=(1,)))},
            r"layer 1 is not an A layer; those are \[0\]",
        ),
        ({"attention": AttentionConfig(engram=EngramConfig(layers=(4,)))}, "layer 4 is not an A layer"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModelConfig.model_validate({"pattern": "AEMR", "depth": 4, "width": 64, **changes})


def test_parts_refuse_sizes_that_do_not_fit_each_other() -> None:
    with pytest.raises(ValidationError, match="5 is not a multiple of num_key_value_heads 2"):
        AttentionConfig(num_query_heads=5, num_key_value_heads=2)
    with pytest.raises(ValidationError, match="5 is more than num_experts 4"):
        ExpertsConfig(num_experts=4, num_selected=5)
    with pytest.raises(ValidationError, match="100 is not below num_horizon_steps 100"):
        OptimizerConfig(num_warmup_steps=100, num_horizon_steps=100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"decay_fraction": 0.3},
            "decay_fraction: it has no effect with schedule cosine, only with warmup-stable-decay",
        ),
        (
            {"schedule": "warmup-stable-decay", "decay_fraction": 1},
            "falls for 1000 of 1000 steps, and 10 are the warm-up",
        ),
        ({"schedule": "warmup-stable-decay", "decay_shape": "steep"}, "'linear', 'cosine' or '1-sqrt'"),
        ({"annealing": {"num_steps": 5, "floor_fraction": 0.5}}, "0.5 is above final_learning_rate_fraction 0.1"),
    ],
)
def test_a_schedule_whose_settings_do_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OptimizerConfig.model_validate(changes)


def test_settings_of_a_schedule_are_stored_where_it_is_chosen() -> None:
    stable = OptimizerConfig.model_validate({"schedule": "warmup-stable-decay", "annealing": {"num_steps": 5}})
    stored = stable.model_dump(mode="json")

    assert stored.keys() - OptimizerConfig().model_dump(mode="json").keys() == {
        "annealing",
        "decay_fraction",
        "decay_shape",
    }
    assert OptimizerConfig.model_validate(stored) == stable


def test_every_field_of_every_part_says_what_it_is() -> None:
    for model in (ModelConfig, AttentionConfig, EngramConfig, ExpertsConfig, Mamba3Config, OptimizerConfig):
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"


def test_an_unknown_preset_is_refused_with_the_names_that_exist() -> None:
    assert preset("tiny") is PRESETS["tiny"].model
    with pytest.raises(ParamsError, match="model preset huge: it is not registered; expected one of tiny, small, base"):
        preset("huge")


def test_the_matrices_have_one_algorithm() -> None:
    algorithm = AlgorithmConfig(name="sign", settings={"factor": 0.5})

    assert OptimizerConfig(algorithm=algorithm).model_dump(mode="json")["algorithm"] == algorithm.model_dump()
    assert "algorithm" not in OptimizerConfig().model_dump(mode="json")
    with pytest.raises(ValidationError, match="algorithm: sign and muon are both given; expected one of them"):
        OptimizerConfig(muon=MuonConfig(), algorithm=algorithm)
