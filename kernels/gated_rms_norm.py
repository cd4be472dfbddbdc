"""Root-mean-square normalization of a gated vector, over the last axis: the end of an M2RNN block.

    z_nd = x_nd * silu(a_nd)      y_nd = z_nd * r_n * w_d,    r_n = 1 / sqrt(mean_d z_nd^2 + eps)

    dz_nd = r_n * (g_nd w_d - z_nd r_n^2 * mean_d(g_nd w_d z_nd)),    dw_d = sum_n g_nd z_nd r_n,    g = dL/dy
    dx_nd = dz_nd silu(a_nd),    da_nd = dz_nd x_nd s (1 + a_nd (1 - s)),    s = sigmoid(a_nd)

Shapes: N rows (all axes but the last, flattened), D width, P programs of the backward pass. Everything between load
and store is float32 (float64 for float64 inputs); the result has the dtype of the gate, so that a float32 state comes
out in the dtype of the residual stream. dw is added as in `rms_norm`. Sources: Zhang and Sennrich 2019, arXiv
1910.07467; the gate before the norm as in Dao and Gu 2024, arXiv 2405.21060.
"""

import torch
from torch import Tensor
from torch.nn import functional

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.operands import as_rows, sum_dtype
from kernels.framework.operation import empty_like, operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase
from kernels.rms_norm import (
    NORM_CASES,
    empty_factors,
    launch_norm_backward,
    launch_norm_forward,
    norm_backward_in_torch,
)


def gated_rms_norm_reference(x: Tensor, gate: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Compute the definition in plain torch. `x` and `gate` are (..., D), `weight` (D); returns (..., D) in the gate's dtype."""
    wide = sum_dtype(x, gate)
    gated = x.to(wide) * functional.silu(gate.to(wide))
    inverse_rms = torch.rsqrt(gated.square().mean(dim=-1, keepdim=True) + eps)
    return (gated * inverse_rms * weight.to(wide)).to(gate.dtype)


@triton.jit
def _forward_kernel(
    x_ptr, gate_ptr, weight_ptr, y_ptr, factor_ptr, num_rows, x_stride, gate_stride, eps,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = (rows < num_rows)[:, None] & (columns < WIDTH)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + rows[:, None] * gate_stride + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    gated = x * gate * tl.sigmoid(gate)
    factor = 1.0 / tl.sqrt(tl.sum(gated * gated, axis=1) / WIDTH + eps)
    y = gated * factor[:, None] * weight[None, :]
    tl.store(y_ptr + rows[:, None] * WIDTH + columns[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(factor_ptr + rows, factor, mask=rows < num_rows)


@triton.jit
def _backward_kernel(
    grad_ptr, x_ptr, gate_ptr, weight_ptr, factor_ptr, grad_x_ptr, grad_gate_ptr, partial_ptr,
    num_rows, x_stride, gate_stride,
    WIDTH: tl.constexpr, TILES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, COLUMNS)
    weight = tl.load(weight_ptr + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    grad_weight = tl.zeros([COLUMNS], tl.float32)
    for tile in range(TILES):
        rows = (program * TILES + tile) * ROWS + tl.arange(0, ROWS)
        inside = (rows < num_rows)[:, None] & (columns < WIDTH)[None, :]
        places = rows[:, None] * WIDTH + columns[None, :]
        x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        gate = tl.load(gate_ptr + rows[:, None] * gate_stride + columns[None, :], mask=inside, other=0.0)
        gate = gate.to(tl.float32)
        grad = tl.load(grad_ptr + places, mask=inside, other=0.0).to(tl.float32)
        factor = tl.load(factor_ptr + rows, mask=rows < num_rows, other=0.0)[:, None]
        open_part = tl.sigmoid(gate)
        activated = gate * open_part
        normed = x * activated * factor
        weighted = grad * weight[None, :]
        projection = tl.sum(weighted * normed, axis=1)[:, None] / WIDTH
        grad_gated = factor * (weighted - normed * projection)
        # Not 1 - s, in which the rounding of the exponential would grow by as much as s is nearer to 1 than to 0.
        slope = open_part + activated * tl.sigmoid(-gate)
        tl.store(grad_x_ptr + places, (grad_gated * activated).to(grad_x_ptr.dtype.element_ty), mask=inside)
        tl.store(grad_gate_ptr + places, (grad_gated * x * slope).to(grad_gate_ptr.dtype.element_ty), mask=inside)
        grad_weight += tl.sum(grad * normed, axis=0)
    tl.store(partial_ptr + program * WIDTH + columns, grad_weight, mask=columns < WIDTH)


@operation(lambda x, gate, weight, eps: (*empty_like(gate), empty_factors(x, gate)))
def gated_rms_norm_op(x: Tensor, gate: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Run the operation: return y, shaped like `gate` and of its dtype, and the factor r for each row."""
    if runs_kernel("gated_rms_norm", x, gate):
        return launch_norm_forward("gated_rms_norm", _forward_kernel, [x, gate], weight, eps)
    wide = sum_dtype(x, gate)
    gated_ND = as_rows(x).to(wide) * functional.silu(as_rows(gate).to(wide))
    factor_N1 = torch.rsqrt(gated_ND.square().mean(dim=-1, keepdim=True) + eps)
    y_ND = gated_ND.mul_(factor_N1).mul_(weight.to(wide)).to(gate.dtype)
    return y_ND.view(gate.shape), factor_N1.squeeze(-1)


@operation(lambda grad, x, gate, weight, factor_N: empty_like(x, gate, weight))
def gated_rms_norm_backward_op(
    grad: Tensor, x: Tensor, gate: Tensor, weight: Tensor, factor_N: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `x`, `gate` and `weight`."""
    if runs_kernel("gated_rms_norm", x, gate):
        return launch_norm_backward("gated_rms_norm", _backward_kernel, grad, [x, gate], (weight, factor_N))
    wide, factor_N1 = factor_N.dtype, factor_N.unsqueeze(-1)
    x_ND, gate_ND, grad_ND = (as_rows(each).to(wide) for each in (x, gate, grad))
    open_ND = torch.sigmoid(gate_ND)
    activated_ND = gate_ND * open_ND
    normed_ND = (x_ND * activated_ND).mul_(factor_N1)
    grad_gated_ND, grad_weight = norm_backward_in_torch(grad_ND, normed_ND, weight, factor_N1)
    grad_x_ND = (grad_gated_ND * activated_ND).to(x.dtype)
    slope_ND = activated_ND.mul_(1 - open_ND).add_(open_ND)
    grad_gate_ND = grad_gated_ND.mul_(x_ND).mul_(slope_ND).to(gate.dtype)
    return grad_x_ND.view(x.shape), grad_gate_ND.view(x.shape), grad_weight


register_gradients(gated_rms_norm_op, gated_rms_norm_backward_op, lambda inputs, output: (*inputs[:3], output[1]))


def gated_rms_norm(x: Tensor, gate: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Scale each vector x * silu(gate) of the last axis to a root mean square of one, then by `weight`.

    `x` and `gate` are (..., D), `weight` (D). Returns (..., D) in the dtype of `gate`. Raises ValueError where the shapes
    of `x` and `gate` differ.
    """
    if x.shape != gate.shape:
        raise ValueError(f"gated_rms_norm: gate is {tuple(gate.shape)}, expected the shape of x, {tuple(x.shape)}")
    return gated_rms_norm_op(x, gate, weight, eps)[0]


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Return vectors and gates of about unit size, and weights away from zero."""
    device = generator.device
    x, gate = (torch.randn(case.sizes, generator=generator, device=device).to(dtype) for _ in range(2))
    weight = (1 + 0.5 * torch.rand(case.sizes[-1:], generator=generator, device=device)).to(dtype)
    return x, gate, weight, 1e-5


SPEC = KernelSpec(
    name="gated_rms_norm",
    reference=gated_rms_norm_reference,
    op=gated_rms_norm,
    sample_inputs=_sample_inputs,
    cases=NORM_CASES,
    real_cases=(ShapeCase((4, 2048, 1024), "an M2RNN layer"),),
    tolerance_eps=6.0,
    tolerance_reason=(
        "float32: as rms_norm, and half an eps each for the sigmoid's exponential, sum and quotient, twice over in the "
        "slope; lower precision: one rounding at the store, which the interpreter truncates"
    ),
)
