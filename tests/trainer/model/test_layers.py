"""The causal convolution reads its own document, newest tap first; projections follow the dtype of their input."""

import torch

from trainer.model.layers import Projection, causal_convolution


def test_a_convolution_weighs_the_last_tokens_of_its_own_document() -> None:
    x_BTC = torch.tensor([1.0, 10.0, 100.0, 1000.0, 1.0]).view(1, 5, 1)
    taps_CK = torch.tensor([[1.0, 2.0, 3.0]])

    actual = causal_convolution(x_BTC, taps_CK, positions_BT=torch.tensor([[0, 1, 2, 0, 1]]))

    assert actual.flatten().tolist() == [1, 10 + 2, 100 + 20 + 3, 1000, 1 + 2000]


def test_a_row_shorter_than_the_taps_is_fine() -> None:
    actual = causal_convolution(torch.ones(1, 2, 1), torch.ones(1, 4), torch.tensor([[0, 1]]))

    assert actual.flatten().tolist() == [1, 2]


def test_a_projection_computes_in_the_dtype_of_its_input_and_keeps_its_master_weight() -> None:
    projection = Projection(2, 3)
    torch.nn.init.ones_(projection.weight)

    assert projection(torch.ones(1, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert projection.weight.dtype == torch.float32
