"""Initial weights are a function of the seed and the parameter's name alone."""

import math

import pytest
import torch
from torch import nn

from trainer.config.presets import PRESETS, preset
from trainer.model.hybrid import TOKEN_STANDARD_DEVIATION, HybridModel
from trainer.model.initialization import (
    Identity,
    LogOfUniform,
    Normal,
    StepSizeBias,
    initial_value,
    initialize,
    parameter_specs,
)
from trainer.model.segments import describe_rows


def initialized(config, seed: int = 42, vocabulary_size: int = 64) -> dict[str, torch.Tensor]:
    model = HybridModel(config, vocabulary_size)
    initialize(model, seed)
    return dict(model.named_parameters())


def test_every_parameter_is_written_and_finite() -> None:
    for name, parameter in initialized(preset("tiny")).items():
        assert parameter.isfinite().all(), name


def test_two_builds_with_one_seed_are_equal_and_another_seed_differs() -> None:
    first, second, other = (initialized(preset("tiny"), seed) for seed in (42, 42, 43))

    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["embedding_VD"], other["embedding_VD"])


def test_a_branch_that_is_added_moves_no_other_parameter(config_of) -> None:
    without, with_branch = initialized(config_of("AEMR", has_engram=False)), initialized(config_of("AEMR"))

    assert set(without) < set(with_branch)
    assert all(torch.equal(without[name], with_branch[name]) for name in without)


BRANCH_ENDS = ("out.weight", "out_EFD", "engram.value.weight")
"""The last matrices of the residual branches, which begin smaller the more branches there are."""


def test_a_layer_that_is_added_moves_no_earlier_parameter_but_scales_the_ends_of_branches(config_of) -> None:
    short, long = initialized(config_of("AEM")), initialized(config_of("AEMR"))
    ends = {name for name in short if name.endswith(BRANCH_ENDS)}

    assert all(torch.equal(short[name], long[name]) for name in short.keys() - ends)
    for name in ends:
        torch.testing.assert_close(long[name], short[name] * (3 / 4) ** 0.5)
    assert len(ends) == 5


def test_the_update_of_no_block_begins_beyond_its_share_of_the_stream() -> None:
    """Each layer of the normed stream, at a width of 256: the variances of all updates together are at most about one."""
    config = preset("tiny").model_copy(update={"width": 256, "depth": 12})
    model = HybridModel(config, 64)
    initialize(model, 42)
    generator = torch.Generator().manual_seed(0)
    hidden_BTD = torch.randn(2, 128, 256, generator=generator)
    rows = describe_rows(torch.randint(64, (2, 128), generator=generator), torch.ones(2, 128, dtype=torch.long))
    with torch.no_grad():
        sizes = [float(layer.block(hidden_BTD, rows).update_BTD.square().mean().sqrt()) for layer in model.layers]

    assert max(sizes) < 12**-0.5 * 2.5, sizes


@pytest.mark.parametrize("name", PRESETS.names)
def test_a_token_enters_the_stream_of_every_preset_at_a_deviation_of_one(name: str) -> None:
    assert preset(name).embedding_multiplier * TOKEN_STANDARD_DEVIATION == pytest.approx(1.0)


def test_the_first_layer_does_not_bury_which_token_it_is() -> None:
    """The stream after it is nearer to the own token's embedding than to any other; without the multiplier it is that of few."""
    model = HybridModel(preset("tiny"), 512)
    initialize(model, 42)
    ids_BT = torch.randint(512, (2, 128), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        entering_BTD = model.embedding_VD[ids_BT] * preset("tiny").embedding_multiplier
        hidden_BTD, _ = model.layers[0](entering_BTD, describe_rows(ids_BT, torch.ones_like(ids_BT)))
        nearest_BT = (hidden_BTD @ model.embedding_VD.T).argmax(-1)

    assert (nearest_BT == ids_BT).float().mean() > 0.99


def test_the_first_loss_is_the_logarithm_of_the_vocabulary_and_half_the_variance_of_the_logits() -> None:
    config = preset("tiny").model_copy(update={"width": 1024, "depth": 1, "pattern": "E", "is_head_tied": False})
    model = HybridModel(config, 4096)
    initialize(model, 42)
    ids_BT = torch.randint(4096, (2, 256), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits_MV = model.logits(model(ids_BT, torch.ones_like(ids_BT))).flatten(0, 1)
    loss = nn.functional.cross_entropy(logits_MV, ids_BT.roll(-1, 1).flatten())

    assert float(loss) == pytest.approx(math.log(4096) + 0.0002 * 1024, abs=0.08)


def test_no_global_generator_is_read_or_moved() -> None:
    torch.manual_seed(1)
    first = initialized(preset("tiny"))
    state_before = torch.get_rng_state()
    torch.rand(3)
    second = initialized(preset("tiny"))
    torch.manual_seed(1)

    assert torch.equal(torch.get_rng_state(), state_before)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_two_parameters_of_one_shape_begin_differently() -> None:
    shape, initializer = torch.Size((4, 4)), Normal(1.0)

    assert not torch.equal(initial_value(0, "a", shape, initializer), initial_value(0, "b", shape, initializer))


def test_initializers_keep_their_ranges() -> None:
    shape, generator = torch.Size((2000,)), torch.Generator().manual_seed(0)

    step_sizes = nn.functional.softplus(StepSizeBias(1e-3, 0.1).draw(shape, generator))
    rates = LogOfUniform(1.0, 16.0).draw(shape, generator).exp()

    assert 0.99e-3 <= step_sizes.min() < 1.1e-3
    assert 0.09 < step_sizes.max() <= 0.101
    assert abs(step_sizes.log().median().exp() - 1e-2) < 2e-3, "log-uniform, so the median is the geometric mean"
    assert rates.min() >= 1.0
    assert rates.max() <= 16.0001
    assert Identity().draw(torch.Size((3, 2, 2)), generator).tolist() == [[[1, 0], [0, 1]]] * 3


def test_a_parameter_without_a_declaration_is_refused_by_name() -> None:
    module = nn.Module()
    module.forgotten = nn.Parameter(torch.zeros(1))

    with pytest.raises(TypeError, match="forgotten"):
        list(parameter_specs(module))
