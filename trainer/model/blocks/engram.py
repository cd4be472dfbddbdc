"""Engram: a memory of n-grams, looked up by hash and gated by the hidden state.

    mix_n(t) = XOR_{k<n} class(t-k) * m_k      row = mix_n(t) mod p      e_t = the rows of all orders and heads, joined
    s = <norm(W_K e), norm(x)> / sqrt(D)       g = sigmoid(sign(s) sqrt(max(|s|, 1e-6)))
    v = g W_V e                                update = v + silu(conv(norm(v)))

The class of a token is its id, or what is left of it by `hash_vocabulary_size`. A token of another document, or before the row,
counts as the pad class: no window crosses a document start.

Shapes: B rows, T tokens of a row, D width, O orders, H heads, J = O H lookups, W width of a table row, E = J W, R rows
of all tables, K taps or tokens of the longest window. Source: Engram (DeepSeek-AI, 2026), arXiv 2601.07372.
"""

import hashlib
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from kernels.causal_convolution import causal_convolution
from kernels.engram_lookup import engram_lookup
from trainer.config.model import EngramConfig, ModelConfig
from trainer.model.initialization import Constant, Normal, ParameterKind, ParameterSpec, fan_in_normal
from trainer.model.layers import NUM_TAPS, Projection, RMSNorm
from trainer.model.segments import PackedRows, Segments, StepToken, push, window_segments

SHORTEST_ORDER = 2
MAX_INT64 = 2**63 - 1


class EngramState(NamedTuple):
    """The last tokens' ids, as many as the longest n-gram has, and their normed values, as many as there are taps."""

    input_ids_BK: Tensor
    values_BKD: Tensor


class Engram(nn.Module):
    """The branch beside one attention layer. `layer` only separates the hash functions of several branches."""

    multipliers_K: Tensor
    table_sizes_OH: Tensor
    offsets_J: Tensor

    def __init__(self, config: ModelConfig, layer: int, vocabulary_size: int) -> None:
        super().__init__()
        part: EngramConfig = config.attention.engram
        self.orders = range(SHORTEST_ORDER, part.max_order + 1)
        self.pad_class = part.hash_vocabulary_size or vocabulary_size
        self.has_more_ids = vocabulary_size > self.pad_class
        num_lookups = len(self.orders) * part.num_heads
        sizes = distinct_primes(part.min_table_rows, num_lookups)
        sizes_J = torch.tensor(sizes)
        multipliers_K = torch.tensor(hash_multipliers(part.hash_seed, layer, part.max_order, self.pad_class + 1))
        self.register_buffer("multipliers_K", multipliers_K, persistent=False)
        self.register_buffer("table_sizes_OH", sizes_J.view(len(self.orders), part.num_heads), persistent=False)
        self.register_buffer("offsets_J", sizes_J.cumsum(0) - sizes_J, persistent=False)
        self.table_RW = nn.Parameter(torch.empty(sum(sizes), part.head_size))
        self.taps_DK = nn.Parameter(torch.empty(config.width, NUM_TAPS))
        self.key = Projection(num_lookups * part.head_size, config.width)
        memory_size = num_lookups * part.head_size
        self.value = Projection(memory_size, config.width, initializer=fan_in_normal(memory_size, config.depth))
        self.key_norm = RMSNorm(config.width, config.norm_epsilon)
        self.query_norm = RMSNorm(config.width, config.norm_epsilon)
        self.value_norm = RMSNorm(config.width, config.norm_epsilon)

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        return {
            "table_RW": ParameterSpec(Normal(1.0), ParameterKind.ENGRAM_TABLE),
            "taps_DK": ParameterSpec(Constant(0.0), ParameterKind.CHANNEL),
        }

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> Tensor:
        value_BTD = self._gated_value(hidden_BTD, self._memory(rows.input_ids_BT, rows.segments))
        nearby_BTD = causal_convolution(
            self.value_norm(value_BTD), self.taps_DK, rows.segments.positions_BT, has_silu=True
        )
        return value_BTD + nearby_BTD.to(value_BTD.dtype)

    def initial_state(self, num_rows: int) -> EngramState:
        """Return the state before the first token."""
        width, num_taps = self.taps_DK.shape
        ids_BK = self.multipliers_K.new_zeros(num_rows, len(self.multipliers_K))
        return EngramState(ids_BK, self.value.weight.new_zeros(num_rows, num_taps, width))

    def step(self, hidden_BD: Tensor, token: StepToken, state: EngramState) -> tuple[Tensor, EngramState]:
        """Return the update for one token, and the state after it."""
        ids_BK = push(state.input_ids_BK, token.input_ids_B)
        memory_B1JW = self._memory(ids_BK, window_segments(token, ids_BK.shape[1]))[:, -1:]
        value_B1D = self._gated_value(hidden_BD.unsqueeze(1), memory_B1JW)
        values_BKD = push(state.values_BKD, self.value_norm(value_B1D)[:, 0])
        positions_BK = window_segments(token, values_BKD.shape[1]).positions_BT
        nearby_BD = causal_convolution(values_BKD, self.taps_DK, positions_BK, has_silu=True)[:, -1]
        update_BD = value_B1D[:, 0] + nearby_BD.to(value_B1D.dtype)
        return update_BD, EngramState(ids_BK, values_BKD)

    def _gated_value(self, hidden_BTD: Tensor, memory_BTJW: Tensor) -> Tensor:
        memory_BTE = memory_BTJW.flatten(2).to(hidden_BTD.dtype)
        agreement_BTD = self.key_norm(self.key(memory_BTE)) * self.query_norm(hidden_BTD)
        scaled_BT1 = agreement_BTD.to(self.taps_DK.dtype).sum(-1, keepdim=True) / math.sqrt(hidden_BTD.shape[-1])
        gate_BT1 = signed_root_gate(scaled_BT1).to(hidden_BTD.dtype)
        return gate_BT1 * self.value(memory_BTE)

    def _memory(self, input_ids_BT: Tensor, segments: Segments) -> Tensor:
        """Return the rows (B, T, J, W) of the joined table that each token's n-grams hash to."""
        if self.has_more_ids:
            input_ids_BT = input_ids_BT % self.pad_class
        hashing = (self.multipliers_K, self.table_sizes_OH, self.offsets_J, self.pad_class)
        return engram_lookup(self.table_RW, input_ids_BT, segments.positions_BT, *hashing)


def signed_root_gate(agreement: Tensor) -> Tensor:
    """Compute sigmoid(sign(s) sqrt(max(|s|, 1e-6))): steep around zero, slow beyond."""
    return torch.sigmoid(agreement.sign() * agreement.abs().clamp(min=1e-6).sqrt())


def hash_multipliers(seed: int, layer: int, count: int, num_classes: int) -> list[int]:
    """Return odd numbers whose product with any class is below 2^63, so that XOR and remainder never see a negative."""
    half = max(1, MAX_INT64 // num_classes // 2)
    digests = [hashlib.sha256(f"engram\0{seed}\0{layer}\0{k}".encode()).digest() for k in range(count)]
    return [2 * (int.from_bytes(digest, "little") % half) + 1 for digest in digests]


def distinct_primes(minimum: int, count: int) -> list[int]:
    """Return the first `count` primes that are not below `minimum`."""
    primes: list[int] = []
    candidate = max(2, minimum)
    while len(primes) < count:
        if all(candidate % divisor for divisor in range(2, math.isqrt(candidate) + 1)):
            primes.append(candidate)
        candidate += 1
    return primes
