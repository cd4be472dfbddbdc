"""Clipping by the joint norm, summed in one order."""

import math

import pytest
import torch
from torch import nn

from trainer.optim.clipping import clip_gradients


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
