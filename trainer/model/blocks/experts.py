"""E: routed experts that drop no token, and one shared expert.

    score = sigmoid(W_r x)              chosen: the k largest of score + selection bias
    weight = score / sum of the chosen scores
    update = shared(x) + sum over the k choices, in order, of weight * expert(x)

Every (token, choice) pair gets one slot of its expert, by its rank among the pairs before it. Slots of an expert are whole
tiles, and what fills the last of them is all the padding there is: no shape follows the data, and no document decides what
another one gets. A pair of padding goes to the dump row and adds nothing. A slot holds at most one pair, so both directions
of both passes are gathers and grouped products: no atomics, one order of summation.

The compile mode `budgeted` trains with the published static capacity instead: each expert has as many slots, and a pair
beyond them goes to the dump row. Evaluation, decoding and the exported model drop nothing in any mode.

Shapes: B rows, T tokens of a row, D width, M = B T tokens, E experts, K choices, Q = M K pairs, S slots in N tiles, F hidden
width of an expert. Sources: Gale et al. 2022 (dropless experts), arXiv 2211.15841; Wang et al. 2024 (bias instead of a
balance loss), arXiv 2408.15664; Zoph et al. 2022 (z-loss), arXiv 2202.08906.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.expert_combine import expert_combine
from kernels.expert_dispatch import expert_dispatch
from kernels.expert_product import expert_product
from trainer.config.model import ExpertsConfig, ModelConfig
from trainer.model.initialization import ParameterKind, ParameterSpec, fan_in_normal
from trainer.model.layers import BlockOutput, Projection, cast_of
from trainer.model.segments import PackedRows, StepToken

TILE, STEP_TILE = 128, 16
"""Slots of a tile: of a batch, and of a step of decoding."""
RANKED_AT_ONCE = 256


class Placement(NamedTuple):
    """The slot of each pair (`slots_Q`, S for the dump row), the pair of each slot (`pairs_S`, Q if none), and the expert of
    each tile of slots (`experts_N`, E if none)."""

    slots_Q: Tensor
    pairs_S: Tensor
    experts_N: Tensor


class ExpertCounters(NamedTuple):
    """Pairs that chose each expert, pairs that found no room, and slots computed for no pair; int64, padding left out."""

    load_E: Tensor
    overflow: Tensor
    empty_slots: Tensor


class Experts(nn.Module):
    """One expert block. Counters are int64 buffers, added to in place while training, and no part of a checkpoint."""

    selection_bias_E: Tensor
    load_E: Tensor
    overflow: Tensor
    empty_slots: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        part: ExpertsConfig = config.experts
        self.config, self.depth = part, config.depth
        self.casts: dict[str, Tensor] = {}
        self.is_balanced = True  # False where the selection bias is frozen
        self.has_capacity = False  # the compile mode `budgeted` sets it
        num_inner = 2 if part.is_gated else 1
        self.router_ED = nn.Parameter(torch.empty(part.num_experts, config.width))
        self.into_EDF = nn.Parameter(torch.empty(part.num_experts, config.width, num_inner * part.expert_size))
        self.out_EFD = nn.Parameter(torch.empty(part.num_experts, part.expert_size, config.width))
        self.shared_into = Projection(config.width, num_inner * part.shared_size, (part.shared_size,) * num_inner)
        first_out = fan_in_normal(part.shared_size, config.depth)
        self.shared_out = Projection(part.shared_size, config.width, initializer=first_out)
        self.register_buffer("selection_bias_E", torch.zeros(part.num_experts))
        self.register_buffer("load_E", torch.zeros(part.num_experts, dtype=torch.int64), persistent=False)
        self.register_buffer("overflow", torch.zeros((), dtype=torch.int64), persistent=False)
        self.register_buffer("empty_slots", torch.zeros((), dtype=torch.int64), persistent=False)

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        _, width, inner = self.into_EDF.shape
        sizes = (self.config.expert_size,) * (inner // self.config.expert_size)
        return {
            "router_ED": ParameterSpec(fan_in_normal(width), ParameterKind.ROUTER),
            "into_EDF": ParameterSpec(fan_in_normal(width), ParameterKind.MATRIX, (2, sizes)),
            "out_EFD": ParameterSpec(fan_in_normal(self.config.expert_size, self.depth), ParameterKind.MATRIX),
        }

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> BlockOutput:
        tokens_MD = hidden_BTD.flatten(0, 1)
        is_token_M = ~rows.segments.is_padding_BT.flatten()
        logits_ME = functional.linear(tokens_MD.to(self.router_ED.dtype), self.router_ED)
        chosen_MK, weights_MK = choose_experts(logits_ME, self.selection_bias_E, self.config.num_selected)
        if self.has_capacity and self.training:
            capacity = expert_capacity(tokens_MD.shape[0], self.config)
            placement = place_within_capacity(chosen_MK, is_token_M, self.config.num_experts, capacity)
        else:
            placement = place_pairs(chosen_MK, is_token_M, self.config.num_experts, TILE)
        if self.training:
            self._count(chosen_MK, is_token_M, placement)
        routed_MD = self._routed(tokens_MD, weights_MK, placement)
        shared_MD = self.shared_out(activate(self.shared_into(tokens_MD), self.config.is_gated))
        update_BTD = (routed_MD + shared_MD).view_as(hidden_BTD)
        return BlockOutput(update_BTD, self.config.z_loss_weight * router_z_loss(logits_ME, is_token_M))

    def initial_state(self, num_rows: int) -> tuple[()]:
        """Return the empty state: experts have none."""
        return ()

    def step(self, hidden_BD: Tensor, token: StepToken, state: tuple[()]) -> tuple[Tensor, tuple[()]]:
        """Return the update for one token."""
        logits_BE = functional.linear(hidden_BD.to(self.router_ED.dtype), self.router_ED)
        chosen_BK, weights_BK = choose_experts(logits_BE, self.selection_bias_E, self.config.num_selected)
        is_token_B = torch.ones_like(token.positions_B, dtype=torch.bool)
        placement = place_pairs(chosen_BK, is_token_B, self.config.num_experts, STEP_TILE)
        shared_BD = self.shared_out(activate(self.shared_into(hidden_BD), self.config.is_gated))
        return self._routed(hidden_BD, weights_BK, placement) + shared_BD, state

    def _routed(self, tokens_MD: Tensor, weights_MK: Tensor, placement: Placement) -> Tensor:
        slots_MK = placement.slots_Q.view_as(weights_MK)
        slots_SD = expert_dispatch(tokens_MD, placement.pairs_S, slots_MK)
        inner_SF = expert_product(slots_SD, cast_of(self, "into_EDF", tokens_MD.dtype), placement.experts_N)
        activated_SF = activate(inner_SF, self.config.is_gated)
        results_SD = expert_product(activated_SF, cast_of(self, "out_EFD", tokens_MD.dtype), placement.experts_N)
        return expert_combine(results_SD, weights_MK, slots_MK, placement.pairs_S)

    @torch.no_grad()
    def _count(self, chosen_MK: Tensor, is_token_M: Tensor, placement: Placement) -> None:
        num_pairs, num_tiles = placement.slots_Q.numel(), placement.experts_N.shape[0]
        num_slots = (placement.experts_N < self.config.num_experts).sum() * (placement.pairs_S.shape[0] // num_tiles)
        num_wanted = is_token_M.sum() * chosen_MK.shape[1]
        num_placed = (placement.pairs_S < num_pairs).sum()
        hits_MKE = functional.one_hot(chosen_MK, self.config.num_experts) * is_token_M[:, None, None]
        self.load_E.add_(hits_MKE.sum(dim=(0, 1)))
        self.overflow.add_(num_wanted - num_placed)
        self.empty_slots.add_(num_slots - num_placed)

    def counters(self) -> ExpertCounters:
        """Return a copy of the counts since the last `balance`."""
        return ExpertCounters(self.load_E.clone(), self.overflow.clone(), self.empty_slots.clone())

    @torch.no_grad()
    def balance(self, rate: float) -> None:
        """Move each expert's selection bias by `rate` against its load since the last call, then zero the counters."""
        load_E = self.load_E.to(self.selection_bias_E.dtype)
        self.selection_bias_E.add_(torch.sign(load_E.mean() - load_E), alpha=rate if self.is_balanced else 0.0)
        self.load_E.zero_()
        self.overflow.zero_()
        self.empty_slots.zero_()


def expert_capacity(num_tokens: int, config: ExpertsConfig) -> int:
    """Return the slots of each expert in the mode `budgeted`: its mean load times the factor, up to a power of two."""
    wanted = math.ceil(config.capacity_factor * num_tokens * config.num_selected / config.num_experts)
    return max(STEP_TILE, 1 << max(0, wanted - 1).bit_length())


def choose_experts(logits_ME: Tensor, selection_bias_E: Tensor, num_selected: int) -> tuple[Tensor, Tensor]:
    """Return the chosen experts (M, K), best first, equal scores by lower index, and their weights (M, K), which sum to one.

    The bias decides who is chosen and nothing else: weights come from the scores alone, no gradient reaches the bias.
    """
    scores_ME = torch.sigmoid(logits_ME)
    order_ME = torch.sort((scores_ME + selection_bias_E).detach(), dim=-1, descending=True, stable=True).indices
    chosen_MK = order_ME[:, :num_selected]
    # A product with the choice instead of a gather: its gradient needs no scatter.
    one_hot_MKE = functional.one_hot(chosen_MK, scores_ME.shape[-1]).to(scores_ME.dtype)
    chosen_scores_MK = (scores_ME.unsqueeze(1) * one_hot_MKE).sum(-1)
    # A sigmoid underflows to zero below about -88; without the clamp such a token would turn the batch into NaN.
    totals_M1 = chosen_scores_MK.sum(-1, keepdim=True).clamp(min=torch.finfo(scores_ME.dtype).tiny)
    return chosen_MK, chosen_scores_MK / totals_M1


def place_pairs(chosen_MK: Tensor, is_token_M: Tensor, num_experts: int, tile: int) -> Placement:
    """Give each pair the next slot of its expert, in the order of tokens, then choices. Every pair has one."""
    num_tiles = -(-chosen_MK.numel() // tile) + num_experts
    hits_EQ, ranks_Q = _ranked(chosen_MK, is_token_M, num_experts)
    last_tiles_E = hits_EQ.sum(dim=1).add(tile - 1).div(tile, rounding_mode="floor").cumsum(0)
    first_slots_E = functional.pad(last_tiles_E[:-1], (1, 0)) * tile
    slots_Q = torch.where(ranks_Q >= 0, first_slots_E[chosen_MK.flatten()] + ranks_Q, num_tiles * tile)
    tiles_N = torch.arange(num_tiles, device=chosen_MK.device)
    experts_N = torch.searchsorted(last_tiles_E, tiles_N, right=True)
    return Placement(slots_Q, _inverse(slots_Q, num_tiles * tile), experts_N)


def place_within_capacity(chosen_MK: Tensor, is_token_M: Tensor, num_experts: int, capacity: int) -> Placement:
    """Give each pair the next free slot of its expert, in the order of tokens, then choices, while there is one."""
    _, ranks_Q = _ranked(chosen_MK, is_token_M, num_experts)
    is_kept_Q = (ranks_Q >= 0) & (ranks_Q < capacity)
    slots_Q = torch.where(is_kept_Q, chosen_MK.flatten() * capacity + ranks_Q, num_experts * capacity)
    tiles_N = torch.arange(num_experts * capacity // min(capacity, TILE), device=chosen_MK.device)
    experts_N = tiles_N.div(capacity // min(capacity, TILE), rounding_mode="floor")
    return Placement(slots_Q, _inverse(slots_Q, num_experts * capacity), experts_N)


def _ranked(chosen_MK: Tensor, is_token_M: Tensor, num_experts: int) -> tuple[Tensor, Tensor]:
    """Return which pairs chose which expert (E, Q), and each pair's rank among those of its expert; -1 for one of padding.

    Ranks are summed within blocks, then over blocks: one sum along all pairs would be the work of few threads on a GPU.
    """
    experts_Q, num_pairs = chosen_MK.flatten(), chosen_MK.numel()
    is_wanted_Q = is_token_M.unsqueeze(1).expand_as(chosen_MK).flatten()
    hits_EQ = (experts_Q == torch.arange(num_experts, device=chosen_MK.device).unsqueeze(1)) & is_wanted_Q
    padded_EQ = functional.pad(hits_EQ.long(), (0, -num_pairs % RANKED_AT_ONCE))
    within_ECX = padded_EQ.unflatten(1, (-1, RANKED_AT_ONCE)).cumsum(dim=2)
    before_EC = within_ECX[..., -1].cumsum(dim=1) - within_ECX[..., -1]
    counts_EQ = (within_ECX + before_EC.unsqueeze(2)).flatten(1)[:, :num_pairs]
    return hits_EQ, (counts_EQ * hits_EQ).sum(dim=0) - 1


def _inverse(slots_Q: Tensor, num_slots: int) -> Tensor:
    """Return the pair of each slot, Q if none."""
    num_pairs = slots_Q.numel()
    pairs = torch.full((num_slots + 1,), num_pairs, dtype=torch.int64, device=slots_Q.device)
    return pairs.index_put((slots_Q,), torch.arange(num_pairs, device=slots_Q.device))[:num_slots]


def activate(inner_F: Tensor, is_gated: bool) -> Tensor:
    """Compute silu(gate) * up, where gate and up are the two halves of the last axis; without a gate, silu(up)."""
    if not is_gated:
        return functional.silu(inner_F)
    gate_F, up_F = inner_F.chunk(2, dim=-1)
    return functional.silu(gate_F) * up_F


def router_z_loss(logits_ME: Tensor, is_token_M: Tensor) -> Tensor:
    """Return the mean over tokens, padding left out, of the squared log-sum-exp of the router's logits."""
    squares_M = torch.logsumexp(logits_ME, dim=-1).square() * is_token_M
    return squares_M.sum() / is_token_M.sum().clamp(min=1)
