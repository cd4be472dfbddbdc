"""Projections follow the dtype of their input; rotation of pairs is multiplication by a unit complex number."""

import torch

from trainer.model.layers import Projection, rotate_pairs


def test_a_projection_computes_in_the_dtype_of_its_input_and_keeps_its_master_weight() -> None:
    projection = Projection(2, 3)
    torch.nn.init.ones_(projection.weight)

    assert projection(torch.ones(1, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert projection.weight.dtype == torch.float32


def test_turned_pairs_are_complex_products_and_the_rest_stays() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(3, 8, generator=generator, dtype=torch.float64)
    phases = torch.randn(3, 2, generator=generator, dtype=torch.float64)

    actual = rotate_pairs(vectors, phases)

    for row in range(3):
        for pair in range(2):
            number = complex(*vectors[row, 2 * pair : 2 * pair + 2].tolist())
            expected = number * complex(phases[row, pair].cos(), phases[row, pair].sin())
            torch.testing.assert_close(actual[row, 2 * pair].item(), expected.real)
            torch.testing.assert_close(actual[row, 2 * pair + 1].item(), expected.imag)
    assert torch.equal(actual[:, 4:], vectors[:, 4:])


def test_a_half_precision_vector_is_turned_by_angles_that_keep_their_digits() -> None:
    phases = torch.tensor([[2049.0]])

    actual = rotate_pairs(torch.tensor([[1.0, 0.0]], dtype=torch.bfloat16), phases)

    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.float(), torch.cat((phases.cos(), phases.sin()), -1), rtol=0.01, atol=0.01)
