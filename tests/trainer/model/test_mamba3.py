"""The chunked scan is the two-term recurrence; the block is the published formula."""

import math

import numpy as np
import pytest
import torch

from trainer.model.mamba3 import Mamba3, ScanInputs, heavy_tail, mamba3_scan, mamba3_scan_reference
from trainer.model.segments import derive_segments, describe_rows

NUM_TOKENS = 50
# Resets on, before and after chunk boundaries of 8 and 16, documents of one token, a row of one document, and padding.
LENGTHS = [[8, 1, 7, 17, 1, 16], [50], [3, 30, 9]]


def scan_inputs(num_rows: int, num_tokens: int) -> ScanInputs:
    generator = torch.Generator().manual_seed(0)
    heads, head_size, states, pairs = 3, 5, 8, 2

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(num_rows, num_tokens, *shape, generator=generator, dtype=torch.float64)

    inputs = ScanInputs(
        queries_BTHN=normal(heads, states),
        keys_BTHN=normal(heads, states),
        values_BTHP=normal(heads, head_size),
        step_sizes_BTH=torch.nn.functional.softplus(normal(heads)),
        decay_rates_BTH=-normal(heads).abs() - 1e-4,
        current_shares_BTH=torch.sigmoid(normal(heads)),
        velocities_BTS=math.pi * torch.tanh(normal(pairs)),
    )
    return ScanInputs(*(tensor.requires_grad_() for tensor in inputs))


@pytest.mark.parametrize("chunk_size", [1, 7, 8, 16, 50, 64])
def test_chunks_of_any_size_equal_the_recurrence_values_and_gradients(doc_ids_from, chunk_size: int) -> None:
    segments = derive_segments(doc_ids_from(LENGTHS, NUM_TOKENS))
    inputs = scan_inputs(len(LENGTHS), NUM_TOKENS)

    chunked = mamba3_scan(inputs, segments.segment_ids_BT, chunk_size)
    recurrent = mamba3_scan_reference(inputs, segments.document_starts_BT)
    slope = torch.randn(chunked.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    chunked_gradients = torch.autograd.grad((chunked * slope).sum(), inputs)
    recurrent_gradients = torch.autograd.grad((recurrent * slope).sum(), inputs)

    torch.testing.assert_close(chunked, recurrent, rtol=1e-11, atol=1e-11)
    for name, left, right in zip(ScanInputs._fields, chunked_gradients, recurrent_gradients, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_of_the_scan_are_its_numerical_derivatives() -> None:
    inputs = scan_inputs(1, 6)
    one_head = [tensor[:, :, :1].detach().requires_grad_() for tensor in inputs[:-1]]
    segment_ids_BT = torch.tensor([[0, 0, 0, 1, 1, 1]])

    def scan(*fields: torch.Tensor) -> torch.Tensor:
        return mamba3_scan(ScanInputs(*fields), segment_ids_BT, chunk_size=4)

    assert torch.autograd.gradcheck(scan, (*one_head, inputs.velocities_BTS))


def test_heavy_tail_has_finite_slopes_where_the_other_branch_is_singular() -> None:
    x = torch.tensor([-3.0, -0.5, 0.0, 1.0, 2.0], requires_grad=True)

    heavy_tail(x).sum().backward()

    torch.testing.assert_close(heavy_tail(x).tolist(), [0.25, 1 / 1.5, 1.0, 2.0, 3.0])
    torch.testing.assert_close(x.grad.tolist(), [1 / 16, 1 / 2.25, 1.0, 1.0, 1.0])


def oracle_block(block: Mamba3, hidden_TD: np.ndarray, starts: list[int]) -> np.ndarray:
    """One row through the block, from the formulas alone: floats, loops and complex numbers."""
    weights = {name: parameter.detach().numpy() for name, parameter in block.named_parameters()}
    heads, states = weights["key_bias_HN"].shape
    inner = weights["out.weight"].shape[1]
    size, pairs = inner // heads, states // 4
    ends = np.cumsum([inner, inner, states, states, heads, heads, heads, pairs])
    results = []
    for t, token_D in enumerate(hidden_TD):
        z, x, b, c, raw_step, raw_decay, raw_share, raw_angle = np.split(weights["into.weight"] @ token_D, ends[:-1])
        if t in starts:
            phase = np.zeros((heads, pairs))
            state = np.zeros((heads, size, states))
            last_x, last_k = np.zeros((heads, size)), np.zeros((heads, states))
        norm_b = b / np.sqrt(np.mean(b**2) + 1e-5) * weights["key_norm.weight"]
        norm_c = c / np.sqrt(np.mean(c**2) + 1e-5) * weights["query_norm.weight"]
        x = x.reshape(heads, size)
        y = np.zeros((heads, size))
        for h in range(heads):
            step = np.log1p(np.exp(raw_step[h] + weights["step_bias_H"][h]))
            tail = 1 + raw_decay[h] if raw_decay[h] >= 0 else 1 / (1 - raw_decay[h])
            decay = np.exp(step * min(-tail, -1e-4))
            share = 1 / (1 + np.exp(-raw_share[h]))
            phase[h] += step * np.pi * np.tanh(raw_angle)
            query = turned(norm_c + weights["query_bias_HN"][h], phase[h])
            key = turned(norm_b + weights["key_bias_HN"][h], phase[h])
            state[h] = decay * state[h] + (1 - share) * step * decay * np.outer(last_x[h], last_k[h])
            state[h] += share * step * np.outer(x[h], key)
            y[h] = state[h] @ query + weights["skip_H"][h] * x[h]
            last_x[h], last_k[h] = x[h], key
        results.append(weights["out.weight"] @ (y.reshape(-1) * z / (1 + np.exp(-z))))
    return np.stack(results)


def turned(vector: np.ndarray, phase: np.ndarray) -> np.ndarray:
    result = vector.copy()
    for i, angle in enumerate(phase):
        number = complex(vector[2 * i], vector[2 * i + 1]) * np.exp(1j * angle)
        result[2 * i], result[2 * i + 1] = number.real, number.imag
    return result


def test_the_block_equals_an_oracle_written_from_the_formulas(config_of, shaken, doc_ids_from) -> None:
    block = shaken(Mamba3(config_of("M"))).double()
    doc_ids_BT = doc_ids_from([[5, 9, 1, 4]], 19)
    hidden_BTD = torch.randn(1, 19, 16, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    actual = block(hidden_BTD, describe_rows(torch.zeros(1, 19), doc_ids_BT)).update_BTD

    expected = oracle_block(block, hidden_BTD[0].numpy(), starts=[0, 5, 14, 15])
    np.testing.assert_allclose(actual[0].detach().numpy(), expected, rtol=1e-10, atol=1e-10)
