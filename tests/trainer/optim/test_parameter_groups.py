"""Groups, schedule and clipping: who decays, how fast each step learns, and one order of summation."""

import math

import pytest
import torch
from torch import nn

from trainer.config.model import OptimizerConfig, Schedule
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.optim.parameter_groups import build_optimizer, clip_gradients, learning_rate, set_learning_rate


def groups_by_name(optimizer: torch.optim.Optimizer) -> dict[str, dict]:
    return {group["name"]: group for group in optimizer.param_groups}


def test_matrices_decay_tables_learn_five_times_faster_and_the_rest_does_neither() -> None:
    optimizer = build_optimizer(HybridModel(preset("tiny"), 64), OptimizerConfig(weight_decay=0.1))
    set_learning_rate(optimizer, 0.01)

    groups = groups_by_name(optimizer)

    assert {name: (group["weight_decay"], group["lr"]) for name, group in groups.items()} == {
        "matrices": (0.1, 0.01),
        "plain": (0.0, 0.01),
        "engram_tables": (0.0, 0.05),
    }
    assert groups["engram_tables"]["param_names"] == ["layers.0.block.engram.table_RW"]
    assert "layers.1.block.into_EDF" in groups["matrices"]["param_names"]
    plain = groups["plain"]["param_names"]
    assert {"embedding_VD", "norm.weight", "layers.1.block.router_ED", "layers.2.block.key_bias_HN"} <= set(plain)
    assert all(group["param_names"] == sorted(group["param_names"]) for group in groups.values())


def test_every_parameter_is_in_exactly_one_group() -> None:
    model = HybridModel(preset("tiny"), 64)

    names = [name for group in build_optimizer(model, OptimizerConfig()).param_groups for name in group["param_names"]]

    assert sorted(names) == sorted(name for name, _ in model.named_parameters())


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        (Schedule.COSINE, 0, 0.25),
        (Schedule.COSINE, 3, 1.0),
        (Schedule.COSINE, 4, 1.0),
        (Schedule.COSINE, 54, 0.1 + 0.9 * 0.5),
        (Schedule.COSINE, 29, 0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2),
        (Schedule.COSINE, 104, 0.1),
        (Schedule.COSINE, 10_000, 0.1),
        (Schedule.LINEAR, 29, 0.1 + 0.9 * 0.75),
        (Schedule.LINEAR, 104, 0.1),
    ],
)
def test_the_rate_is_a_function_of_the_step(schedule: Schedule, step: int, expected: float) -> None:
    config = OptimizerConfig(
        peak_learning_rate=1.0,
        schedule=schedule,
        num_warmup_steps=4,
        num_horizon_steps=104,
        final_learning_rate_fraction=0.1,
    )

    assert learning_rate(step, config) == pytest.approx(expected, abs=1e-12)


def test_one_step_is_adamw_by_hand() -> None:
    model, config = HybridModel(preset("tiny"), 64), OptimizerConfig(weight_decay=0.5, epsilon=1e-8)
    initialize(model, seed=0)
    optimizer = build_optimizer(model, config)
    set_learning_rate(optimizer, 0.01)
    matrix, embedding = model.layers[0].block.query.weight, model.embedding_VD
    matrix_before, embedding_before = matrix.detach().clone(), embedding.detach().clone()
    matrix.grad, embedding.grad = torch.full_like(matrix, -3.0), torch.full_like(embedding, 2.0)

    optimizer.step()

    torch.testing.assert_close(matrix.detach(), matrix_before * (1 - 0.01 * 0.5) + 0.01)
    torch.testing.assert_close(embedding.detach(), embedding_before - 0.01)


def named(*gradients: list[float]) -> list[tuple[str, nn.Parameter]]:
    parameters = [(f"p{index}", nn.Parameter(torch.zeros(len(values)))) for index, values in enumerate(gradients)]
    for (_, parameter), values in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(values)
    return parameters


def test_gradients_beyond_the_norm_are_scaled_to_it_and_smaller_ones_stay() -> None:
    large, small = named([3.0, 0.0], [4.0]), named([0.3, 0.0], [0.4])

    assert clip_gradients(large, 1.0).item() == 5.0
    assert clip_gradients(small, 1.0).item() == pytest.approx(0.5)

    torch.testing.assert_close([parameter.grad.tolist() for _, parameter in large], [[0.6, 0.0], [0.8]])
    assert small[0][1].grad.tolist() == torch.tensor([0.3, 0.0]).tolist()


def test_the_norm_does_not_depend_on_the_order_in_which_parameters_come() -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(100, generator=generator).tolist() for _ in range(30)]

    forward, backward = named(*gradients), named(*gradients)[::-1]

    assert clip_gradients(forward, 1.0).item() == clip_gradients(backward, 1.0).item()


def test_a_norm_that_is_not_finite_is_reported() -> None:
    assert not clip_gradients(named([math.inf], [1.0]), 1.0).isfinite()


def test_a_parameter_without_a_gradient_is_left_out() -> None:
    parameters = named([2.0])
    parameters.append(("unused", nn.Parameter(torch.zeros(2))))

    assert clip_gradients(parameters, 1.0).item() == 2.0
