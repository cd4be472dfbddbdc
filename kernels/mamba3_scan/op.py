"""Mamba-3, single input and output: the scan from a projection's parts to y, by chunks in parallel.

    phi_t = phi_{t-1} + D_t u_t        q_t = Rot_phi(C_t + b_C)        k_t = Rot_phi(B_t + b_B)        a_t = exp(D_t A_t)
    h_t = a_t h_{t-1} + (1 - l_t) D_t a_t x_{t-1} k_{t-1}^T + l_t D_t x_t k_t^T            y_t = h_t q_t

At a document start phi, h, x_{t-1} and k_{t-1} are zero. This two-term recurrence is the definition. By chunks, with
g_t = l_t D_t, s_t = D_{t+1} (1 - l_{t+1}) (zero at a document's last token), r = g + s, cs the inclusive sums of D A
within chunk and document, S_c the state that enters a chunk, c_i = [i continues the document before the chunk], and
w_j = [j is of the chunk's last document] exp(cs_L - cs_j):

    E_ij = [j < i, same document] exp(cs_i - cs_j)
    y_i = sum_j E_ij r_j (q_i . k_j) x_j + g_i (q_i . k_i) x_i + c_i exp(cs_i) S_c q_i
    S_{c+1} = c_L exp(cs_L) S_c + sum_j w_j r_j x_j k_j^T

The diagonal takes g, not r, or y_t would depend on token t+1. With R = dL/dS leaving the chunk and gy = dL/dy:

    dx_j = r_j sum_i E_ij (q_i . k_j) gy_i + g_j (q_j . k_j) gy_j + w_j r_j R k_j
    dk_j = r_j sum_i E_ij (x_j . gy_i) q_i + g_j (x_j . gy_j) q_j + w_j r_j R^T x_j
    dq_i = sum_j E_ij r_j (x_j . gy_i) k_j + g_i (x_i . gy_i) k_i + c_i exp(cs_i) S^T gy_i
    dr_j = sum_i E_ij (q_i . k_j) (x_j . gy_i) + w_j x_j . R k_j          dg_j = dr_j + (q_j . k_j) (x_j . gy_j)
    R <- c_L exp(cs_L) R + sum_i c_i exp(cs_i) gy_i q_i^T

A number that is not finite makes the rest of its document not finite, and no other document.

Decays within a chunk are exponentials of differences of its sums, as published: what follows a decay by e^-x there has x eps of
error in the exponent. In float32, with chunks of 64 of which a tenth of the tokens decays so, y is off by 11 to 24 eps for x = 10,
46 to 100 for 30 and 130 to 260 for 100, and gradients of step sizes by up to ten times that; nothing of it is seen in bfloat16.

Shapes: B rows, T tokens of a row, C chunks, L tokens of a chunk, H heads, P head size, N state size, S rotated pairs
(2 S <= N). Queries and keys are shared by all heads (one group), their biases are not. Source: Mamba-3 (2026), with the
exponential-trapezoidal discretization.
"""

import math
from typing import Any

import torch
from torch import Tensor

from kernels.framework.backend import UnavailableKernelError, runs_kernel
from kernels.framework.operation import empty_like, operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase
from kernels.mamba3_scan.chunks_torch import (
    NUM_SAVED,
    ScanArguments,
    chunked_scan_backward,
    chunked_scan_forward,
    same_as_previous,
    saved_shapes,
)
from kernels.mamba3_scan.launch import launch_scan_backward, launch_scan_forward, tile_length
from kernels.mamba3_scan.peers import PEERS


def mamba3_scan(arguments: ScanArguments, chunk_size: int) -> Tensor:
    """Compute y (B, T, H, P) of the recurrence, in the dtype of the values. T need not be a multiple of `chunk_size`.

    Runs the Triton kernels on a GPU and in the interpreter, the plain-torch chunks elsewhere. Values, queries and keys
    may be float32 or bfloat16 (float64 on a CPU); sums, phases and states are float32 at least. Raises
    UnavailableKernelError for float16, whose range is too small for the products of a chunk.
    """
    return mamba3_scan_op(*arguments, chunk_size)[0]


def mamba3_scan_reference(arguments: ScanArguments) -> Tensor:
    """Compute the recurrence in the module's docstring token by token: the definition. It shares no step with the chunks.

    Pairs are complex numbers here, and every reset is written out.
    """
    queries_BTN, keys_BTN, query_bias_HN, key_bias_HN, values_BTHP, *scalars, document_index_BT = arguments
    step_sizes_BTH, decay_rates_BTH, current_shares_BTH, velocities_BTS = scalars
    queries_BTHN, keys_BTHN = queries_BTN.unsqueeze(2) + query_bias_HN, keys_BTN.unsqueeze(2) + key_bias_HN
    state_BHPN = torch.zeros_like(values_BTHP[:, 0, :, :, None] * keys_BTHN[:, 0, :, None, :])
    previous_value_BHP, previous_key_BHN = state_BHPN[..., 0], state_BHPN[..., 0, :]
    phase_BHS = torch.zeros_like(step_sizes_BTH[:, 0, :, None] * velocities_BTS[:, 0, None, :])
    results = []
    for t, is_same_B in enumerate(same_as_previous(document_index_BT).unbind(1)):
        keep_B11 = is_same_B[:, None, None]
        state_BHPN = torch.where(keep_B11[..., None], state_BHPN, 0)
        previous_value_BHP = torch.where(keep_B11, previous_value_BHP, 0)
        previous_key_BHN = torch.where(keep_B11, previous_key_BHN, 0)
        step_BH, share_BH = step_sizes_BTH[:, t], current_shares_BTH[:, t]
        turn_BHS = step_BH.unsqueeze(-1) * velocities_BTS[:, t].unsqueeze(1)
        phase_BHS = torch.where(keep_B11, phase_BHS, 0) + turn_BHS
        query_BHN, key_BHN = (_turned_as_complex(each[:, t], phase_BHS) for each in (queries_BTHN, keys_BTHN))
        decay_BH = torch.exp(step_BH * decay_rates_BTH[:, t])
        earlier_BH, current_BH = (1 - share_BH) * step_BH * decay_BH, share_BH * step_BH
        state_BHPN = (
            decay_BH[..., None, None] * state_BHPN
            + earlier_BH[..., None, None] * previous_value_BHP[..., None] * previous_key_BHN[..., None, :]
            + current_BH[..., None, None] * values_BTHP[:, t][..., None] * key_BHN[..., None, :]
        )
        results.append((state_BHPN * query_BHN.unsqueeze(-2)).sum(-1))
        previous_value_BHP, previous_key_BHN = values_BTHP[:, t], key_BHN
    return torch.stack(results, dim=1).to(values_BTHP.dtype)


def _turned_as_complex(vectors_BHN: Tensor, phase_BHS: Tensor) -> Tensor:
    num_pairs = phase_BHS.shape[-1]
    pairs_BHS = torch.view_as_complex(vectors_BHN[..., : 2 * num_pairs].unflatten(-1, (num_pairs, 2)).contiguous())
    turned_BHS = pairs_BHS * torch.polar(torch.ones_like(phase_BHS), phase_BHS)
    return torch.cat((torch.view_as_real(turned_BHS).flatten(-2), vectors_BHN[..., 2 * num_pairs :]), dim=-1)


def _empty_scan(*inputs: Any) -> tuple[Tensor, ...]:
    arguments, chunk_size = ScanArguments(*inputs[:-1]), inputs[-1]
    values, velocities = arguments.values_BTHP, arguments.velocities_BTS
    shapes = saved_shapes(arguments, chunk_size)
    if runs_kernel("mamba3_scan", values, has_float64_on_gpu=False):
        num_rows, num_tokens, num_heads, _ = values.shape
        length = tile_length(chunk_size, values.dtype)
        shapes = [(num_rows, (num_tokens + length - 1) // length, num_heads, velocities.shape[-1])]
        shapes += (NUM_SAVED - 1) * [(0,)]
    wide = torch.promote_types(values.dtype, torch.float32)
    return values.new_empty(values.shape), *(values.new_empty(shape, dtype=wide) for shape in shapes)


_NUM_INPUTS, _NUM_GRADIENTS = len(ScanArguments._fields), 9
_TENSORS = ", ".join(f"Tensor {name}" for name in ScanArguments._fields)
_SAVED = ", ".join(f"Tensor saved_{number}" for number in range(NUM_SAVED))


@operation(_empty_scan, schema=f"({_TENSORS}, SymInt chunk_size) -> ({', '.join((1 + NUM_SAVED) * ['Tensor'])})")
def mamba3_scan_op(*inputs: Any) -> tuple[Tensor, ...]:
    """Run the operation: return y, and the saved tensors of its backward pass, of which kernels fill the first alone."""
    arguments, chunk_size = ScanArguments(*inputs[:-1]), inputs[-1]
    _require_scannable(arguments, chunk_size)
    if runs_kernel("mamba3_scan", arguments.values_BTHP, has_float64_on_gpu=False):
        y, phases = launch_scan_forward(arguments, chunk_size)
        return y, phases, *(phases.new_empty(0) for _ in range(NUM_SAVED - 1))
    y, saved = chunked_scan_forward(arguments, chunk_size)
    return y, *saved


@operation(
    lambda grad, *inputs: empty_like(*inputs[:_NUM_GRADIENTS]),
    schema=f"(Tensor grad, {_TENSORS}, {_SAVED}, SymInt chunk_size) -> ({', '.join(_NUM_GRADIENTS * ['Tensor'])})",
)
def mamba3_scan_backward_op(grad: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    """Return the gradients of the nine floating-point arguments of `sluice::mamba3_scan`, from that of y."""
    arguments, saved, chunk_size = ScanArguments(*inputs[:_NUM_INPUTS]), inputs[_NUM_INPUTS:-1], inputs[-1]
    if runs_kernel("mamba3_scan", grad, has_float64_on_gpu=False):
        return launch_scan_backward(grad, arguments, saved[0], chunk_size)
    return chunked_scan_backward(grad, arguments, list(saved), chunk_size)


register_gradients(
    mamba3_scan_op, mamba3_scan_backward_op, lambda inputs, output: (*inputs[:-1], *output[1:], inputs[-1])
)


def _require_scannable(arguments: ScanArguments, chunk_size: int) -> None:
    """Raise an error that names an argument which cannot be scanned."""
    for name, tensor in zip(ScanArguments._fields, arguments, strict=True):
        if tensor.dtype == torch.float16:
            raise UnavailableKernelError(
                f"mamba3_scan: {name} is float16, whose range ends at 65504, and products of a chunk may leave it. "
                "Expected bfloat16 or float32."
            )
    if chunk_size < 1:
        raise ValueError(f"mamba3_scan: chunk_size is {chunk_size}; expected at least 1.")
    if 2 * arguments.velocities_BTS.shape[-1] > arguments.queries_BTN.shape[-1]:
        raise ValueError(
            f"mamba3_scan: {arguments.velocities_BTS.shape[-1]} velocities turn more channels than the "
            f"{arguments.queries_BTN.shape[-1]} of a query. Expected at most half as many."
        )


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw steps, decays and shares as a model makes them; documents of lengths 1, L, 7, L - 8 and so on, then padding.

    Sizes are B, T, H, P, N, L. Rows differ in where their documents end; a last row of one document has no padding.
    Where T is no multiple of L, every second head takes large steps and decays by about e^-150 in the last chunk.
    """
    num_rows, num_tokens, num_heads, head_size, state_size, chunk_size = case.sizes
    num_last = num_tokens % chunk_size

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=generator.device)

    per_head = (num_rows, num_tokens, num_heads)
    raw_steps, decays = normal(*per_head) - 2, normal(*per_head).abs() + 1e-4
    raw_steps[:, num_tokens - num_last :, ::2] += 3
    decays[:, num_tokens - num_last :, ::2] += 100 / max(1, num_last)
    return (
        normal(num_rows, num_tokens, state_size).to(dtype),
        normal(num_rows, num_tokens, state_size).to(dtype),
        1 + 0.1 * normal(num_heads, state_size),
        1 + 0.1 * normal(num_heads, state_size),
        normal(*per_head, head_size).to(dtype),
        torch.nn.functional.softplus(raw_steps),
        -decays,
        torch.sigmoid(normal(*per_head)),
        math.pi * torch.tanh(normal(num_rows, num_tokens, state_size // 4)),
        sample_documents(num_rows, num_tokens, chunk_size, generator.device),
        chunk_size,
    )


def sample_documents(num_rows: int, num_tokens: int, chunk_size: int, device: torch.device) -> Tensor:
    """Return documents' numbers (B, T): row 0 is one document, others end at, next to and between the ends of chunks."""
    lengths = (chunk_size, 1, 7, 1, max(1, chunk_size - 9), chunk_size // 2 + 3, 2 * chunk_size)
    rows = [torch.zeros(num_tokens, dtype=torch.int64)]
    for row in range(1, num_rows):
        turned = lengths[row - 1 :] + lengths[: row - 1]
        ends = torch.tensor(turned).cumsum(0)
        rows.append(torch.searchsorted(ends, torch.arange(num_tokens), right=True))
    return torch.stack(rows).to(device)


SPEC = KernelSpec(
    name="mamba3_scan",
    reference=lambda *inputs: mamba3_scan_reference(ScanArguments(*inputs[:-1])),
    has_serial_reference=True,
    op=lambda *inputs: mamba3_scan(ScanArguments(*inputs[:-1]), inputs[-1]),
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase(
            (2, 5, 3, 16, 8, 16), "less than one chunk; N below a tile and below P; the registration is checked so"
        ),
        ShapeCase(
            (2, 40, 1, 16, 16, 16),
            "documents that end on a chunk's edge, beside it and after one token; a row inside it",
        ),
        ShapeCase((1, 63, 1, 8, 8, 64), "one row, one head; P below a tile; ends one token before the longest chunk"),
    ),
    dtypes=(torch.float32, torch.bfloat16),
    tolerance_eps=16.0,
    gradient_tolerance_eps=32.0,
    tolerance_reason=(
        "float32: sums of 16 to 64 products of order one, pairwise at best, a cosine and an exponential of a running sum each "
        "way, about 4 eps observed; bfloat16: operands of the second product and the state are rounded once each to "
        "bfloat16 on a GPU, and gradients sum over heads after one more rounding"
    ),
    real_cases=(
        ShapeCase(
            (1, 4096, 16, 64, 64, 64), "one row and few heads: far fewer programs than processors without chunks"
        ),
        ShapeCase((1, 4096, 24, 64, 128, 64), "the published state size"),
        ShapeCase((2, 4096, 112, 64, 64, 64), "the widest preset: more heads than processors"),
    ),
    peers=PEERS,
)
