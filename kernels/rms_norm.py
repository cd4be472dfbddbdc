"""Root-mean-square normalization over the last axis.

    y_nd = x_nd * r_n * w_d,    r_n = 1 / sqrt(mean_d x_nd^2 + eps)

    dx_nd = r_n * (g_nd w_d - x_nd r_n^2 * mean_d(g_nd w_d x_nd)),    dw_d = sum_n g_nd x_nd r_n,    g = dL/dy

Shapes: N rows (all axes but the last, flattened), D width, P programs of the backward pass. Sums and the factor r are
float32 (float64 for float64 inputs) whatever the dtype of x; the result has the dtype of x. dw has two passes without
atomics: each program adds its rows in order, then the P partial sums are added in order. Source: Zhang and Sennrich
2019, arXiv 1910.07467.
"""

import torch
from torch import Tensor

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options, tile_class
from kernels.framework.launch import as_rows, register_on_cpu, sum_dtype, sum_partials
from kernels.framework.spec import Argument, KernelSpec, ShapeCase

TILE_ELEMENTS, MAX_TILE_ROWS = 4096, 32
MAX_BACKWARD_PROGRAMS = 512


def rms_norm_reference(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Compute the definition in plain torch. `x` is (..., D), `weight` (D); returns (..., D) in the dtype of `x`."""
    wide = x.to(sum_dtype(x))
    inverse_rms = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * inverse_rms * weight.to(wide.dtype)).to(x.dtype)


@triton.jit
def _forward_kernel(
    x_ptr, weight_ptr, y_ptr, factor_ptr, num_rows, x_stride, eps,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = (rows < num_rows)[:, None] & (columns < WIDTH)[None, :]
    # Cast right after the load: the interpreter multiplies the raw bits of bfloat16.
    x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    factor = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / WIDTH + eps)
    y = x * factor[:, None] * weight[None, :]
    tl.store(y_ptr + rows[:, None] * WIDTH + columns[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(factor_ptr + rows, factor, mask=rows < num_rows)


@triton.jit
def _backward_kernel(
    grad_ptr, x_ptr, weight_ptr, factor_ptr, grad_x_ptr, partial_ptr, num_rows, x_stride,
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
        grad = tl.load(grad_ptr + places, mask=inside, other=0.0).to(tl.float32)
        factor = tl.load(factor_ptr + rows, mask=rows < num_rows, other=0.0)[:, None]
        weighted = grad * weight[None, :]
        projection = tl.sum(weighted * x, axis=1)[:, None] / WIDTH
        grad_x = factor * (weighted - x * factor * factor * projection)
        tl.store(grad_x_ptr + places, grad_x.to(grad_x_ptr.dtype.element_ty), mask=inside)
        grad_weight += tl.sum(grad * x * factor, axis=0)
    tl.store(partial_ptr + program * WIDTH + columns, grad_weight, mask=columns < WIDTH)


@torch.library.custom_op("sluice::rms_norm", mutates_args=())
def rms_norm_op(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Run the operation: returns y, shaped like `x`, and the factor r for each row."""
    rows_ND = as_rows(x)
    num_rows, width = rows_ND.shape
    if not runs_kernel("rms_norm", x):
        wide_ND = rows_ND.to(sum_dtype(x))
        factor_N1 = torch.rsqrt(wide_ND.square().mean(dim=-1, keepdim=True) + eps)
        y_ND = (wide_ND * factor_N1).mul_(weight.to(wide_ND.dtype)).to(x.dtype)
        return y_ND.view(x.shape), factor_N1.squeeze(-1)
    y_ND = torch.empty((num_rows, width), dtype=x.dtype, device=x.device)
    factor_N = torch.empty(num_rows, dtype=torch.float32, device=x.device)
    if x.numel():
        tile_rows, columns = tile_sizes(width)
        _forward_kernel[(triton.cdiv(num_rows, tile_rows),)](
            rows_ND, weight.contiguous(), y_ND, factor_N, num_rows, rows_ND.stride(0), eps,
            width, tile_rows, columns,
            **launch_options("rms_norm.forward", tile_class(tile_rows * columns), x.device),
        )  # fmt: skip
    return y_ND.view(x.shape), factor_N


@rms_norm_op.register_fake
def _(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    num_rows = x.numel() // max(1, x.shape[-1])
    return x.new_empty(x.shape), x.new_empty(num_rows, dtype=sum_dtype(x))


@torch.library.custom_op("sluice::rms_norm_backward", mutates_args=())
def rms_norm_backward_op(grad: Tensor, x: Tensor, weight: Tensor, factor_N: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients for `x` and `weight`."""
    rows_ND, grad_ND = as_rows(x), as_rows(grad).contiguous()
    if not runs_kernel("rms_norm", x):
        return _backward_in_torch(grad_ND, rows_ND, weight, factor_N, x.shape)
    num_rows, width = rows_ND.shape
    grad_x_ND = torch.empty((num_rows, width), dtype=x.dtype, device=x.device)
    if not x.numel():
        return grad_x_ND.view(x.shape), torch.zeros_like(weight, memory_format=torch.contiguous_format)
    tile_rows, columns = tile_sizes(width)
    num_tiles = tiles_of_a_program(num_rows, tile_rows)
    num_programs = triton.cdiv(num_rows, tile_rows * num_tiles)
    partials_PD = torch.empty((num_programs, width), dtype=torch.float32, device=x.device)
    _backward_kernel[(num_programs,)](
        grad_ND, rows_ND, weight.contiguous(), factor_N, grad_x_ND, partials_PD, num_rows, rows_ND.stride(0),
        width, num_tiles, tile_rows, columns,
        **launch_options("rms_norm.backward", tile_class(tile_rows * columns), x.device),
    )  # fmt: skip
    return grad_x_ND.view(x.shape), sum_partials(partials_PD).to(weight.dtype)


@rms_norm_backward_op.register_fake
def _(grad: Tensor, x: Tensor, weight: Tensor, factor_N: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), weight.new_empty(weight.shape)


def _backward_in_torch(
    grad_ND: Tensor, rows_ND: Tensor, weight_D: Tensor, factor_N: Tensor, shape: torch.Size
) -> tuple[Tensor, Tensor]:
    wide = factor_N.dtype
    grad_ND = grad_ND.to(wide)
    normed_ND = rows_ND.to(wide) * factor_N.unsqueeze(-1)
    product_ND = grad_ND * normed_ND
    grad_weight_D = product_ND.sum(dim=0).to(weight_D.dtype)
    projection_N1 = product_ND.mul_(weight_D).mean(dim=-1, keepdim=True)
    grad_x_ND = (grad_ND * weight_D).sub_(normed_ND.mul_(projection_N1)).mul_(factor_N.unsqueeze(-1))
    return grad_x_ND.to(normed_ND.dtype).to(rows_ND.dtype).view(shape), grad_weight_D


def _save_for_backward(ctx, inputs, output) -> None:
    x, weight, _ = inputs
    _, factor_N = output
    ctx.mark_non_differentiable(factor_N)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, factor_N)


def _backward(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None]:
    x, weight, factor_N = ctx.saved_tensors
    return (*rms_norm_backward_op(grad.contiguous(), x, weight, factor_N), None)


rms_norm_op.register_autograd(_backward, setup_context=_save_for_backward)
register_on_cpu(rms_norm_op, rms_norm_backward_op)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Scale each vector of the last axis to a root mean square of one, then by `weight`.

    `x` is (..., D), `weight` (D); `eps` is added to the mean square. Returns (..., D) in the dtype of `x`.
    """
    return rms_norm_op(x, weight, eps)[0]


def tile_sizes(width: int) -> tuple[int, int]:
    """Rows and columns of one tile: all columns, and as many rows as fill it."""
    columns = triton.next_power_of_2(width)
    return max(1, min(MAX_TILE_ROWS, TILE_ELEMENTS // columns)), columns


def tiles_of_a_program(num_rows: int, tile_rows: int) -> int:
    """Tiles that one program of the backward pass adds up: a power of two, so that few shapes are compiled."""
    return triton.next_power_of_2(triton.cdiv(triton.cdiv(num_rows, tile_rows), MAX_BACKWARD_PROGRAMS))


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Return vectors of about unit size, and weights away from zero."""
    device = generator.device
    x = torch.randn(case.sizes, generator=generator, device=device).to(dtype)
    weight = (1 + 0.5 * torch.rand(case.sizes[-1:], generator=generator, device=device)).to(dtype)
    return x, weight, 1e-5


SPEC = KernelSpec(
    name="rms_norm",
    reference=rms_norm_reference,
    op=rms_norm,
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase((4, 64), "a power of two: no masked column"),
        ShapeCase((2, 3, 48), "masked columns and more than one leading axis"),
        ShapeCase((1, 5), "one row: the weight gradient sums over nothing"),
        ShapeCase((7, 200), "more columns than one warp holds"),
        ShapeCase((70, 130), "several programs: the weight gradient has a second pass"),
    ),
    real_cases=(ShapeCase((4, 2048, 2048), "a residual stream: several tiles for each program"),),
    dtypes=(torch.float32, torch.bfloat16, torch.float16),
    tolerance_eps=4.0,
    tolerance_reason=(
        "float32: half an eps each for square, mean, root, quotient and two products, about one for a pairwise sum; "
        "bfloat16: the sums are float32, so one rounding at the store, which the interpreter truncates (1 eps, not 0.5)"
    ),
)
