"""The block equals its formula."""

import numpy as np
import torch

from trainer.model.blocks.m2rnn import M2RNN
from trainer.model.segments import describe_rows


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
        y = (q[:, :, None] * state).sum(1) + weights["skip_HV"] * v
        gated = y.reshape(-1) * gate[t] / (1 + np.exp(-gate[t]))
        normed = gated / np.sqrt(np.mean(gated**2) + 1e-5) * weights["norm.weight"]
        np.testing.assert_allclose(
            actual[0, t].detach().numpy(), weights["out.weight"] @ normed, rtol=1e-10, atol=1e-10
        )
