"""Dependence on neighbors: how far other documents of a micro-batch reach into a document, where experts have limited room.

Each preset keeps its pattern, its depth and its experts: their number, choices, gate and capacity factor. Widths are small, so
that a CPU computes it. The batch is as full as the presets' own: the capacity is an exact multiple of 128, and rounding
gives no expert more room than the factor does.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.config.model import AttentionConfig, EngramConfig, M2RNNConfig, Mamba3Config, ModelConfig
from trainer.config.presets import preset
from trainer.model.blocks import experts
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize

NUM_ROWS, ROW_LENGTH, VOCABULARY = 8, 256, 512
BALANCE_RATES = (2.5e-2,) * 6 + (5e-3,) * 8
"""Rates of the steps that balance the experts: far, then finely, so that few steps do what a training's many do."""
SEED = 42


@dataclass(frozen=True)
class Dependence:
    """Change in the last document of each row when all other documents are replaced by other text."""

    overflow_fraction: float
    """Pairs of the batch that find no room."""
    changed_pair_fraction: float
    """Pairs (token, expert) of these documents that are computed with one text beside them and not with the other."""
    logits_difference: float
    """Root of the mean squared difference of their logits, over that of the logits."""
    unchanged_token_fraction: float
    """Their tokens whose logits are equal bit for bit."""


def scaled(name: str) -> ModelConfig:
    """Return a preset with small widths. What decides which pairs overflow is kept."""
    config = preset(name)
    assert config.experts is not None
    engram = EngramConfig(layers=config.attention.engram.layers, head_size=4, min_table_rows=200)
    return config.model_copy(
        update={
            "width": 32,
            "attention": AttentionConfig(num_query_heads=2, num_key_value_heads=1, head_size=16, engram=engram),
            "experts": config.experts.model_copy(update={"expert_size": 32, "shared_size": 32}),
            "mamba3": Mamba3Config(head_size=32, state_size=16, chunk_size=64),
            "m2rnn": M2RNNConfig(num_heads=2, key_size=8, value_size=8),
        }
    )


def model_of(config: ModelConfig, seed: int = SEED) -> HybridModel:
    """Return a model with its first weights; no weight that begins at zero is left there, so that every block counts."""
    model = HybridModel(config, VOCABULARY)
    initialize(model, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.02, generator=generator)
    return model.eval()


def batch(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, other ids and the documents of rows of two to four documents; ids are as rare as Zipf has them."""
    generator = torch.Generator().manual_seed(seed)
    ranks_2BT = torch.rand(2, NUM_ROWS, ROW_LENGTH, generator=generator) * torch.log(torch.tensor(float(VOCABULARY)))
    doc_ids_BT = torch.ones(NUM_ROWS, ROW_LENGTH, dtype=torch.int64)
    for row in range(NUM_ROWS):
        cuts = torch.randperm(ROW_LENGTH - 2, generator=generator)[: 1 + row % 3] + 1
        doc_ids_BT[row, cuts.sort().values] = 2
        doc_ids_BT[row] = 1 + (doc_ids_BT[row] == 2).cumsum(0)
    ids_2BT = torch.exp(ranks_2BT).long().clamp(max=VOCABULARY) - 1
    return ids_2BT[0], ids_2BT[1], doc_ids_BT


def balance(model: HybridModel) -> None:
    """Balance the experts as a training does after each step, with other text each time."""
    model.train()
    with torch.no_grad():
        for step, rate in enumerate(BALANCE_RATES):
            ids_BT, _, doc_ids_BT = batch(1000 + step)
            model(ids_BT, doc_ids_BT)
            model.balance_experts(rate)
    model.eval()


@torch.no_grad()
def measure_dependence(model: HybridModel, seed: int = 0) -> Dependence:
    """Compare two batches that share the last document of each row and nothing else."""
    ids_BT, other_ids_BT, doc_ids_BT = batch(seed)
    own_BT = doc_ids_BT == doc_ids_BT.max(dim=1, keepdim=True).values
    (first_BTV, first), (second_BTV, second) = (
        run_recorded(model, torch.where(own_BT, ids_BT, text_BT), doc_ids_BT) for text_BT in (ids_BT, other_ids_BT)
    )
    own_M = own_BT.flatten()
    changed = sum(int((one[own_M] != other[own_M]).sum()) for one, other in zip(first, second, strict=True))
    num_pairs = sum(int(one.shape[0]) * model_choices(model) for one in first)
    num_own_pairs = int(own_M.sum()) * model_choices(model) * len(first)
    own_first, own_second = first_BTV[own_BT], second_BTV[own_BT]
    return Dependence(
        1 - sum(int(one.sum()) for one in first) / num_pairs,
        changed / 2 / num_own_pairs,
        float((own_first - own_second).square().mean().sqrt() / own_first.square().mean().sqrt()),
        float((own_first == own_second).all(-1).float().mean()),
    )


def worst_dependence(model: HybridModel, num_batches: int = 3) -> Dependence:
    """Return the largest of each number over several batches; of unchanged tokens the smallest share."""
    found = [measure_dependence(model, seed) for seed in range(num_batches)]
    return Dependence(
        max(each.overflow_fraction for each in found),
        max(each.changed_pair_fraction for each in found),
        max(each.logits_difference for each in found),
        min(each.unchanged_token_fraction for each in found),
    )


def model_choices(model: HybridModel) -> int:
    """Return the experts that each token chooses."""
    return model.config.experts.num_selected


def run_recorded(model: HybridModel, ids_BT: Tensor, doc_ids_BT: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the logits, and for each expert layer which (token, expert) pairs found room."""
    found: list[Tensor] = []
    place = experts.place_pairs

    def recorded(chosen_MK: Tensor, is_token_M: Tensor, num_experts: int, capacity: int) -> Any:
        placement = place(chosen_MK, is_token_M, num_experts, capacity)
        is_kept_MK = (placement.slots_Q < num_experts * capacity).view_as(chosen_MK)
        kept_ME = torch.zeros(len(chosen_MK), num_experts, dtype=torch.bool)
        found.append(kept_ME.scatter(1, chosen_MK, is_kept_MK))
        return placement

    experts.place_pairs = recorded
    try:
        return model.logits(model(ids_BT, doc_ids_BT)), found
    finally:
        experts.place_pairs = place
