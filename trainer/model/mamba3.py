"""M: Mamba-3, single input and output. The scan itself, its formulas and its definition are `kernels.mamba3_scan`.

One projection makes z, x, B, C, and raw values of the step size D, the decay rate A, the current token's share l and the
velocity u of the phases; the result is W_o ((y + Dskip x) silu(z)). Sums, phases and states are float32, products of the
scan in the dtype of the hidden states.

Shapes: B rows, T tokens of a row, H heads, P head size, N state size, S = N / 4 rotated pairs, D width, E = H P.
Source: Mamba-3 (2026).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.mamba3_scan import ScanArguments, mamba3_scan
from trainer.config import ModelConfig
from trainer.model.initialization import Constant, ParameterKind, ParameterSpec, StepSizeBias
from trainer.model.layers import BlockOutput, Projection, RMSNorm
from trainer.model.segments import PackedRows

STEP_SIZE_RANGE = (1e-3, 0.1)
SLOWEST_DECAY = -1e-4
EXPANSION = 2


class Mamba3(nn.Module):
    """One Mamba-3 block: one projection in, the scan, a gate, one projection out."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        part = config.mamba3
        inner_size = EXPANSION * config.width
        self.head_size, self.chunk_size = part.head_size, part.chunk_size
        num_heads, num_states = inner_size // part.head_size, part.state_size
        self.widths = (inner_size, inner_size, num_states, num_states, *(num_heads,) * 3, num_states // 4)
        self.into = Projection(config.width, sum(self.widths))
        self.out = Projection(inner_size, config.width)
        self.query_norm = RMSNorm(num_states, config.norm_epsilon)
        self.key_norm = RMSNorm(num_states, config.norm_epsilon)
        self.query_bias_HN = nn.Parameter(torch.empty(num_heads, num_states))
        self.key_bias_HN = nn.Parameter(torch.empty(num_heads, num_states))
        self.step_bias_H = nn.Parameter(torch.empty(num_heads))
        self.skip_H = nn.Parameter(torch.empty(num_heads))

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        one = ParameterSpec(Constant(1.0), ParameterKind.CHANNEL)
        step = ParameterSpec(StepSizeBias(*STEP_SIZE_RANGE), ParameterKind.CHANNEL)
        return {"query_bias_HN": one, "key_bias_HN": one, "step_bias_H": step, "skip_H": one}

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> BlockOutput:
        gate_BTE, *parts = self.into(hidden_BTD).split(self.widths, dim=-1)
        arguments = self._scan_arguments(parts, rows.segments.segment_ids_BT)
        mixed_BTHP = mamba3_scan(arguments, self.chunk_size) + self.skip_H.unsqueeze(-1) * arguments.values_BTHP
        gated_BTE = mixed_BTHP.flatten(2).to(hidden_BTD.dtype) * functional.silu(gate_BTE)
        return BlockOutput(self.out(gated_BTE), None)

    def _scan_arguments(self, parts: list[Tensor], segment_ids_BT: Tensor) -> ScanArguments:
        """What the scan reads: vectors in the dtype of the hidden states, all else in that of the parameters (float32)."""
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
    """1 + x from zero up, 1 / (1 - x) below: positive, smooth, and slow to vanish."""
    # The clamp keeps the branch that is not taken finite, or its gradient would be NaN at x = 1.
    return torch.where(x >= 0, 1 + x, 1 / (1 - x.clamp(max=0)))
