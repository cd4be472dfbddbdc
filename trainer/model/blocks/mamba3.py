"""M: Mamba-3, single input and output. The scan itself, its formulas and its definition are `kernels.mamba3_scan.op`.

One projection makes z, x, B, C, and raw values of the step size D, the decay rate A, the current token's share l and the
velocity u of the phases; the result is W_o ((y + Dskip x) silu(z)). Sums, phases and states are float32, products of the
scan in the dtype of the hidden states.

Shapes: B rows, T tokens of a row, H heads, P head size, N state size, S = N / 4 rotated pairs, D width, E = H P.
Source: Mamba-3 (2026).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.mamba3_scan.chunks_torch import within_a_turn
from kernels.mamba3_scan.op import ScanArguments, mamba3_scan
from trainer.config.model import ModelConfig
from trainer.model.initialization import Constant, ParameterKind, ParameterSpec, StepSizeBias, fan_in_uniform
from trainer.model.layers import BlockOutput, Projection, RMSNorm, rotate_pairs
from trainer.model.segments import PackedRows, StepToken

SLOWEST_DECAY = -1e-4
EXPANSION = 2


class Mamba3State(NamedTuple):
    """State of the recurrence in the module's docstring: phi, h, x_{t-1} and k_{t-1}."""

    phases_BHS: Tensor
    state_BHPN: Tensor
    value_BHP: Tensor
    key_BHN: Tensor


class Mamba3(nn.Module):
    """One Mamba-3 block: one projection in, the scan, a gate, one projection out."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        part = config.mamba3
        inner_size = EXPANSION * config.width
        self.head_size, self.chunk_size = part.head_size, part.chunk_size
        num_heads, num_states = inner_size // part.head_size, part.state_size
        self.widths = (inner_size, inner_size, num_states, num_states, *(num_heads,) * 3, num_states // 4)
        self.into = Projection(config.width, sum(self.widths), self.widths, fan_in_uniform(config.width))
        self.out = Projection(inner_size, config.width, initializer=fan_in_uniform(inner_size, config.depth))
        self.query_norm = RMSNorm(num_states, config.norm_epsilon)
        self.key_norm = RMSNorm(num_states, config.norm_epsilon)
        self.query_bias_HN = nn.Parameter(torch.empty(num_heads, num_states))
        self.key_bias_HN = nn.Parameter(torch.empty(num_heads, num_states))
        self.step_bias_H = nn.Parameter(torch.empty(num_heads))
        self.skip_H = nn.Parameter(torch.empty(num_heads))

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        one = ParameterSpec(Constant(1.0), ParameterKind.CHANNEL)
        step = ParameterSpec(StepSizeBias(), ParameterKind.CHANNEL)
        return {"query_bias_HN": one, "key_bias_HN": one, "step_bias_H": step, "skip_H": one}

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> BlockOutput:
        gate_BTE, *parts = self.into(hidden_BTD).split(self.widths, dim=-1)
        arguments = self._scan_arguments(parts, rows.segments.segment_ids_BT)
        mixed_BTHP = mamba3_scan(arguments, self.chunk_size) + self.skip_H.unsqueeze(-1) * arguments.values_BTHP
        gated_BTE = mixed_BTHP.flatten(2).to(hidden_BTD.dtype) * functional.silu(gate_BTE)
        return BlockOutput(self.out(gated_BTE), None)

    def initial_state(self, num_rows: int) -> Mamba3State:
        """Return the state before the first token."""
        num_heads, num_states = self.query_bias_HN.shape
        sizes = ((num_states // 4,), (self.head_size, num_states), (self.head_size,), (num_states,))
        return Mamba3State(*(self.skip_H.new_zeros(num_rows, num_heads, *size) for size in sizes))

    def step(self, hidden_BD: Tensor, token: StepToken, state: Mamba3State) -> tuple[Tensor, Mamba3State]:
        """Return the update for one token, and the state after it."""
        gate_B1E, *parts = self.into(hidden_BD.unsqueeze(1)).split(self.widths, dim=-1)
        arguments = self._scan_arguments(parts, token.is_start.unsqueeze(1).int())
        scanned_BHP, state = mamba3_step(arguments, token.is_start, state)
        mixed_BHP = scanned_BHP + self.skip_H.unsqueeze(-1) * arguments.values_BTHP[:, 0]
        return self.out(mixed_BHP.flatten(1).to(hidden_BD.dtype) * functional.silu(gate_B1E[:, 0])), state

    def _scan_arguments(self, parts: list[Tensor], segment_ids_BT: Tensor) -> ScanArguments:
        """Return the inputs of the scan: vectors in the dtype of the hidden states, the rest in the parameters'."""
        values, keys, queries, *scalars = parts
        step, decay, share, angle = (part.to(self.skip_H.dtype) for part in scalars)
        return ScanArguments(
            queries_BTN=self.query_norm(queries),
            keys_BTN=self.key_norm(keys),
            query_bias_HN=self.query_bias_HN,
            key_bias_HN=self.key_bias_HN,
            values_BTHP=values.unflatten(-1, (-1, self.head_size)),
            step_sizes_BTH=functional.softplus(step + self.step_bias_H),
            decay_rates_BTH=(-heavy_tail(decay)).clamp(max=SLOWEST_DECAY),
            current_shares_BTH=torch.sigmoid(share),
            velocities_BTS=math.pi * torch.tanh(angle),
            document_index_BT=segment_ids_BT,
        )


def heavy_tail(x: Tensor) -> Tensor:
    """Return 1 + x from zero up, 1 / (1 - x) below: positive, smooth, and slow to vanish."""
    # The clamp keeps the branch that is not taken finite, or its gradient would be NaN at x = 1.
    return torch.where(x >= 0, 1 + x, 1 / (1 - x.clamp(max=0)))


def mamba3_step(arguments: ScanArguments, is_start_B: Tensor, state: Mamba3State) -> tuple[Tensor, Mamba3State]:
    """Return y (B, H, P) of one token by the two-term recurrence: the arguments are those of rows of one token."""
    queries_BHN = arguments.queries_BTN + arguments.query_bias_HN
    keys_BHN = arguments.keys_BTN + arguments.key_bias_HN
    value_BHP, step_BH, rates_BH = (tensor[:, 0] for tensor in arguments[4:7])
    shares_BH, velocities_BS = arguments.current_shares_BTH[:, 0], arguments.velocities_BTS[:, 0]
    before = Mamba3State(*(tensor * _keeps(is_start_B, tensor) for tensor in state))
    phases_BHS = within_a_turn(before.phases_BHS + step_BH.unsqueeze(-1) * velocities_BS.unsqueeze(1))
    key_BHN = rotate_pairs(keys_BHN, phases_BHS)
    decay_BH11 = (step_BH * rates_BH).exp()[..., None, None]
    current_BH1 = (shares_BH * step_BH).unsqueeze(-1)
    earlier_BH1 = ((1 - shares_BH) * step_BH).unsqueeze(-1)
    earlier_BHPN = (earlier_BH1 * before.value_BHP).unsqueeze(-1) * before.key_BHN.unsqueeze(-2)
    current_BHPN = (current_BH1 * value_BHP).unsqueeze(-1) * key_BHN.unsqueeze(-2)
    state_BHPN = decay_BH11 * (before.state_BHPN + earlier_BHPN) + current_BHPN
    result_BHP = (state_BHPN @ rotate_pairs(queries_BHN, phases_BHS).unsqueeze(-1)).squeeze(-1)
    return result_BHP, Mamba3State(phases_BHS, state_BHPN, value_BHP, key_BHN)


def _keeps(is_start_B: Tensor, like: Tensor) -> Tensor:
    """Return 0 in the rows where a document starts, one in the others, shaped to multiply `like`."""
    return (~is_start_B).to(like.dtype).view(-1, *(1,) * (like.dim() - 1))
