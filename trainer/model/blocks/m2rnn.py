"""R: a recurrent network whose state is a matrix for each head, nonlinear in time.

    z_t = tanh(h_{t-1} W + k_t v_t^T)        h_t = f_t h_{t-1} + (1 - f_t) z_t        y_t = q_t^T h_t + D v_t
    f_t = exp(-exp(A_log) softplus(d_t + bias))

q, k and v pass a causal convolution of 4 taps and SiLU; h and the taps start from zero in each document. Serial in
time: the state enters a tanh, so no scan can reorder it.

Shapes: B rows, T tokens of a row, H heads, K key size, V value size, C channels of q, k and v together, D width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.causal_convolution import causal_convolution
from kernels.gated_rms_norm import gated_rms_norm
from kernels.m2rnn.op import RecurrenceArguments, m2rnn
from trainer.config.model import ModelConfig
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
from trainer.model.layers import NUM_TAPS, BlockOutput, Projection, RMSNorm
from trainer.model.segments import PackedRows, StepToken, push, window_segments

DECAY_RATE_RANGE = (1e-3, 16.0)
"""As published from 0, which has no logarithm."""


class RecurrenceInputs(NamedTuple):
    """Inputs of the recurrence: q, k, v and the forget gate f, 0 to 1."""

    queries_BTHK: Tensor
    keys_BTHK: Tensor
    values_BTHV: Tensor
    forget_BTH: Tensor


class M2RNNState(NamedTuple):
    """The last inputs of the convolution, as many as there are taps, and h."""

    channels_BKC: Tensor
    state_BHKV: Tensor


class M2RNN(nn.Module):
    """One M2RNN block: one projection in, the convolution, the recurrence, a gate, a norm, one projection out."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        part = config.m2rnn
        heads, keys, values = part.num_heads, part.key_size, part.value_size
        self.key_size, self.value_size = keys, values
        self.channel_widths = (heads * keys, heads * keys, heads * values)
        self.widths = (sum(self.channel_widths), heads * values, heads)
        self.into = Projection(config.width, sum(self.widths), (*self.channel_widths, heads * values, heads))
        self.norm = RMSNorm(heads * values, config.norm_epsilon)
        self.out = Projection(heads * values, config.width, initializer=fan_in_normal(heads * values, config.depth))
        self.taps_CK = nn.Parameter(torch.empty(sum(self.channel_widths), NUM_TAPS))
        self.transition_HVV = nn.Parameter(torch.empty(heads, values, values))
        self.log_decay_rate_H = nn.Parameter(torch.empty(heads))
        self.step_bias_H = nn.Parameter(torch.empty(heads))
        self.skip_HV = nn.Parameter(torch.empty(heads, values))

    def parameter_specs(self) -> dict[str, ParameterSpec]:
        initializers: dict[str, Initializer] = {
            "taps_CK": fan_in_normal(NUM_TAPS),
            "transition_HVV": Identity(),
            "log_decay_rate_H": LogOfUniform(*DECAY_RATE_RANGE),
            "step_bias_H": StepSizeBias(),
            "skip_HV": Constant(1.0),
        }
        return {name: ParameterSpec(initializer, ParameterKind.CHANNEL) for name, initializer in initializers.items()}

    def forward(self, hidden_BTD: Tensor, rows: PackedRows) -> BlockOutput:
        channels_BTC, gate, step_BTH = self.into(hidden_BTD).split(self.widths, dim=-1)
        inputs = self._recurrence_inputs(channels_BTC, step_BTH, rows.segments.positions_BT)
        read_BTHV = m2rnn(RecurrenceArguments(*inputs, self.transition_HVV, rows.segments.segment_ids_BT))
        mixed = (read_BTHV + self.skip_HV * inputs.values_BTHV).flatten(2)
        return BlockOutput(self.out(self._gated(mixed, gate)), None)

    def initial_state(self, num_rows: int) -> M2RNNState:
        """Return the state before the first token."""
        heads, values, _ = self.transition_HVV.shape
        channels_BKC = self.taps_CK.new_zeros(num_rows, NUM_TAPS, sum(self.channel_widths))
        return M2RNNState(channels_BKC, self.taps_CK.new_zeros(num_rows, heads, self.key_size, values))

    def step(self, hidden_BD: Tensor, token: StepToken, state: M2RNNState) -> tuple[Tensor, M2RNNState]:
        """Return the update for one token, and the state after it."""
        channels_BC, gate, step_BH = self.into(hidden_BD).split(self.widths, dim=-1)
        window_BKC = push(state.channels_BKC, channels_BC.to(state.channels_BKC.dtype))
        positions_BK = window_segments(token, NUM_TAPS).positions_BT
        queries_BKHK, keys_BKHK, values_BKHV, forget_B1H = self._recurrence_inputs(
            window_BKC, step_BH.unsqueeze(1), positions_BK
        )
        query_BHK, key_BHK, value_BHV = queries_BKHK[:, -1], keys_BKHK[:, -1], values_BKHV[:, -1]
        previous_BHKV = state.state_BHKV * (~token.is_start).to(state.state_BHKV.dtype)[:, None, None, None]
        drive_BHKV = key_BHK.unsqueeze(-1) * value_BHV.unsqueeze(-2)
        candidate_BHKV = torch.tanh(previous_BHKV @ self.transition_HVV + drive_BHKV)
        state_BHKV = torch.lerp(candidate_BHKV, previous_BHKV, forget_B1H[:, 0, :, None, None])
        read_BHV = (query_BHK.unsqueeze(-2) @ state_BHKV).squeeze(-2)
        mixed = (read_BHV + self.skip_HV * value_BHV).flatten(1)
        return self.out(self._gated(mixed, gate)), M2RNNState(window_BKC, state_BHKV)

    def _gated(self, mixed: Tensor, gate: Tensor) -> Tensor:
        """Compute norm(mixed * silu(gate)), in the dtype of the gate."""
        return gated_rms_norm(mixed, gate, self.norm.weight, self.norm.epsilon)

    def _recurrence_inputs(self, channels_BTC: Tensor, step_BTH: Tensor, positions_BT: Tensor) -> RecurrenceInputs:
        """Convolve and split; everything the recurrence reads is in the parameters' dtype (float32)."""
        mixed_BTC = causal_convolution(channels_BTC, self.taps_CK, positions_BT, has_silu=True)
        queries, keys, values = mixed_BTC.split(self.channel_widths, dim=-1)
        step_sizes_BTH = functional.softplus(step_BTH.to(self.step_bias_H.dtype) + self.step_bias_H)
        return RecurrenceInputs(
            queries_BTHK=queries.unflatten(-1, (-1, self.key_size)),
            keys_BTHK=keys.unflatten(-1, (-1, self.key_size)),
            values_BTHV=values.unflatten(-1, (-1, self.value_size)),
            forget_BTH=torch.exp(-self.log_decay_rate_H.exp() * step_sizes_BTH),
        )
