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
from kernels.framework.configurations import launch_options, tile_class
from kernels.framework.launch import as_rows, register_on_cpu, sum_dtype, sum_partials
from kernels.framework.spec import Argument, KernelSpec, ShapeCase
from kernels.rms_norm import tile_sizes, tiles_of_a_program


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
        slope = open_part + activated * (1.0 - open_part)
        tl.store(grad_x_ptr + places, (grad_gated * activated).to(grad_x_ptr.dtype.element_ty), mask=inside)
        tl.store(grad_gate_ptr + places, (grad_gated * x * slope).to(grad_gate_ptr.dtype.element_ty), mask=inside)
        grad_weight += tl.sum(grad * normed, axis=0)
    tl.store(partial_ptr + program * WIDTH + columns, grad_weight, mask=columns < WIDTH)


@torch.library.custom_op("sluice::gated_rms_norm", mutates_args=())
def gated_rms_norm_op(x: Tensor, gate: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Run the operation: returns y, shaped like `gate` and of its dtype, and the factor r for each row."""
    rows_ND, gate_ND = as_rows(x), as_rows(gate)
    num_rows, width = rows_ND.shape
    if not runs_kernel("gated_rms_norm", x, gate):
        wide = sum_dtype(x, gate)
        gated_ND = rows_ND.to(wide) * functional.silu(gate_ND.to(wide))
        factor_N1 = torch.rsqrt(gated_ND.square().mean(dim=-1, keepdim=True) + eps)
        y_ND = gated_ND.mul_(factor_N1).mul_(weight.to(wide)).to(gate.dtype)
        return y_ND.view(gate.shape), factor_N1.squeeze(-1)
    y_ND = torch.empty((num_rows, width), dtype=gate.dtype, device=x.device)
    factor_N = torch.empty(num_rows, dtype=torch.float32, device=x.device)
    if x.numel():
        tile_rows, columns = tile_sizes(width)
        _forward_kernel[(triton.cdiv(num_rows, tile_rows),)](
            rows_ND, gate_ND, weight.contiguous(), y_ND, factor_N,
            num_rows, rows_ND.stride(0), gate_ND.stride(0), eps,
            width, tile_rows, columns,
            **launch_options("gated_rms_norm.forward", tile_class(tile_rows * columns), x.device),
        )  # fmt: skip
    return y_ND.view(gate.shape), factor_N


@gated_rms_norm_op.register_fake
def _(x: Tensor, gate: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    num_rows = x.numel() // max(1, x.shape[-1])
    return gate.new_empty(gate.shape), x.new_empty(num_rows, dtype=sum_dtype(x, gate))


@torch.library.custom_op("sluice::gated_rms_norm_backward", mutates_args=())
def gated_rms_norm_backward_op(
    grad: Tensor, x: Tensor, gate: Tensor, weight: Tensor, factor_N: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for `x`, `gate` and `weight`."""
    grad_ND, rows_ND, gate_ND = as_rows(grad).contiguous(), as_rows(x), as_rows(gate)
    if not runs_kernel("gated_rms_norm", x, gate):
        grad_x_ND, grad_gate_ND, grad_weight = _backward_in_torch(grad_ND, rows_ND, gate_ND, weight, factor_N)
        return grad_x_ND.view(x.shape), grad_gate_ND.view(x.shape), grad_weight
    num_rows, width = rows_ND.shape
    grad_x_ND = torch.empty((num_rows, width), dtype=x.dtype, device=x.device)
    grad_gate_ND = torch.empty((num_rows, width), dtype=gate.dtype, device=x.device)
    if not x.numel():
        return grad_x_ND.view(x.shape), grad_gate_ND.view(x.shape), weight.new_zeros(weight.shape)
    tile_rows, columns = tile_sizes(width)
    num_tiles = tiles_of_a_program(num_rows, tile_rows)
    num_programs = triton.cdiv(num_rows, tile_rows * num_tiles)
    partials_PD = torch.empty((num_programs, width), dtype=torch.float32, device=x.device)
    _backward_kernel[(num_programs,)](
        grad_ND, rows_ND, gate_ND, weight.contiguous(), factor_N, grad_x_ND, grad_gate_ND, partials_PD,
        num_rows, rows_ND.stride(0), gate_ND.stride(0),
        width, num_tiles, tile_rows, columns,
        **launch_options("gated_rms_norm.backward", tile_class(tile_rows * columns), x.device),
    )  # fmt: skip
    return grad_x_ND.view(x.shape), grad_gate_ND.view(x.shape), sum_partials(partials_PD).to(weight.dtype)


@gated_rms_norm_backward_op.register_fake
def _(grad: Tensor, x: Tensor, gate: Tensor, weight: Tensor, factor_N: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), gate.new_empty(gate.shape), weight.new_empty(weight.shape)


def _backward_in_torch(
    grad_ND: Tensor, rows_ND: Tensor, gate_ND: Tensor, weight_D: Tensor, factor_N: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    wide, factor_N1 = factor_N.dtype, factor_N.unsqueeze(-1)
    x_ND, gate_wide_ND, grad_wide_ND = rows_ND.to(wide), gate_ND.to(wide), grad_ND.to(wide)
    open_ND = torch.sigmoid(gate_wide_ND)
    activated_ND = gate_wide_ND * open_ND
    normed_ND = (x_ND * activated_ND).mul_(factor_N1)
    product_ND = grad_wide_ND * normed_ND
    grad_weight_D = product_ND.sum(dim=0).to(weight_D.dtype)
    projection_N1 = product_ND.mul_(weight_D).mean(dim=-1, keepdim=True)
    grad_gated_ND = (grad_wide_ND * weight_D).sub_(normed_ND.mul_(projection_N1)).mul_(factor_N1)
    grad_x_ND = (grad_gated_ND * activated_ND).to(rows_ND.dtype)
    slope_ND = activated_ND.mul_(1 - open_ND).add_(open_ND)
    return grad_x_ND, grad_gated_ND.mul_(x_ND).mul_(slope_ND).to(gate_ND.dtype), grad_weight_D


def _save_for_backward(ctx, inputs, output) -> None:
    x, gate, weight, _ = inputs
    _, factor_N = output
    ctx.mark_non_differentiable(factor_N)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, gate, weight, factor_N)


def _backward(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
    return (*gated_rms_norm_backward_op(grad.contiguous(), *ctx.saved_tensors), None)


gated_rms_norm_op.register_autograd(_backward, setup_context=_save_for_backward)
register_on_cpu(gated_rms_norm_op, gated_rms_norm_backward_op)


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
    cases=(
        ShapeCase((4, 64), "a power of two: no masked column"),
        ShapeCase((2, 3, 48), "masked columns and more than one leading axis"),
        ShapeCase((1, 5), "one row: the weight gradient sums over nothing"),
        ShapeCase((70, 130), "several programs: the weight gradient has a second pass"),
    ),
    real_cases=(ShapeCase((4, 2048, 1024), "an M2RNN layer"),),
    dtypes=(torch.float32, torch.bfloat16, torch.float16),
    tolerance_eps=6.0,
    tolerance_reason=(
        "float32: as rms_norm, and half an eps each for the sigmoid's exponential, sum and quotient, twice over in the "
        "slope; lower precision: one rounding at the store, which the interpreter truncates"
    ),
)
