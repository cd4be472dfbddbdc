"""A: grouped-query attention within a document, with the Engram branch in the layers that the preset lists.

    update = W_o Attention(Rot(W_q x), Rot(W_k x), W_v x) + Engram(x)

Shapes: B rows, T tokens of a row, D width, H query heads, G key/value heads, E head size, S = E / 2 rotated pairs,
U tokens that were decoded.
Sources: Ainslie et al. 2023 (grouped queries), arXiv 2305.13245; Su et al. 2021 (rotary positions), arXiv 2104.09864.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from trainer.config.model import AttentionConfig, ModelConfig
from trainer.model.blocks.engram import Engram, EngramState
from trainer.model.initialization import fan_in_normal
from trainer.model.layers import BlockOutput, Projection, rotate_pairs
from trainer.model.segments import PackedRows, StepToken


def rotary_phases(positions_BT: Tensor, head_size: int, base: float) -> Tensor:
    """Return the angles (B, T, S) of each pair at each position: position * base^(-2 i / head_size), float32."""
    exponents_S = torch.arange(0, head_size, 2, dtype=torch.float32, device=positions_BT.device) / head_size
    return positions_BT.unsqueeze(-1) * torch.pow(base, -exponents_S)


class AttentionState(NamedTuple):
    """Rotated keys and values of all tokens so far; positions separate documents. Engram's state if the layer has it."""

    keys_BGUE: Tensor
    values_BGUE: Tensor
    engram: EngramState | None


class Attention(nn.Module):
    """Causal attention that sees its own document only; rotary positions restart with each document."""

    def __init__(self, config: ModelConfig, layer: int, vocabulary_size: int) -> None:
        super().__init__()
        part: AttentionConfig = config.attention
        self.head_size = part.head_size
        self.rotary_base = part.rotary_base
        self.query = Projection(config.width, part.num_query_heads * part.head_size)
        self.key = Projection(config.width, part.num_key_value_heads * part.head_size)
        self.value = Projection(config.width, part.num_key_value_heads * part.head_size)
        inner_size = part.num_query_heads * part.head_size
        self.out = Projection(inner_size, config.width, initializer=fan_in_normal(inner_size, config.depth))
        self.engram = Engram(config, layer, vocabulary_size) if layer in part.engram.layers else None

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> BlockOutput:
        phases_BTS = rotary_phases(rows.segments.positions_BT, self.head_size, self.rotary_base)
        phases_B1TS = phases_BTS.unsqueeze(1)
        query_BHTE = rotate_pairs(self._heads(self.query(hidden_BTD)), phases_B1TS)
        key_BGTE = rotate_pairs(self._heads(self.key(hidden_BTD)), phases_B1TS)
        value_BGTE = self._heads(self.value(hidden_BTD))
        mixed_BHTE = rows.attention.attend(query_BHTE, key_BGTE, value_BGTE)
        update_BTD = self.out(mixed_BHTE.transpose(1, 2).flatten(2))
        if self.engram is not None:
            update_BTD = update_BTD + self.engram(hidden_BTD, rows)
        return BlockOutput(update_BTD, None)

    def initial_state(self, num_rows: int) -> AttentionState:
        """Return the state before the first token."""
        num_groups = self.key.weight.shape[0] // self.head_size
        none_BGUE = self.key.weight.new_zeros(num_rows, num_groups, 0, self.head_size)
        return AttentionState(none_BGUE, none_BGUE, self.engram.initial_state(num_rows) if self.engram else None)

    def step(self, hidden_BD: Tensor, token: StepToken, state: AttentionState) -> tuple[Tensor, AttentionState]:
        """Return the update for one token, and the state after it."""
        phases_B11S = rotary_phases(token.positions_B, self.head_size, self.rotary_base)[:, None, None]
        query_BH1E, key_BG1E, value_BG1E = (
            self._heads(projection(hidden_BD).unsqueeze(1)) for projection in (self.query, self.key, self.value)
        )
        # Copying the cache at each token costs no more than the attention that reads it.
        keys_BGUE = torch.cat((state.keys_BGUE, rotate_pairs(key_BG1E, phases_B11S)), dim=2)
        values_BGUE = torch.cat((state.values_BGUE, value_BG1E), dim=2)
        ages_U = torch.arange(keys_BGUE.shape[2] - 1, -1, -1, device=hidden_BD.device)
        is_seen_B11U = (ages_U <= token.positions_B.unsqueeze(1))[:, None, None]
        with sdpa_kernel(SDPBackend.MATH):  # a few numbers a token, whatever the full pass uses
            mixed_BH1E = functional.scaled_dot_product_attention(
                rotate_pairs(query_BH1E, phases_B11S), keys_BGUE, values_BGUE, attn_mask=is_seen_B11U, enable_gqa=True
            )
        update_BD = self.out(mixed_BH1E.flatten(1))
        if self.engram is None or state.engram is None:
            return update_BD, AttentionState(keys_BGUE, values_BGUE, None)
        memory_BD, engram = self.engram.step(hidden_BD, token, state.engram)
        return update_BD + memory_BD, AttentionState(keys_BGUE, values_BGUE, engram)

    def _heads(self, channels: Tensor) -> Tensor:
        """Turn (B, T, heads * E) into (B, heads, T, E)."""
        return channels.unflatten(-1, (-1, self.head_size)).transpose(1, 2)
