"""Projections follow the dtype of their input."""

import torch

from trainer.model.layers import Projection


def test_a_projection_computes_in_the_dtype_of_its_input_and_keeps_its_master_weight() -> None:
    projection = Projection(2, 3)
    torch.nn.init.ones_(projection.weight)

    assert projection(torch.ones(1, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert projection.weight.dtype == torch.float32
