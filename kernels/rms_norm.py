"""Root-mean-square normalization over the last axis.

    y_nd = x_nd * r_n * w_d,    r_n = 1 / sqrt(mean_d x_nd^2 + eps)

    dx_nd = r_n * (g_nd w_d - x_nd r_n^2 * mean_d(g_nd w_d x_nd)),    dw_d = sum_n g_nd x_nd r_n,    g = dL/dy

Shapes: N rows (all axes but the last, flattened), D width, P programs of the backward pass. Sums and the factor r are
float32 (float64 for float64 inputs) whatever the dtype of x; the result has the dtype of x. dw has two passes without
atomics: each program adds its rows in order, then the P partial sums are added in order. Source: Zhang and Sennrich
2019, arXiv 1910.07467.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options, tile_class
from kernels.framework.operands import as_rows, sum_dtype, sum_partials
from kernels.framework.operation import empty_like, operation, register_gradients
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


@operation(lambda x, weight, eps: (*empty_like(x), empty_factors(x)))
def rms_norm_op(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Run the operation: return y, shaped like `x`, and the factor r for each row."""
    if runs_kernel("rms_norm", x):
        return launch_norm_forward("rms_norm", _forward_kernel, [x], weight, eps)
    wide_ND = as_rows(x).to(sum_dtype(x))
    factor_N1 = torch.rsqrt(wide_ND.square().mean(dim=-1, keepdim=True) + eps)
    y_ND = (wide_ND * factor_N1).mul_(weight.to(wide_ND.dtype)).to(x.dtype)
    return y_ND.view(x.shape), factor_N1.squeeze(-1)


@operation(lambda grad, x, weight, factor_N: empty_like(x, weight))
def rms_norm_backward_op(grad: Tensor, x: Tensor, weight: Tensor, factor_N: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of `x` and `weight`."""
    if runs_kernel("rms_norm", x):
        grad_x, grad_weight = launch_norm_backward("rms_norm", _backward_kernel, grad, [x], (weight, factor_N))
        return grad_x, grad_weight
    wide, factor_N1 = factor_N.dtype, factor_N.unsqueeze(-1)
    normed_ND = as_rows(x).to(wide) * factor_N1
    grad_x_ND, grad_weight = norm_backward_in_torch(as_rows(grad).to(wide), normed_ND, weight, factor_N1)
    return grad_x_ND.to(wide).to(x.dtype).view(x.shape), grad_weight


register_gradients(rms_norm_op, rms_norm_backward_op, lambda inputs, output: (*inputs[:2], output[1]))


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Scale each vector of the last axis to a root mean square of one, then by `weight`.

    `x` is (..., D), `weight` (D); `eps` is added to the mean square. Returns (..., D) in the dtype of `x`.
    """
    return rms_norm_op(x, weight, eps)[0]


def empty_factors(*vectors: Tensor) -> Tensor:
    """Return the fake of the factors: one for each row of the first vectors, in the dtype of sums."""
    num_rows = vectors[0].numel() // max(1, vectors[0].shape[-1])
    return vectors[0].new_empty(num_rows, dtype=sum_dtype(*vectors))


def launch_norm_forward(
    name: str, kernel: Any, vectors: Sequence[Tensor], weight_D: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """Run the forward kernel of a norm of vectors of one shape: y in the dtype of the last, and the factor r for each row."""
    rows, last = [as_rows(each) for each in vectors], vectors[-1]
    num_rows, width = rows[0].shape
    y_ND = torch.empty((num_rows, width), dtype=last.dtype, device=last.device)
    factor_N = torch.empty(num_rows, dtype=torch.float32, device=last.device)
    if last.numel():
        tile_rows, columns = tile_sizes(width)
        kernel[(triton.cdiv(num_rows, tile_rows),)](
            *rows, weight_D.contiguous(), y_ND, factor_N, num_rows, *(each.stride(0) for each in rows), eps,
            width, tile_rows, columns,
            **launch_options(f"{name}.forward", tile_class(tile_rows * columns), last.device),
        )  # fmt: skip
    return y_ND.view(last.shape), factor_N


def launch_norm_backward(
    name: str, kernel: Any, grad: Tensor, vectors: Sequence[Tensor], weight_and_factor: tuple[Tensor, Tensor]
) -> tuple[Tensor, ...]:
    """Run the backward kernel of a norm: the gradients of the vectors, then that of the weight."""
    weight_D, factor_N = weight_and_factor
    rows = [as_rows(each) for each in vectors]
    num_rows, width = rows[0].shape
    gradients = [torch.empty(each.shape, dtype=each.dtype, device=each.device) for each in vectors]
    if not grad.numel():
        return *gradients, weight_D.new_zeros(weight_D.shape)
    tile_rows, columns = tile_sizes(width)
    # A power of two of tiles for each program, so that few shapes are compiled.
    num_tiles = triton.next_power_of_2(triton.cdiv(triton.cdiv(num_rows, tile_rows), MAX_BACKWARD_PROGRAMS))
    num_programs = triton.cdiv(num_rows, tile_rows * num_tiles)
    partials_PD = torch.empty((num_programs, width), dtype=torch.float32, device=grad.device)
    kernel[(num_programs,)](
        as_rows(grad).contiguous(), *rows, weight_D.contiguous(), factor_N, *gradients, partials_PD,
        num_rows, *(each.stride(0) for each in rows), width, num_tiles, tile_rows, columns,
        **launch_options(f"{name}.backward", tile_class(tile_rows * columns), grad.device),
    )  # fmt: skip
    return *gradients, sum_partials(partials_PD).to(weight_D.dtype)


def norm_backward_in_torch(
    grad_ND: Tensor, normed_ND: Tensor, weight_D: Tensor, factor_N1: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of what is normed and of the weight; overwrite `normed_ND`, the vectors times their factors."""
    product_ND = grad_ND * normed_ND
    grad_weight_D = product_ND.sum(dim=0).to(weight_D.dtype)
    projection_N1 = product_ND.mul_(weight_D).mean(dim=-1, keepdim=True)
    return (grad_ND * weight_D).sub_(normed_ND.mul_(projection_N1)).mul_(factor_N1), grad_weight_D


def tile_sizes(width: int) -> tuple[int, int]:
    """Return rows and columns of one tile: all columns, and as many rows as fill it."""
    columns = triton.next_power_of_2(width)
    return max(1, min(MAX_TILE_ROWS, TILE_ELEMENTS // columns)), columns


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Return vectors of about unit size, and weights away from zero."""
    device = generator.device
    x = torch.randn(case.sizes, generator=generator, device=device).to(dtype)
    weight = (1 + 0.5 * torch.rand(case.sizes[-1:], generator=generator, device=device)).to(dtype)
    return x, weight, 1e-5


NORM_CASES = (
    ShapeCase((4, 64), "a power of two: no masked column"),
    ShapeCase((2, 3, 48), "masked columns and more than one leading axis"),
    ShapeCase((1, 5), "one row: the weight gradient sums over nothing"),
    ShapeCase((7, 200), "more columns than one warp holds"),
    ShapeCase((70, 130), "several programs: the weight gradient has a second pass"),
)

SPEC = KernelSpec(
    name="rms_norm",
    reference=rms_norm_reference,
    op=rms_norm,
    sample_inputs=_sample_inputs,
    cases=NORM_CASES,
    real_cases=(ShapeCase((4, 2048, 2048), "a residual stream: several tiles for each program"),),
    tolerance_eps=4.0,
    tolerance_reason=(
        "float32: half an eps each for square, mean, root, quotient and two products, about one for a pairwise sum; "
        "bfloat16: the sums are float32, so one rounding at the store, which the interpreter truncates (1 eps, not 0.5)"
    ),
)
