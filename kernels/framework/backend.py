"""Which implementation of an operation runs where: Triton, its interpreter, or the plain-torch reference mode.

Kernel files take `triton` and `tl` from here, so that they can be imported where Triton is not installed. A CUDA tensor
then raises `UnavailableKernelError`: the reference mode is something a caller asks for, never a silent second choice.
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
        """Stands where Triton would: decorates a kernel without compiling it."""

        constexpr = object

        @staticmethod
        def jit(function: Callable[..., Any]) -> Callable[..., Any]:
            return function

    triton, tl, HAS_TRITON = _Absent, _Absent, False
else:
    HAS_TRITON = True

_reference_mode: ContextVar[bool] = ContextVar("reference_mode", default=False)


class UnavailableKernelError(RuntimeError):
    """A kernel cannot run on these tensors here. The message says what is missing and names the reference mode."""


@contextmanager
def reference_mode() -> Iterator[None]:
    """Within it, operations run their plain-torch implementation on every device: slow on a GPU, and exact."""
    token = _reference_mode.set(True)
    try:
        yield
    finally:
        _reference_mode.reset(token)


@triton.jit
def _probe():
    pass


def is_interpreting() -> bool:
    """Whether kernels run in Triton's interpreter: decided by TRITON_INTERPRET when this module was imported."""
    return HAS_TRITON and not isinstance(_probe, triton.JITFunction)


def runs_kernel(operation: str, tensor: torch.Tensor) -> bool:
    """Whether `operation` runs its Triton kernel on this tensor. Raises UnavailableKernelError on a GPU without Triton."""
    if _reference_mode.get():
        return False
    if tensor.is_cuda and not HAS_TRITON:
        raise UnavailableKernelError(
            f"{operation} on {tensor.device}: Triton is not installed, and its kernel needs it. Install triton, or ask for "
            "the plain-torch implementation with kernels.framework.backend.reference_mode()."
        )
    return tensor.is_cuda or is_interpreting()
