"""What the kernel files share: whether a kernel runs, how tensors are handed to it, and the sum of partial sums."""

import torch
from torch import Tensor
from torch.library import CustomOpDef

from kernels.framework import backend
from kernels.framework.backend import tl, triton

KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
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


def runs_kernel(operation: str, *tensors: Tensor) -> bool:
    """Whether `operation` runs its kernel on these tensors: on a GPU and in the interpreter, unless told otherwise.

    float64 is plain torch everywhere, since kernels add in float32. Raises TypeError for a dtype that kernels do not take,
    and UnavailableKernelError on a GPU without Triton.
    """
    for tensor in tensors:
        if tensor.dtype not in (*KERNEL_DTYPES, torch.float64):
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in (*KERNEL_DTYPES, torch.float64))
            raise TypeError(f"{operation}: found {tensor.dtype}, expected one of {names}; convert it before the call")
    if any(tensor.dtype == torch.float64 for tensor in tensors):
        return False
    return backend.runs_kernel(operation, tensors[0])


def register_on_cpu(*operations: CustomOpDef) -> None:
    """Register each operation's function for CPU tensors itself, without the wrapper that torch puts around it.

    The wrapper loads the compiler at the first call, a second of every process, and checks aliases at each. Compiled code
    sees no difference: it never looks into an operation.
    """
    for operation in operations:
        torch.library.impl(operation._qualname, "CPU", operation._init_fn)


def sum_dtype(*tensors: Tensor) -> torch.dtype:
    """The dtype of sums over these tensors: float32, or float64 where one of them is."""
    wide = torch.float32
    for tensor in tensors:
        wide = torch.promote_types(wide, tensor.dtype)
    return wide


def as_rows(tensor: Tensor) -> Tensor:
    """(..., D) as (N, D) with adjacent columns; a view wherever the strides allow one, as they do for a slice of columns."""
    width = tensor.shape[-1]
    rows_ND = tensor.reshape(tensor.numel() // max(1, width), width)
    return rows_ND if rows_ND.stride(-1) == 1 else rows_ND.contiguous()


def sample_positions(generator: torch.Generator, shape: tuple[int, int]) -> Tensor:
    """Positions (B, T) within documents of uneven lengths, five tokens in the mean, for a kernel's samples."""
    starts_BT = torch.rand(shape, generator=generator, device=generator.device) < 0.2
    starts_BT[:, 0] = True
    indices_T = torch.arange(shape[1], device=generator.device)
    return indices_T - (starts_BT * indices_T).cummax(dim=1).values
