"""M: Mamba-3, single input and output, as a chunked scan and as the two-term recurrence that defines it.

    phi_t = phi_{t-1} + D_t u_t        q_t = Rot_phi(C_t)        k_t = Rot_phi(B_t)        a_t = exp(D_t A_t)
    h_t = a_t h_{t-1} + (1 - l_t) D_t a_t x_{t-1} k_{t-1}^T + l_t D_t x_t k_t^T            y_t = h_t q_t

At a document start phi, h, x_{t-1} and k_{t-1} are zero. In the chunked form the key of token j carries r_j = g_j + s_j
with g_j = l_j D_j and s_j = D_{j+1} (1 - l_{j+1}), which is zero at a document's last token; the diagonal takes g
alone, or y_t would depend on token t+1. Decays and angles are summed within document and chunk, so that no rounding of
one document reaches another.

Shapes: B rows, T tokens of a row, C chunks, L tokens of a chunk, H heads, P head size, N state size, S = N / 4 rotated
pairs, D width. Source: Mamba-3 (2026); the discretisation is the exponential-trapezoidal one.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.config import ModelConfig
from trainer.model.decoding import StepToken
from trainer.model.initialization import Constant, ParameterKind, ParameterSpec, StepSizeBias
from trainer.model.layers import BlockOutput, Projection, RMSNorm
from trainer.model.rotary import rotate_pairs
from trainer.model.segments import PackedRows, causal_mask

STEP_SIZE_RANGE = (1e-3, 0.1)
SLOWEST_DECAY = -1e-4
EXPANSION = 2
# No run of a document has these ids: the tail that fills the last chunk, and what stands before the first chunk.
FILL_SEGMENT, NO_SEGMENT = -1, -2


class ScanInputs(NamedTuple):
    """What the scan reads, by the formulas' letters: C, B, x, D, A, l, u.

    Step sizes are positive, decay rates negative, the current token's share is in 0 to 1, velocities are radians per
    unit of step size.
    """

    queries_BTHN: Tensor
    keys_BTHN: Tensor
    values_BTHP: Tensor
    step_sizes_BTH: Tensor
    decay_rates_BTH: Tensor
    current_shares_BTH: Tensor
    velocities_BTS: Tensor


class Mamba3State(NamedTuple):
    """What the recurrence of the file's head carries from token to token: phi, h, x_{t-1} and k_{t-1}."""

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
        gate_BTE, inputs = self._scan_inputs(self.into(hidden_BTD))
        scanned_BTHP = mamba3_scan(inputs, rows.segments.segment_ids_BT, self.chunk_size)
        mixed_BTHP = scanned_BTHP + self.skip_H.unsqueeze(-1) * inputs.values_BTHP
        gated_BTE = mixed_BTHP.flatten(2).to(hidden_BTD.dtype) * functional.silu(gate_BTE)
        return BlockOutput(self.out(gated_BTE), None)

    def initial_state(self, num_rows: int) -> Mamba3State:
        """Before the first token."""
        num_heads, num_states = self.query_bias_HN.shape
        sizes = ((num_states // 4,), (self.head_size, num_states), (self.head_size,), (num_states,))
        return Mamba3State(*(self.skip_H.new_zeros(num_rows, num_heads, *size) for size in sizes))

    def step(self, hidden_BD: Tensor, token: StepToken, state: Mamba3State) -> tuple[Tensor, Mamba3State]:
        """The update for one token, and the state after it."""
        gate_B1E, inputs = self._scan_inputs(self.into(hidden_BD.unsqueeze(1)))
        scanned_BHP, state = mamba3_step(ScanInputs(*(tensor[:, 0] for tensor in inputs)), token.is_start, state)
        mixed_BHP = scanned_BHP + self.skip_H.unsqueeze(-1) * inputs.values_BTHP[:, 0]
        return self.out(mixed_BHP.flatten(1).to(hidden_BD.dtype) * functional.silu(gate_B1E[:, 0])), state

    def _scan_inputs(self, projected: Tensor) -> tuple[Tensor, ScanInputs]:
        """Split the projection into the gate z and the inputs of the scan, in the parameters' dtype (float32)."""
        gate_BTE, *parts = projected.split(self.widths, dim=-1)
        values, keys, queries, step, decay, share, angle = (part.to(self.skip_H.dtype) for part in parts)
        return gate_BTE, ScanInputs(
            queries_BTHN=self.query_norm(queries).unsqueeze(2) + self.query_bias_HN,
            keys_BTHN=self.key_norm(keys).unsqueeze(2) + self.key_bias_HN,
            values_BTHP=values.unflatten(-1, (-1, self.head_size)),
            step_sizes_BTH=functional.softplus(step + self.step_bias_H),
            decay_rates_BTH=(-heavy_tail(decay)).clamp(max=SLOWEST_DECAY),
            current_shares_BTH=torch.sigmoid(share),
            velocities_BTS=math.pi * torch.tanh(angle),
        )


def heavy_tail(x: Tensor) -> Tensor:
    """1 + x from zero up, 1 / (1 - x) below: positive, smooth, and slow to vanish."""
    # The clamp keeps the branch that is not taken finite, or its gradient would be NaN at x = 1.
    return torch.where(x >= 0, 1 + x, 1 / (1 - x.clamp(max=0)))


def mamba3_scan(inputs: ScanInputs, segment_ids_BT: Tensor, chunk_size: int) -> Tensor:
    """y (B, T, H, P) of the recurrence, by chunks: work quadratic within a chunk and a short serial loop over chunks.

    `segment_ids_BT` numbers the documents of each row; the state starts from zero in each. T need not be a multiple of
    `chunk_size`.
    """
    num_tokens = segment_ids_BT.shape[1]
    fill = -num_tokens % chunk_size
    weights = _key_weights(inputs, segment_ids_BT)
    segments_BCL = functional.pad(segment_ids_BT, (0, fill), value=FILL_SEGMENT).unflatten(1, (-1, chunk_size))
    chunks = ScanInputs(*(_split_chunks(tensor, chunk_size, fill) for tensor in inputs))
    key_weights_BCHL = _split_chunks(weights, chunk_size, fill).transpose(2, 3)
    scanned_BCLHP = _scan_chunks(chunks, key_weights_BCHL, segments_BCL)
    return scanned_BCLHP.flatten(1, 2)[:, :num_tokens]


def mamba3_step(inputs: ScanInputs, is_start_B: Tensor, state: Mamba3State) -> tuple[Tensor, Mamba3State]:
    """y (B, H, P) of one token by the two-term recurrence. Fields of `inputs` are shaped (B, ...) here."""
    queries_BHN, keys_BHN, value_BHP, step_BH, rates_BH, shares_BH, velocities_BS = inputs
    before = Mamba3State(*(tensor * _keeps(is_start_B, tensor) for tensor in state))
    phases_BHS = before.phases_BHS + step_BH.unsqueeze(-1) * velocities_BS.unsqueeze(1)
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
    """Zero in the rows where a document starts, one in the others, shaped to multiply `like`."""
    return (~is_start_B).to(like.dtype).view(-1, *(1,) * (like.dim() - 1))


def _key_weights(inputs: ScanInputs, segment_ids_BT: Tensor) -> Tensor:
    """r_t = l_t D_t + D_{t+1} (1 - l_{t+1}), the second term only where the next token is of the same document."""
    previous_shares_BTH = inputs.step_sizes_BTH * (1 - inputs.current_shares_BTH)
    same_as_next = (segment_ids_BT[:, 1:] == segment_ids_BT[:, :-1]).unsqueeze(-1)
    shifted_BTH = functional.pad(previous_shares_BTH[:, 1:] * same_as_next, (0, 0, 0, 1))
    return inputs.current_shares_BTH * inputs.step_sizes_BTH + shifted_BTH


def _split_chunks(tensor_BT: Tensor, chunk_size: int, fill: int) -> Tensor:
    """(B, T, ...) -> (B, C, L, ...), with zeros after the last token."""
    padding = (0, 0) * (tensor_BT.dim() - 2) + (0, fill)
    return functional.pad(tensor_BT, padding).unflatten(1, (-1, chunk_size))


def _scan_chunks(chunks: ScanInputs, key_weights_BCHL: Tensor, segments_BCL: Tensor) -> Tensor:
    """The chunked form. Fields of `chunks` are shaped (B, C, L, ...) here."""
    dtype = chunks.values_BTHP.dtype
    mask_BCLL = causal_mask(segments_BCL)
    before_BC = functional.pad(segments_BCL[:, :-1, -1], (1, 0), value=NO_SEGMENT)
    continues_BCL = segments_BCL == before_BC.unsqueeze(-1)
    reaches_end_BCL = segments_BCL == segments_BCL[..., -1:]

    decays_BCLH = _document_sums(mask_BCLL, chunks.step_sizes_BTH * chunks.decay_rates_BTH)
    decays_BCHL = decays_BCLH.transpose(2, 3)
    queries_BCHLN, keys_BCHLN = _rotated(chunks, mask_BCLL, continues_BCL)
    values_BCHLP = chunks.values_BTHP.transpose(2, 3)
    weighted_BCHLP = values_BCHLP * key_weights_BCHL.unsqueeze(-1)

    to_end_BCHL = (decays_BCHL[..., -1:] - decays_BCHL).masked_fill(~reaches_end_BCL.unsqueeze(2), -math.inf).exp()
    from_start_BCHL = decays_BCHL.masked_fill(~continues_BCL.unsqueeze(2), -math.inf).exp()
    added_BCHPN = (weighted_BCHLP * to_end_BCHL.unsqueeze(-1)).transpose(-1, -2) @ keys_BCHLN
    states_BCHPN = _states_before_chunks(added_BCHPN, from_start_BCHL[..., -1])

    matches_BCHLL = queries_BCHLN @ keys_BCHLN.transpose(-1, -2)
    strict_BC1LL = mask_BCLL.tril(-1).unsqueeze(2)
    gaps_BCHLL = decays_BCHL.unsqueeze(-1) - decays_BCHL.unsqueeze(-2)
    kernel_BCHLL = matches_BCHLL * gaps_BCHLL.masked_fill(~strict_BC1LL, -math.inf).exp()
    own_BCHL = (chunks.current_shares_BTH * chunks.step_sizes_BTH).transpose(2, 3).to(dtype)
    diagonal_BCHL = own_BCHL * matches_BCHLL.diagonal(dim1=-2, dim2=-1)
    carried_BCHLP = from_start_BCHL.unsqueeze(-1) * (queries_BCHLN @ states_BCHPN.transpose(-1, -2))
    result_BCHLP = kernel_BCHLL @ weighted_BCHLP + diagonal_BCHL.unsqueeze(-1) * values_BCHLP + carried_BCHLP
    return result_BCHLP.transpose(2, 3)


def _document_sums(mask_BCLL: Tensor, terms_BCLX: Tensor) -> Tensor:
    """Inclusive running sums within chunk and document, by a product with the mask: zeros add exactly, in one order."""
    return mask_BCLL.to(terms_BCLX.dtype) @ terms_BCLX


def _rotated(chunks: ScanInputs, mask_BCLL: Tensor, continues_BCL: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys (B, C, H, L, N), turned by their phases. The phase at a chunk's end goes to the next chunk."""
    turns_BCLHS = chunks.step_sizes_BTH.unsqueeze(-1) * chunks.velocities_BTS.unsqueeze(3)
    local_BCLHS = _document_sums(mask_BCLL, turns_BCLHS.flatten(3)).unflatten(3, turns_BCLHS.shape[3:])
    carried_BHS = torch.zeros_like(local_BCLHS[:, 0, 0])
    phases = []
    for local_BLHS, continues_BL in zip(local_BCLHS.unbind(1), continues_BCL.unbind(1), strict=True):
        phases.append(local_BLHS + continues_BL[..., None, None] * carried_BHS.unsqueeze(1))
        carried_BHS = phases[-1][:, -1]
    phases_BCHLS = torch.stack(phases, dim=1).transpose(2, 3)
    queries_BCHLN, keys_BCHLN = chunks.queries_BTHN.transpose(2, 3), chunks.keys_BTHN.transpose(2, 3)
    return rotate_pairs(queries_BCHLN, phases_BCHLS), rotate_pairs(keys_BCHLN, phases_BCHLS)


def _states_before_chunks(added_BCHPN: Tensor, kept_BCH: Tensor) -> Tensor:
    """The state that enters each chunk, where `kept` is the share of a chunk's entering state that leaves it."""
    state_BHPN = torch.zeros_like(added_BCHPN[:, 0])
    states = []
    for added_BHPN, kept_BH in zip(added_BCHPN.unbind(1), kept_BCH.unbind(1), strict=True):
        states.append(state_BHPN)
        state_BHPN = kept_BH[..., None, None] * state_BHPN + added_BHPN
    return torch.stack(states, dim=1)


def mamba3_scan_reference(inputs: ScanInputs, document_starts_BT: Tensor) -> Tensor:
    """The recurrence of the file's head, token by token: the definition that `mamba3_scan` must equal.

    It shares no step with the chunked form: pairs are complex numbers here, and every reset is written out.
    """
    queries, keys, values, step_sizes, decay_rates, shares, velocities = (tensor.unbind(1) for tensor in inputs)
    previous_value_BHP, previous_key_BHN = torch.zeros_like(values[0]), torch.zeros_like(keys[0])
    state_BHPN = previous_value_BHP.unsqueeze(-1) * previous_key_BHN.unsqueeze(-2)
    phase_BHS = step_sizes[0].unsqueeze(-1) * torch.zeros_like(velocities[0]).unsqueeze(1)
    results = []
    for t, is_start_B in enumerate(document_starts_BT.unbind(1)):
        keep_B11 = (~is_start_B).to(state_BHPN.dtype)[:, None, None]
        previous_value_BHP, previous_key_BHN = previous_value_BHP * keep_B11, previous_key_BHN * keep_B11
        step_BH = step_sizes[t]
        phase_BHS = phase_BHS * keep_B11 + step_BH.unsqueeze(-1) * velocities[t].unsqueeze(1)
        query_BHN, key_BHN = _turned_as_complex(queries[t], phase_BHS), _turned_as_complex(keys[t], phase_BHS)
        decay_BH = torch.exp(step_BH * decay_rates[t])
        earlier_BH, current_BH = (1 - shares[t]) * step_BH * decay_BH, shares[t] * step_BH
        state_BHPN = (
            (decay_BH[..., None] * keep_B11)[..., None] * state_BHPN
            + earlier_BH[..., None, None] * previous_value_BHP[..., None] * previous_key_BHN[..., None, :]
            + current_BH[..., None, None] * values[t][..., None] * key_BHN[..., None, :]
        )
        results.append((state_BHPN * query_BHN.unsqueeze(-2)).sum(-1))
        previous_value_BHP, previous_key_BHN = values[t], key_BHN
    return torch.stack(results, dim=1)


def _turned_as_complex(vectors_BHN: Tensor, phase_BHS: Tensor) -> Tensor:
    num_pairs = phase_BHS.shape[-1]
    pairs_BHS = torch.view_as_complex(vectors_BHN[..., : 2 * num_pairs].unflatten(-1, (num_pairs, 2)).contiguous())
    turned_BHS = pairs_BHS * torch.polar(torch.ones_like(phase_BHS), phase_BHS)
    return torch.cat((torch.view_as_real(turned_BHS).flatten(-2), vectors_BHN[..., 2 * num_pairs :]), dim=-1)
