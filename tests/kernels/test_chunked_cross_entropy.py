"""The chunked loss is torch's cross-entropy, values and gradients, and never holds all logits."""

import pytest
import torch
from torch.nn import functional

from kernels.chunked_cross_entropy import chunked_cross_entropy, make_in_chunks

NUM_TOKENS, WIDTH, VOCABULARY = 23, 6, 11


def sample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden_MD = torch.randn(NUM_TOKENS, WIDTH, generator=generator, dtype=torch.float64, requires_grad=True)
    weight_VD = torch.randn(VOCABULARY, WIDTH, generator=generator, dtype=torch.float64, requires_grad=True)
    targets_M = torch.randint(0, VOCABULARY, (NUM_TOKENS,), generator=generator)
    is_trained_M = torch.rand(NUM_TOKENS, generator=generator) < 0.7
    return hidden_MD, weight_VD, targets_M, is_trained_M


@pytest.mark.parametrize("chunk_tokens", [1, 5, 23, 100])
def test_value_and_gradients_equal_torch_cross_entropy_for_every_chunk_size(chunk_tokens: int) -> None:
    hidden_MD, weight_VD, targets_M, is_trained_M = sample()

    actual = chunked_cross_entropy(hidden_MD, weight_VD, targets_M, is_trained_M, chunk_tokens)
    logits = (hidden_MD @ weight_VD.t())[is_trained_M]
    expected = functional.cross_entropy(logits, targets_M[is_trained_M], reduction="sum")
    actual_gradients = torch.autograd.grad(3 * actual, (hidden_MD, weight_VD))
    expected_gradients = torch.autograd.grad(3 * expected, (hidden_MD, weight_VD))

    torch.testing.assert_close(actual, expected)
    for left, right in zip(actual_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(left, right)


def test_a_masked_target_is_never_read_and_gives_no_gradient() -> None:
    hidden_MD, weight_VD, targets_M, is_trained_M = sample()
    nonsense_M = torch.where(is_trained_M, targets_M, VOCABULARY + 1000)

    clean = chunked_cross_entropy(hidden_MD, weight_VD, targets_M, is_trained_M, 4)
    dirty = chunked_cross_entropy(hidden_MD, weight_VD, nonsense_M, is_trained_M, 4)
    dirty.backward()

    assert torch.equal(clean, dirty)
    assert hidden_MD.grad[~is_trained_M].abs().max() == 0


def test_a_batch_without_a_trained_token_has_zero_loss_and_zero_gradient() -> None:
    hidden_MD, weight_VD, targets_M, is_trained_M = sample()

    loss = chunked_cross_entropy(hidden_MD, weight_VD, targets_M, torch.zeros_like(is_trained_M), 4)
    loss.backward()

    assert loss == 0
    assert weight_VD.grad.abs().max() == 0


def test_no_tensor_larger_than_one_chunk_of_logits_is_kept_or_made() -> None:
    hidden_MD, weight_VD, targets_M, is_trained_M = (tensor.detach() for tensor in sample())
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            nonlocal largest
            result = function(*arguments, **(keywords or {}))
            made = result if isinstance(result, tuple | list) else (result,)
            largest = max([largest, *(tensor.numel() for tensor in made if isinstance(tensor, torch.Tensor))])
            return result

    with Watch():
        make_in_chunks(hidden_MD, weight_VD, targets_M, is_trained_M, 2, needs_gradients=True)

    assert largest <= max(NUM_TOKENS * WIDTH, VOCABULARY * WIDTH)
    assert largest < NUM_TOKENS * VOCABULARY


def test_the_weight_gradient_of_bfloat16_is_added_in_float32_whatever_the_chunks() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden_MD = torch.randn(64, 8, generator=generator).bfloat16()
    weight_VD = torch.randn(12, 8, generator=generator, requires_grad=True)
    targets_M, is_trained_M = torch.randint(0, 12, (64,), generator=generator), torch.ones(64, dtype=torch.bool)
    gradients = []
    for chunk_tokens in (2, 64):
        loss = chunked_cross_entropy(hidden_MD, weight_VD, targets_M, is_trained_M, chunk_tokens)
        gradients.append(torch.autograd.grad(loss, weight_VD)[0])

    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)
