"""Grouped products of experts: each tile of rows is multiplied by the matrix of the expert that it belongs to.

    y_s = x_s W_e        dx_s = dy_s W_e^T        dW_e = sum_s x_s^T dy_s, over the rows s of the expert's tiles, in order

Rows are sorted by expert, and an expert's rows are padded with zeros to whole tiles, so that no tile has two experts and no
shape follows the data. The tiles after the last expert's are not computed. Each row is multiplied in a tile of one shape,
whatever rows are beside it and however many: its bits do not depend on them. No atomics, one order of every sum.

On Hopper bfloat16 is multiplied by torch's grouped products, which do the same with tiles of their own, and the kernels here write
the zeros that it leaves out: of tiles of no expert, and of the gradients of experts without rows.

Shapes: S rows in N tiles of one length, E experts, D width in, F width out. Source: the grouped products of Gale et al. 2022,
arXiv 2211.15841.
"""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from kernels.framework.backend import SMALLEST_TILE, is_interpreting, runs_kernel, tl, triton
from kernels.framework.configurations import launch_options
from kernels.framework.operation import operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase


class Blocks(NamedTuple):
    """Sides of the blocks of a launch, and the terms that are added one after the other before their sum is added to that of all.

    In float32 a product adds each term to what it began with, so that one sum of thousands rounds as often. Products of half
    precision add in the tensor core, and are one sum.
    """

    shape_class: str
    rows: int
    inner: int
    outer: int
    span: int


HALF = Blocks("half", 128, 64, 256, 1 << 30)
SMALL_HALF = Blocks("small half", 64, 32, 64, 1 << 30)
FLOAT32 = Blocks("float32", 32, 32, 32, 64)
HALF_BYTES = 150_000
"""Shared memory that a program with blocks of HALF needs for three stages; a GPU with less gets SMALL_HALF."""


def expert_product_reference(rows_SD: Tensor, weights_EDF: Tensor, experts_N: Tensor) -> Tensor:
    """Compute the definition in plain torch: (S, F) in the dtype of the rows."""
    none_1DF = torch.zeros_like(weights_EDF[:1])
    tiles_NLD = rows_SD.unflatten(0, (len(experts_N), -1))
    return torch.bmm(tiles_NLD, torch.cat((weights_EDF, none_1DF))[experts_N]).flatten(0, 1)


@triton.jit
def _rows_kernel(
    rows_ptr, weights_ptr, experts_ptr, out_ptr, expert_stride, inner_stride, outer_stride,
    NUM_EXPERTS: tl.constexpr, INNER: tl.constexpr, OUTER: tl.constexpr, TILE: tl.constexpr, SPAN: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_INNER: tl.constexpr, BLOCK_OUTER: tl.constexpr, DOT_TYPE: tl.constexpr,
    ZEROS_ALONE: tl.constexpr,
):  # fmt: skip
    """Compute a block of rows of the product; zeros where the tile has no expert, and with ZEROS_ALONE nothing else."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    columns = tl.program_id(1) * BLOCK_OUTER + tl.arange(0, BLOCK_OUTER)
    expert = tl.load(experts_ptr + tl.program_id(0) * BLOCK_ROWS // TILE)
    if ZEROS_ALONE & (expert < NUM_EXPERTS):
        return
    total = tl.zeros((BLOCK_ROWS, BLOCK_OUTER), tl.float32)
    if expert < NUM_EXPERTS:
        for start in range(0, INNER, SPAN):
            part = tl.zeros((BLOCK_ROWS, BLOCK_OUTER), tl.float32)
            for first in range(start, min(start + SPAN, INNER), BLOCK_INNER):
                inner = first + tl.arange(0, BLOCK_INNER)
                is_inner, is_column = inner < INNER, columns < OUTER
                left = tl.load(rows_ptr + rows[:, None] * INNER + inner[None, :], mask=is_inner[None, :], other=0.0)
                places = expert * expert_stride + inner[:, None] * inner_stride + columns[None, :] * outer_stride
                right = tl.load(weights_ptr + places, mask=is_inner[:, None] & is_column[None, :], other=0.0)
                part += tl.dot(left.to(DOT_TYPE), right.to(DOT_TYPE), input_precision="ieee", out_dtype=tl.float32)
            total += part
    places = rows[:, None] * OUTER + columns[None, :]
    tl.store(out_ptr + places, total.to(out_ptr.dtype.element_ty), mask=(columns < OUTER)[None, :])


@triton.jit
def _weights_kernel(
    rows_ptr, grad_ptr, bounds_ptr, out_ptr,
    INNER: tl.constexpr, OUTER: tl.constexpr, TILE: tl.constexpr, SPAN: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_INNER: tl.constexpr, BLOCK_OUTER: tl.constexpr, DOT_TYPE: tl.constexpr,
    ZEROS_ALONE: tl.constexpr,
):  # fmt: skip
    """Compute a block of the gradient of one expert's matrix, over its rows in their order; with ZEROS_ALONE only zeros."""
    expert = tl.program_id(0).to(tl.int64)
    inner = tl.program_id(1) * BLOCK_INNER + tl.arange(0, BLOCK_INNER)
    columns = tl.program_id(2) * BLOCK_OUTER + tl.arange(0, BLOCK_OUTER)
    first, last = tl.load(bounds_ptr + expert) * TILE, tl.load(bounds_ptr + expert + 1) * TILE
    if ZEROS_ALONE & (first < last):
        return
    total = tl.zeros((BLOCK_INNER, BLOCK_OUTER), tl.float32)
    for start in range(first, last, SPAN):
        part = tl.zeros((BLOCK_INNER, BLOCK_OUTER), tl.float32)
        for block in range(start, tl.minimum(start + SPAN, last), BLOCK_ROWS):
            rows = block + tl.arange(0, BLOCK_ROWS)
            left = tl.load(rows_ptr + rows[:, None] * INNER + inner[None, :], mask=(inner < INNER)[None, :], other=0.0)
            right = tl.load(
                grad_ptr + rows[:, None] * OUTER + columns[None, :], mask=(columns < OUTER)[None, :], other=0.0
            )
            left, right = tl.trans(left.to(DOT_TYPE)), right.to(DOT_TYPE)
            part += tl.dot(left, right, input_precision="ieee", out_dtype=tl.float32)
        total += part
    places = (expert * INNER + inner)[:, None] * OUTER + columns[None, :]
    mask = (inner < INNER)[:, None] & (columns < OUTER)[None, :]
    tl.store(out_ptr + places, total.to(out_ptr.dtype.element_ty), mask=mask)


@operation(lambda rows, weights, experts: rows.new_empty((rows.shape[0], weights.shape[2])))
def expert_product_op(rows_SD: Tensor, weights_EDF: Tensor, experts_N: Tensor) -> Tensor:
    """Run the operation: return (S, F) in the dtype of the rows."""
    return _multiplied(rows_SD, weights_EDF, experts_N)


@operation(lambda grad, rows, weights, experts: (rows.new_empty(rows.shape), weights.new_empty(weights.shape)))
def expert_product_backward_op(
    grad_SF: Tensor, rows_SD: Tensor, weights_EDF: Tensor, experts_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `rows_SD` and `weights_EDF`."""
    num_experts, width_in, width_out = weights_EDF.shape
    grad_rows_SD = _multiplied(grad_SF, weights_EDF.mT, experts_N)
    length = rows_SD.shape[0] // max(1, len(experts_N))
    if not (weights_EDF.numel() and length):
        return grad_rows_SD, weights_EDF.new_zeros(weights_EDF.shape)
    bounds = _bounds(experts_N, num_experts)
    if not runs_kernel("expert_product", rows_SD, weights_EDF):
        grad_weights_EDF = weights_EDF.new_zeros(weights_EDF.shape)
        places = (bounds * length).tolist()
        for expert, (first, last) in enumerate(pairwise(places)):
            torch.mm(rows_SD[first:last].mT, grad_SF[first:last], out=grad_weights_EDF[expert])
        return grad_rows_SD, grad_weights_EDF
    rows_SD, grad_SF = rows_SD.contiguous(), grad_SF.contiguous()
    is_grouped = _is_grouped(rows_SD, weights_EDF, length)
    if is_grouped:
        grad_weights_EDF = functional.grouped_mm(rows_SD.mT, grad_SF, offs=(bounds[1:] * length).int())
    else:
        grad_weights_EDF = weights_EDF.new_empty(weights_EDF.shape)
    blocks = _blocks_of(rows_SD, width_out)
    grid = (num_experts, triton.cdiv(width_in, blocks.rows), triton.cdiv(width_out, blocks.outer))
    _weights_kernel[grid](
        rows_SD, grad_SF, bounds, grad_weights_EDF, width_in, width_out, length, blocks.span,
        min(length, blocks.inner), blocks.rows, blocks.outer, _dot_type(rows_SD), is_grouped,
        **launch_options("expert_product.weights", blocks.shape_class, rows_SD.device),
    )  # fmt: skip
    return grad_rows_SD, grad_weights_EDF


register_gradients(expert_product_op, expert_product_backward_op, lambda inputs, output: inputs)


def _multiplied(rows_SD: Tensor, weights_EDF: Tensor, experts_N: Tensor) -> Tensor:
    """Return (S, F); the matrices may be transposed views."""
    num_experts, width_in, width_out = weights_EDF.shape
    length = rows_SD.shape[0] // max(1, len(experts_N))
    if not (length and width_in and width_out) or not runs_kernel("expert_product", rows_SD, weights_EDF):
        out_SF = rows_SD.new_zeros((rows_SD.shape[0], width_out))
        for tile, expert in enumerate(experts_N.tolist()):
            if expert < num_experts:
                rows = slice(tile * length, (tile + 1) * length)
                torch.mm(rows_SD[rows], weights_EDF[expert], out=out_SF[rows])
        return out_SF
    rows_SD = rows_SD.contiguous()
    is_grouped = _is_grouped(rows_SD, weights_EDF, length)
    if is_grouped:
        ends_E = _bounds(experts_N, num_experts)[1:] * length
        out_SF = functional.grouped_mm(rows_SD, weights_EDF, offs=ends_E.int())
    else:
        out_SF = rows_SD.new_empty((rows_SD.shape[0], width_out))
    blocks = _blocks_of(rows_SD, width_out)
    num_rows = min(length, blocks.rows)
    _rows_kernel[rows_SD.shape[0] // num_rows, triton.cdiv(width_out, blocks.outer)](
        rows_SD, weights_EDF, experts_N, out_SF, *weights_EDF.stride(), num_experts, width_in, width_out, length,
        blocks.span, num_rows, blocks.inner, blocks.outer, _dot_type(rows_SD), is_grouped,
        **launch_options("expert_product.rows", blocks.shape_class, rows_SD.device),
    )  # fmt: skip
    return out_SF


def _bounds(experts_N: Tensor, num_experts: int) -> Tensor:
    """Return the first tile of each expert, and the end of the last one's (E + 1)."""
    return torch.searchsorted(experts_N, torch.arange(num_experts + 1, device=experts_N.device))


def _is_grouped(rows_SD: Tensor, weights_EDF: Tensor, length: int) -> bool:
    """Return whether torch's grouped product multiplies: of bfloat16 on Hopper, in tiles and widths that it does not pad.

    On Blackwell it leaves the gradients of experts without rows unwritten (pytorch issue 172439); elsewhere it waits for the host.
    """
    if not (rows_SD.is_cuda and rows_SD.dtype == weights_EDF.dtype == torch.bfloat16):
        return False
    is_whole = length % HALF.rows == 0 and all(width % 8 == 0 for width in weights_EDF.shape[1:])
    return is_whole and torch.cuda.get_device_capability(rows_SD.device)[0] == 9


def _blocks_of(rows_SD: Tensor, width_out: int) -> Blocks:
    """Return the blocks of a launch, by the dtype, the GPU and the matrices alone: how many rows there are changes no bit."""
    if rows_SD.dtype not in (torch.bfloat16, torch.float16):
        return FLOAT32
    if not _holds(HALF_BYTES, rows_SD.device):
        return SMALL_HALF
    return HALF if width_out % HALF.outer == 0 else HALF._replace(outer=HALF.outer // 2)


def _holds(num_bytes: int, device: torch.device) -> bool:
    """Return whether a multiprocessor of the device has so much shared memory; the interpreter has no limit."""
    return (
        device.type != "cuda" or torch.cuda.get_device_properties(device).shared_memory_per_multiprocessor >= num_bytes
    )


def _dot_type(rows_SD: Tensor) -> tl.constexpr:
    """Return the type of the products. The interpreter multiplies the raw bits of bfloat16."""
    types = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
    return tl.float32 if is_interpreting() else types.get(rows_SD.dtype, tl.float32)


def expert_product(rows_SD: Tensor, weights_EDF: Tensor, experts_N: Tensor) -> Tensor:
    """Return each row times the matrix of its tile's expert, (S, F); zeros for the tiles of no expert.

    `experts_N`, int64, ascends and is E for a tile of none; it is not checked. S is a multiple of N, and on a GPU a tile's
    length is a power of two of at least 16. Rows and matrices are of one dtype.
    """
    length = rows_SD.shape[0] // max(1, experts_N.shape[0])
    if rows_SD.is_cuda and (length < SMALLEST_TILE or length & (length - 1)):
        raise ValueError(f"expert_product: tiles of {length} rows; expected a power of two of at least {SMALLEST_TILE}")
    return expert_product_op(rows_SD, weights_EDF, experts_N.contiguous())


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw rows of about unit size; the sizes are tiles, their length, experts, width in and width out.

    The last tile has no expert, if there are several; of few tiles, some experts have none.
    """
    num_tiles, length, num_experts, width_in, width_out = case.sizes
    device = generator.device
    rows_SD = torch.randn((num_tiles * length, width_in), generator=generator, device=device).to(dtype)
    weights_EDF = torch.randn((num_experts, width_in, width_out), generator=generator, device=device) * width_in**-0.5
    experts_N = torch.randint(num_experts, (num_tiles,), generator=generator, device=device).sort().values
    if num_tiles > 1:
        experts_N[-1] = num_experts
    return rows_SD, weights_EDF.to(dtype), experts_N


SPEC = KernelSpec(
    name="expert_product",
    reference=expert_product_reference,
    op=expert_product,
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase((5, 16, 3, 40, 33), "a tile of no expert; widths off every block"),
        ShapeCase((3, 64, 2, 16, 80), "tiles longer than a block of float32"),
        ShapeCase((1, 16, 4, 3, 5), "one tile, experts without rows, widths below a block"),
        ShapeCase((3, 128, 4, 16, 24), "tiles and widths that a grouped product takes whole, experts without rows"),
    ),
    real_cases=(ShapeCase((144, 128, 16, 3584, 896), "16 experts, top 4, 4,096 tokens, the widest preset"),),
    tolerance_eps=8.0,
    tolerance_reason="half an eps for the product, and sums of D or of an expert's rows in blocks of 32, about 2 observed",
)
