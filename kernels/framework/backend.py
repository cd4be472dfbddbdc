"""Backend of an operation: Triton, its interpreter, or the plain-torch reference mode.

Kernel files import `triton` and `tl` from this file, so that they can be imported without Triton. A CUDA tensor then raises
`UnavailableKernelError`: the reference mode is requested by a caller, never a silent fallback.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

try:
    import triton
    import triton.language as tl
except ImportError:

    class _Absent:
        """A substitute for Triton that decorates a kernel without compiling it."""

        constexpr = object

        @staticmethod
        def jit(function: Callable[..., Any]) -> Callable[..., Any]:
            return function

    triton, tl, HAS_TRITON = _Absent, _Absent, False
else:
    HAS_TRITON = True

KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
SMALLEST_TILE = 16
"""Smallest side of a product of tiles."""
_reference_mode: ContextVar[bool] = ContextVar("reference_mode", default=False)
_catches: list[Callable[..., None]] = []


class UnavailableKernelError(RuntimeError):
    """A kernel cannot run on these tensors. The message says what is missing and names the reference mode."""


@contextmanager
def reference_mode() -> Iterator[None]:
    """Run operations by their plain-torch implementation on every device: slow on a GPU, and exact."""
    token = _reference_mode.set(True)
    try:
        yield
    finally:
        _reference_mode.reset(token)


@contextmanager
def caught_launches(catch: Callable[..., None]) -> Iterator[None]:
    """Give each launch to `catch(kernel, *arguments, **options)` instead: operations take the steps of a GPU on any tensors.

    A plain global, as in `configurations.trial`. Needs Triton, not interpreting.
    """

    def run(self, *arguments, grid, warmup, **named):
        catch(self, *arguments, **named)

    before = triton.JITFunction.run
    _catches.append(catch)
    triton.JITFunction.run = run
    try:
        yield
    finally:
        triton.JITFunction.run = before
        _catches.pop()


@triton.jit
def _probe():
    pass


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype in a report, such as `bfloat16`."""
    return str(dtype).removeprefix("torch.")


def is_interpreting() -> bool:
    """Return whether kernels run in Triton's interpreter, as TRITON_INTERPRET said when this module was imported."""
    return HAS_TRITON and not isinstance(_probe, triton.JITFunction)


def runs_kernel(operation: str, *tensors: torch.Tensor, has_float64_on_gpu: bool = True) -> bool:
    """Return whether `operation` runs its kernel on these tensors: on a GPU and in the interpreter, except in reference mode.

    float64 is plain torch, since kernels add in float32. Raises TypeError for a dtype that kernels do not take, and
    UnavailableKernelError on a GPU without Triton, or for float64 on a GPU unless the operation `has_float64_on_gpu`.
    """
    for tensor in tensors:
        if tensor.dtype not in KERNEL_DTYPES:
            names = ", ".join(map(dtype_name, KERNEL_DTYPES))
            raise TypeError(f"{operation}: found {tensor.dtype}, expected one of {names}; convert it before the call")
    if _reference_mode.get():
        return False
    device = tensors[0].device
    if any(tensor.dtype == torch.float64 for tensor in tensors):
        if device.type == "cuda" and not has_float64_on_gpu:
            raise UnavailableKernelError(
                f"{operation} on {device}: no kernel for float64. Expected float32 or bfloat16, {_REFERENCE}"
            )
        return False
    if device.type == "cuda" and not HAS_TRITON:
        raise UnavailableKernelError(
            f"{operation} on {device}: Triton is not installed, and its kernel needs it. Install triton, {_REFERENCE}"
        )
    return device.type == "cuda" or is_interpreting() or bool(_catches)


_REFERENCE = "or use the plain-torch implementation with kernels.framework.backend.reference_mode()."
