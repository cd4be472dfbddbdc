"""Attention equals a loop over each document's tokens: heads grouped, positions counted from the document's start."""

import numpy as np
import torch

from trainer.model.blocks.attention import Attention
from trainer.model.segments import describe_rows


def test_attention_equals_an_oracle_that_walks_one_document_at_a_time(config_of, shaken, doc_ids_from) -> None:
    block = shaken(Attention(config_of("A", has_engram=False), layer=0, vocabulary_size=10)).double()
    lengths = [3, 6, 1]
    hidden_TD = torch.randn(12, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    actual = block(hidden_TD[None], describe_rows(torch.zeros(1, 12), doc_ids_from([lengths], 12))).update_BTD[0]

    first = 0
    for length in lengths:
        expected = oracle(block, hidden_TD[first : first + length].numpy())
        # Angles are float32, whatever the weights.
        np.testing.assert_allclose(actual[first : first + length].detach().numpy(), expected, rtol=1e-5, atol=1e-6)
        first += length


def oracle(block: Attention, tokens_TD: np.ndarray) -> np.ndarray:
    """One document alone: 4 query heads over 2 key/value heads of size 4."""
    weights = {name: parameter.detach().numpy() for name, parameter in block.named_parameters()}
    projected = {name: tokens_TD @ weights[f"{name}.weight"].T for name in ("query", "key", "value")}
    result = np.zeros((len(tokens_TD), 16))
    for head in range(4):
        group = head // 2
        for t in range(len(tokens_TD)):
            query = turned(projected["query"][t, 4 * head : 4 * head + 4], t)
            keys = [turned(projected["key"][u, 4 * group : 4 * group + 4], u) for u in range(t + 1)]
            scores = np.exp([query @ key / np.sqrt(4) for key in keys])
            values = projected["value"][: t + 1, 4 * group : 4 * group + 4]
            result[t, 4 * head : 4 * head + 4] = (scores / scores.sum()) @ values
    return result @ weights["out.weight"].T


def turned(vector: np.ndarray, position: int) -> np.ndarray:
    numbers = (vector[0::2] + 1j * vector[1::2]) * np.exp(1j * position * 10_000.0 ** (-np.array([0, 2]) / 4))
    return np.stack((numbers.real, numbers.imag), axis=1).reshape(-1)


def test_the_engram_branch_exists_only_on_the_layers_that_are_listed(config_of) -> None:
    listed = Attention(config_of("A"), layer=0, vocabulary_size=10)
    unlisted = Attention(config_of("A", has_engram=False), layer=0, vocabulary_size=10)

    assert listed.engram is not None
    assert unlisted.engram is None
