"""The block is the published formula."""

import numpy as np
import torch

from trainer.model.blocks.mamba3 import Mamba3, heavy_tail
from trainer.model.segments import describe_rows


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
