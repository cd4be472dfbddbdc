"""Root-mean-square normalisation over the last axis.

    y_nd = x_nd * r_n * w_d,    r_n = 1 / sqrt(mean_d x_nd^2 + eps)

    dx_nd = r_n * (g_nd w_d - x_nd r_n^2 * mean_d(g_nd w_d x_nd)),    dw_d = sum_n g_nd x_nd r_n,    g = dL/dy

Shapes: N rows (all axes but the last, flattened), D width. Sums and the factor r are float32 (float64 for float64
inputs) whatever the dtype of x; the result has the dtype of x. Source: Zhang and Sennrich 2019, arXiv 1910.07467.
"""

import torch
from torch import Tensor

from kernels.backend import runs_kernel, tl, triton
from kernels.spec import Argument, KernelSpec, ShapeCase


def rms_norm_reference(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The definition in plain torch. `x` is (..., D), `weight` (D); returns (..., D) in the dtype of `x`."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    inverse_rms = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * inverse_rms * weight.to(wide.dtype)).to(x.dtype)


@triton.jit
def _forward_kernel(x_ptr, weight_ptr, y_ptr, inverse_rms_ptr, eps, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    # Cast right after the load: the interpreter multiplies the raw bits of bfloat16.
    x = tl.load(x_ptr + row * WIDTH + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    inverse_rms = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / WIDTH + eps)
    y = x * inverse_rms * weight
    tl.store(y_ptr + row * WIDTH + columns, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(inverse_rms_ptr + row, inverse_rms)


@torch.library.custom_op("sluice::rms_norm", mutates_args=())
def rms_norm_op(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The kernel as an operation: returns y, shaped like `x`, and the factor r for each row, float32."""
    rows_ND = x.contiguous().view(-1, x.shape[-1])
    num_rows, width = rows_ND.shape
    y_ND = torch.empty_like(rows_ND)
    inverse_rms_N = torch.empty(num_rows, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(width)
    if num_rows > 0:
        _forward_kernel[(num_rows,)](
            rows_ND, weight.contiguous(), y_ND, inverse_rms_N, eps, WIDTH=width, BLOCK=block, num_warps=4
        )
    return y_ND.view(x.shape), inverse_rms_N


@rms_norm_op.register_fake
def _(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    num_rows = x.numel() // x.shape[-1]
    return x.new_empty(x.shape), x.new_empty(num_rows, dtype=torch.float32)


@torch.library.custom_op("sluice::rms_norm_backward", mutates_args=())
def rms_norm_backward_op(grad: Tensor, x: Tensor, weight: Tensor, inverse_rms: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients for `x` and `weight`. Plain torch: each sum is one reduction in a fixed order."""
    width = x.shape[-1]
    rows_ND = x.reshape(-1, width).float()
    grad_ND = grad.reshape(-1, width).float()
    factor_N1 = inverse_rms.unsqueeze(-1)
    weighted_ND = grad_ND * weight.float()
    projection_N1 = (weighted_ND * rows_ND).mean(dim=-1, keepdim=True)
    grad_x_ND = factor_N1 * (weighted_ND - rows_ND * factor_N1.square() * projection_N1)
    grad_weight_D = (grad_ND * rows_ND * factor_N1).sum(dim=0)
    return grad_x_ND.to(x.dtype).view(x.shape), grad_weight_D.to(weight.dtype)


@rms_norm_backward_op.register_fake
def _(grad: Tensor, x: Tensor, weight: Tensor, inverse_rms: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), torch.empty_like(weight)


def _save_for_backward(ctx, inputs, output) -> None:
    x, weight, _ = inputs
    _, inverse_rms = output
    ctx.mark_non_differentiable(inverse_rms)
    ctx.save_for_backward(x, weight, inverse_rms)


def _backward(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None]:
    x, weight, inverse_rms = ctx.saved_tensors
    grad_x, grad_weight = rms_norm_backward_op(grad.contiguous(), x, weight, inverse_rms)
    return grad_x, grad_weight, None


rms_norm_op.register_autograd(_backward, setup_context=_save_for_backward)


def rms_norm_kernel(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`rms_norm` by the kernel alone, on a GPU or in Triton's interpreter."""
    return rms_norm_op(x, weight, eps)[0]


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Scale each vector of the last axis to a root mean square of one, then by `weight`.

    `x` is (..., D), `weight` (D); `eps` is added to the mean square. Returns (..., D) in the dtype of `x`. Runs the
    kernel on a GPU and in the interpreter, the reference elsewhere.
    """
    if runs_kernel("rms_norm", x):
        return rms_norm_kernel(x, weight, eps)
    return rms_norm_reference(x, weight, eps)


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Vectors of about unit size, and weights away from zero."""
    device = generator.device
    x = torch.randn(case.sizes, generator=generator, device=device).to(dtype)
    weight = (1 + 0.5 * torch.rand(case.sizes[-1:], generator=generator, device=device)).to(dtype)
    return x, weight, 1e-5


SPEC = KernelSpec(
    name="rms_norm",
    reference=rms_norm_reference,
    op=rms_norm_kernel,
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase((4, 64), "a power of two: no masked column"),
        ShapeCase((2, 3, 48), "masked columns and more than one leading axis"),
        ShapeCase((1, 5), "one row: the weight gradient sums over nothing"),
        ShapeCase((7, 200), "more columns than one warp holds"),
    ),
    dtypes=(torch.float32, torch.bfloat16),
    tolerance_eps=4.0,
    tolerance_reason=(
        "float32: half an eps each for square, mean, root, quotient and two products, about one for a pairwise sum; "
        "bfloat16: the sums are float32, so one rounding at the store, which the interpreter truncates (1 eps, not 0.5)"
    ),
)
