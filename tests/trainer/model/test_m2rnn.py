"""The loop over time equals a loop over scalars, and the block equals its formula."""

import math

import numpy as np
import torch

from trainer.model.m2rnn import M2RNN, RecurrenceInputs, m2rnn_scan
from trainer.model.segments import describe_rows

HEADS, KEYS, VALUES = 2, 3, 2


def recurrence_inputs(num_rows: int, num_tokens: int) -> tuple[RecurrenceInputs, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    inputs = RecurrenceInputs(
        queries_BTHK=normal(num_rows, num_tokens, HEADS, KEYS),
        keys_BTHK=normal(num_rows, num_tokens, HEADS, KEYS),
        values_BTHV=normal(num_rows, num_tokens, HEADS, VALUES),
        forget_BTH=torch.sigmoid(normal(num_rows, num_tokens, HEADS)),
    )
    return inputs, normal(HEADS, VALUES, VALUES)


def scalar_scan(queries, keys, values, forget, transition, starts) -> list[list[list[float]]]:
    """One row, one number at a time."""
    results = []
    for t in range(len(keys)):
        results.append([[0.0] * VALUES for _ in range(HEADS)])
        if starts[t]:
            state = [[[0.0] * VALUES for _ in range(KEYS)] for _ in range(HEADS)]
        for h in range(HEADS):
            before = [list(row) for row in state[h]]
            for i in range(KEYS):
                for j in range(VALUES):
                    mixed = sum(before[i][m] * transition[h][m][j] for m in range(VALUES))
                    candidate = math.tanh(mixed + keys[t][h][i] * values[t][h][j])
                    state[h][i][j] = forget[t][h] * before[i][j] + (1 - forget[t][h]) * candidate
            for j in range(VALUES):
                results[t][h][j] = sum(queries[t][h][i] * state[h][i][j] for i in range(KEYS))
    return results


def test_the_scan_equals_a_loop_over_scalars_with_resets() -> None:
    inputs, transition_HVV = recurrence_inputs(2, 9)
    starts_BT = torch.tensor([[1, 0, 0, 1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 1]]).bool()

    actual = m2rnn_scan(inputs, transition_HVV, starts_BT)

    for row in range(2):
        fields = [tensor[row].tolist() for tensor in inputs]
        expected = scalar_scan(*fields, transition_HVV.tolist(), starts_BT[row].tolist())
        torch.testing.assert_close(actual[row], torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_gradients_of_the_scan_are_its_numerical_derivatives() -> None:
    inputs, transition_HVV = recurrence_inputs(2, 4)
    leaves = [tensor.requires_grad_() for tensor in (*inputs, transition_HVV)]
    starts_BT = torch.tensor([[1, 0, 1, 0], [1, 0, 0, 0]]).bool()

    def scan(*tensors: torch.Tensor) -> torch.Tensor:
        return m2rnn_scan(RecurrenceInputs(*tensors[:4]), tensors[4], starts_BT)

    assert torch.autograd.gradcheck(scan, leaves)


def test_the_block_equals_an_oracle_written_from_the_formulas(config_of, shaken, doc_ids_from) -> None:
    block = shaken(M2RNN(config_of("R"))).double()
    weights = {name: parameter.detach().numpy() for name, parameter in block.named_parameters()}
    hidden_TD = torch.randn(11, 16, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    starts = [0, 4, 5]

    actual = block(hidden_TD[None], describe_rows(torch.zeros(1, 11), doc_ids_from([[4, 1, 6]], 11))).update_BTD

    heads, keys, values = 2, 4, 3
    projected = hidden_TD.numpy() @ weights["into.weight"].T
    channels, gate, raw_step = np.split(projected, [2 * heads * keys + heads * values, -heads], axis=1)
    for t in range(11):
        start = max(s for s in starts if s <= t)
        if t == start:
            state = np.zeros((heads, keys, values))
        mixed = sum(channels[t - k] * weights["taps_CK"][:, k] for k in range(4) if t - k >= start)
        mixed = mixed / (1 + np.exp(-mixed))
        q, k, v = np.split(mixed, [heads * keys, 2 * heads * keys])
        q, k, v = q.reshape(heads, keys), k.reshape(heads, keys), v.reshape(heads, values)
        step = np.log1p(np.exp(raw_step[t] + weights["step_bias_H"]))
        forget = np.exp(-np.exp(weights["log_decay_rate_H"]) * step)[:, None, None]
        candidate = np.tanh(state @ weights["transition_HVV"] + k[:, :, None] * v[:, None, :])
        state = forget * state + (1 - forget) * candidate
        y = (q[:, :, None] * state).sum(1) + weights["skip_H"][:, None] * v
        gated = y.reshape(-1) * gate[t] / (1 + np.exp(-gate[t]))
        normed = gated / np.sqrt(np.mean(gated**2) + 1e-5) * weights["norm.weight"]
        np.testing.assert_allclose(
            actual[0, t].detach().numpy(), weights["out.weight"] @ normed, rtol=1e-10, atol=1e-10
        )
