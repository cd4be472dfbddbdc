"""Operands of kernels: their layout and dtype, samples, and the sum of partial sums."""

import torch
from torch import Tensor

from kernels.framework.backend import tl, triton

PARTIALS_AT_ONCE, PARTIAL_COLUMNS = 32, 64


@triton.jit
def _sum_partials_kernel(
    partials_ptr, sums_ptr, NUM_PARTIALS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, NUM_PARTIALS, ROWS):
        rows = first + tl.arange(0, ROWS)
        inside = (rows < NUM_PARTIALS)[:, None] & (columns < WIDTH)[None, :]
        sums += tl.load(partials_ptr + rows[:, None].to(tl.int64) * WIDTH + columns[None, :], mask=inside, other=0.0)
    tl.store(sums_ptr + columns, tl.sum(sums, axis=0), mask=columns < WIDTH)


def sum_partials(partials_PX: Tensor) -> Tensor:
    """Sum the P float32 partial sums of many programs, in one fixed order: the second pass of a sum without atomics."""
    num_partials, width = partials_PX.shape
    sums_X = torch.empty(width, dtype=torch.float32, device=partials_PX.device)
    _sum_partials_kernel[(triton.cdiv(width, PARTIAL_COLUMNS),)](
        partials_PX, sums_X, num_partials, width, PARTIALS_AT_ONCE, PARTIAL_COLUMNS
    )
    return sums_X


def sum_dtype(*tensors: Tensor) -> torch.dtype:
    """Return the dtype of sums over these tensors: float32, or float64 if one of them is."""
    wide = torch.float32
    for tensor in tensors:
        wide = torch.promote_types(wide, tensor.dtype)
    return wide


def as_rows(tensor: Tensor) -> Tensor:
    """Return (..., D) as (N, D) with adjacent columns; a view if the strides allow one, as they do for a slice of columns."""
    width = tensor.shape[-1]
    rows_ND = tensor.reshape(tensor.numel() // max(1, width), width)
    return rows_ND if rows_ND.stride(-1) == 1 else rows_ND.contiguous()


def sample_positions(generator: torch.Generator, shape: tuple[int, int]) -> Tensor:
    """Draw positions (B, T) within documents of uneven lengths, five tokens in the mean, for a kernel's samples."""
    starts_BT = torch.rand(shape, generator=generator, device=generator.device) < 0.2
    starts_BT[:, 0] = True
    indices_T = torch.arange(shape[1], device=generator.device)
    return indices_T - (starts_BT * indices_T).cummax(dim=1).values
