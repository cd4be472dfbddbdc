"""Engram windows hash tokens of the token's own document alone."""

import numpy as np
import torch

from kernels.engram_lookup import engram_rows
from trainer.model.blocks.engram import Engram, distinct_primes, hash_multipliers
from trainer.model.segments import derive_segments, describe_rows

VOCABULARY = 40


def engram_of(config_of, shaken) -> Engram:
    return shaken(Engram(config_of("A"), layer=0, vocabulary_size=VOCABULARY)).double()


def oracle_rows(engram: Engram, document: list[int]) -> list[list[int]]:
    """Table rows of one document alone, in Python's own integers: 2 heads for each of the orders 2 and 3."""
    primes = [53, 59, 61, 67]
    multipliers = engram.multipliers_K.tolist()
    rows = []
    for t in range(len(document)):
        row = []
        for order, first_lookup in ((2, 0), (3, 2)):
            mix = 0
            for k in range(order):
                mix ^= (document[t - k] if t - k >= 0 else VOCABULARY) * multipliers[k]
            row += [mix % primes[j] + sum(primes[:j]) for j in (first_lookup, first_lookup + 1)]
        rows.append(row)
    return rows


def test_lookups_of_packed_documents_are_those_of_each_document_alone(config_of, shaken, doc_ids_from) -> None:
    engram = engram_of(config_of, shaken)
    lengths = [4, 1, 5]
    ids = torch.randint(0, VOCABULARY, (10,), generator=torch.Generator().manual_seed(0)).tolist()

    positions_BT = derive_segments(doc_ids_from([lengths], 10)).positions_BT
    hashing = (engram.multipliers_K, engram.table_sizes_OH, engram.offsets_J, engram.pad_class)
    rows = engram_rows(torch.tensor([ids]), positions_BT, *hashing)[0].tolist()

    assert rows == [row for part in (ids[:4], ids[4:5], ids[5:]) for row in oracle_rows(engram, part)]


def test_the_branch_equals_an_oracle_written_from_the_formulas(config_of, shaken, doc_ids_from) -> None:
    engram = engram_of(config_of, shaken)
    weights = {name: parameter.detach().numpy() for name, parameter in engram.named_parameters()}
    ids = list(range(7))
    hidden_TD = torch.randn(7, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    actual = engram(hidden_TD[None], describe_rows(torch.tensor([ids]), doc_ids_from([[7]], 7)))[0].detach().numpy()

    def normed(vector: np.ndarray, name: str) -> np.ndarray:
        return vector / np.sqrt(np.mean(vector**2) + 1e-5) * weights[f"{name}.weight"]

    values, normed_values = [], []
    for t, lookups in enumerate(oracle_rows(engram, ids)):
        memory = np.concatenate([weights["table_RW"][row] for row in lookups])
        key, query = normed(weights["key.weight"] @ memory, "key_norm"), normed(hidden_TD[t].numpy(), "query_norm")
        s = key @ query / np.sqrt(16)
        gate = 1 / (1 + np.exp(-np.sign(s) * np.sqrt(max(abs(s), 1e-6))))
        values.append(gate * (weights["value.weight"] @ memory))
        normed_values.append(normed(values[t], "value_norm"))
        mixed = sum(weights["taps_DK"][:, k] * normed_values[t - k] for k in range(min(4, t + 1)))
        np.testing.assert_allclose(actual[t], values[t] + mixed / (1 + np.exp(-mixed)), rtol=1e-10, atol=1e-10)


def test_multipliers_are_odd_seeded_and_never_overflow() -> None:
    for num_classes in (2, 1025, 32_769, 2**31):
        multipliers = hash_multipliers(seed=1, layer=0, count=3, num_classes=num_classes)

        assert all(multiplier % 2 == 1 for multiplier in multipliers)
        assert all(multiplier * (num_classes - 1) < 2**63 for multiplier in multipliers)
    assert hash_multipliers(1, 0, 3, 100) != hash_multipliers(2, 0, 3, 100)
    assert hash_multipliers(1, 0, 3, 100) != hash_multipliers(1, 4, 3, 100)


def test_tables_hold_distinct_primes_from_the_minimum_up() -> None:
    assert distinct_primes(50, 4) == [53, 59, 61, 67]
    assert distinct_primes(2, 3) == [2, 3, 5]
