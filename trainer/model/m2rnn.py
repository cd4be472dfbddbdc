"""R: M2RNN, a recurrent network with a matrix for a state. The recurrence and its definition are `kernels.m2rnn`.

q, k and v pass a causal convolution of 4 taps and SiLU, whose taps start from zero in each document; the forget gate is
f_t = exp(-exp(A_log) softplus(d_t + bias)), and the result y_t + D v_t is gated, normed and projected.

Shapes: B rows, T tokens of a row, H heads, K key size, V value size, C channels of q, k and v together, D width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.m2rnn import RecurrenceArguments, m2rnn
from trainer.config import ModelConfig
from trainer.model.initialization import (
    Constant,
    Identity,
    Initializer,
    LogOfUniform,
    ParameterKind,
    ParameterSpec,
    StepSizeBias,
    fan_in_normal,
)
from trainer.model.layers import NUM_TAPS, BlockOutput, Projection, RMSNorm, causal_convolution
from trainer.model.segments import PackedRows

STEP_SIZE_RANGE = (1e-3, 0.1)
DECAY_RATE_RANGE = (1.0, 16.0)


class M2RNN(nn.Module):
    """One M2RNN block: one projection in, the convolution, the recurrence, a gate, a norm, one projection out."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        part = config.m2rnn
        heads, keys, values = part.num_heads, part.key_size, part.value_size
        self.key_size, self.value_size = keys, values
        self.channel_widths = (heads * keys, heads * keys, heads * values)
        self.widths = (sum(self.channel_widths), heads * values, heads)
        self.into = Projection(config.width, sum(self.widths))
        self.norm = RMSNorm(heads * values, config.norm_epsilon)
        self.out = Projection(heads * values, config.width)
        self.taps_CK = nn.Parameter(torch.empty(sum(self.channel_widths), NUM_TAPS))
        self.transition_HVV = nn.Parameter(torch.empty(heads, values, values))
        self.log_decay_rate_H = nn.Parameter(torch.empty(heads))
        self.step_bias_H = nn.Parameter(torch.empty(heads))
        self.skip_H = nn.Parameter(torch.empty(heads))

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        initializers: dict[str, Initializer] = {
            "taps_CK": fan_in_normal(NUM_TAPS),
            "transition_HVV": Identity(),
            "log_decay_rate_H": LogOfUniform(*DECAY_RATE_RANGE),
            "step_bias_H": StepSizeBias(*STEP_SIZE_RANGE),
            "skip_H": Constant(1.0),
        }
        return {name: ParameterSpec(initializer, ParameterKind.CHANNEL) for name, initializer in initializers.items()}

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> BlockOutput:
        channels_BTC, gate, step_BTH = self.into(hidden_BTD).split(self.widths, dim=-1)
        inputs = self._arguments(channels_BTC, step_BTH, rows)
        mixed = (m2rnn(inputs) + self.skip_H.unsqueeze(-1) * inputs.values_BTHV).flatten(2)
        return BlockOutput(self.out(self.norm(mixed.to(hidden_BTD.dtype) * functional.silu(gate))), None)

    def _arguments(self, channels_BTC: Tensor, step_BTH: Tensor, rows: PackedRows) -> RecurrenceArguments:
        """Convolve and split; everything the recurrence reads is in the parameters' dtype (float32)."""
        wide_BTC = channels_BTC.to(self.taps_CK.dtype)
        mixed_BTC = functional.silu(causal_convolution(wide_BTC, self.taps_CK, rows.segments.positions_BT))
        queries, keys, values = mixed_BTC.split(self.channel_widths, dim=-1)
        step_sizes_BTH = functional.softplus(step_BTH.to(self.step_bias_H.dtype) + self.step_bias_H)
        return RecurrenceArguments(
            queries_BTHK=queries.unflatten(-1, (-1, self.key_size)),
            keys_BTHK=keys.unflatten(-1, (-1, self.key_size)),
            values_BTHV=values.unflatten(-1, (-1, self.value_size)),
            forget_BTH=torch.exp(-self.log_decay_rate_H.exp() * step_sizes_BTH),
            transition_HVV=self.transition_HVV,
            document_index_BT=rows.segments.segment_ids_BT,
        )
