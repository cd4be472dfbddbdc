"""Padding in the experts' slots, and tokens without a slot, once the selection bias has balanced the load."""

import torch
from torch import Tensor

from tests.benchmarks.figure import Figure
from trainer.config.model import ExpertsConfig
from trainer.model.blocks.experts import CAPACITY_MULTIPLE, choose_experts, expert_capacity, place_pairs

NUM_TOKENS, NUM_DOCUMENTS, NUM_ENTRIES, WIDTH = 4096, 8, 32_768, 128
NUM_BALANCED_STEPS, NUM_MEASURED_STEPS = 100, 20
BALANCE_RATE = 1e-3  # the default of a recipe
MAX_PADDING, MAX_OVERFLOW, STRETCH_PADDING = 27.0, 1.0, 12.0


def expert_padding() -> list[Figure]:
    """16 experts, 4 for each token, 4,096 tokens a step, a made router: frequent tokens, documents with topics of their own."""
    part = ExpertsConfig(num_experts=16, num_selected=4)
    at_once, after = _shares(part, num_balanced_steps=0), _shares(part, NUM_BALANCED_STEPS)
    tight = part.model_copy(update={"capacity_factor": 1.125})
    padding, overflow = after
    stretch_padding, stretch_overflow = _shares(tight, NUM_BALANCED_STEPS)
    is_reached = stretch_padding <= STRETCH_PADDING and stretch_overflow <= MAX_OVERFLOW
    unit, stretch = "% of the slots", f"reported; stretch <= {STRETCH_PADDING:.0f} reached: {is_reached}"
    return [
        Figure("expert-padding", padding, unit, f"<= {MAX_PADDING:.0f}", padding <= MAX_PADDING),
        Figure(
            "expert-padding/overflow", overflow, "% of the pairs", f"<= {MAX_OVERFLOW:.0f}", overflow <= MAX_OVERFLOW
        ),
        Figure("expert-padding/unbalanced-overflow", at_once[1], "% of the pairs, before balancing", "reported", True),
        Figure("expert-padding/tight", stretch_padding, f"{unit}, capacity factor 1.125", stretch, True),
        Figure(
            "expert-padding/tight-overflow", stretch_overflow, "% of the pairs, capacity factor 1.125", "reported", True
        ),
    ]


def _shares(part: ExpertsConfig, num_balanced_steps: int) -> tuple[float, float]:
    """Empty slots in a hundred slots, and pairs without a slot in a hundred pairs, over the steps after balancing."""
    generator = torch.Generator().manual_seed(42)
    embedding_VD = torch.randn(NUM_ENTRIES, WIDTH, generator=generator)
    router_ED = torch.randn(part.num_experts, WIDTH, generator=generator) * WIDTH**-0.5
    bias_E = torch.zeros(part.num_experts)
    capacity, is_token_M = expert_capacity(NUM_TOKENS, part), torch.ones(NUM_TOKENS, dtype=torch.bool)
    num_pairs, num_slots = NUM_TOKENS * part.num_selected, part.num_experts * capacity
    assert capacity % CAPACITY_MULTIPLE == 0
    num_placed = 0
    for step in range(num_balanced_steps + NUM_MEASURED_STEPS):
        logits_ME = _hidden(embedding_VD, generator) @ router_ED.t()
        chosen_MK, _ = choose_experts(logits_ME, bias_E, part.num_selected)
        if step >= num_balanced_steps:
            num_placed += int(
                (place_pairs(chosen_MK, is_token_M, part.num_experts, capacity).pairs_S < num_pairs).sum()
            )
        else:
            load_E = chosen_MK.flatten().bincount(minlength=part.num_experts).float()
            bias_E += BALANCE_RATE * torch.sign(load_E.mean() - load_E)
    share = num_placed / NUM_MEASURED_STEPS
    return round(100 * (1 - share / num_slots), 2), round(100 * (1 - share / num_pairs), 2)


def _hidden(embedding_VD: Tensor, generator: torch.Generator) -> Tensor:
    """States of one batch, of unit mean square: what all share, the token, as rare as Zipf has it, its document, its context."""
    ranks_M = torch.exp(torch.rand(NUM_TOKENS, generator=generator) * torch.log(torch.tensor(NUM_ENTRIES))).long() - 1
    topics_ND = torch.randn(NUM_DOCUMENTS, WIDTH, generator=generator)
    topics_MD = topics_ND.repeat_interleave(NUM_TOKENS // NUM_DOCUMENTS, dim=0)
    context_MD = torch.randn(NUM_TOKENS, WIDTH, generator=generator)
    shared_D = embedding_VD[-1]
    return 0.2 * shared_D + 0.6 * embedding_VD[ranks_M] + 0.3 * topics_MD + 0.71 * context_MD
