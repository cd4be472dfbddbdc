"""AllocationWatch: the bytes that tensors hold, counted as they are allocated and released, on the meta device too.

An operation of `kernels`, or one of torch that consists of others, is called by itself, so that what it allocates between its
inputs and its results is counted. Where it asks for numbers, which the meta device lacks, it is given zeros, and a yes to a
question.
"""

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.framework.operation import IMPLEMENTATIONS


class AllocationWatch(TorchDispatchMode):
    """Count of bytes, while its block runs: `held` now, and `peak` since `mark` was last called."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.peak = 0, 0
        self._storages: dict[int, int] = {}

    def mark(self) -> int:
        """Start a new peak, and return the one before."""
        before, self.peak = self.peak, self.held
        return before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        implementation: Callable[..., Any] | None = IMPLEMENTATIONS.get(func._schema.name)
        named = kwargs or {}
        if func in _QUESTIONS:
            return 1
        if named.get("device") == torch.device("cpu") and args and isinstance(args[0], Tensor):
            return torch.zeros(args[0].shape, dtype=args[0].dtype, device="cpu")
        if implementation is None and func._can_decompose() and not _has_kernel(func.name(), "CPU"):
            implementation = func.decompose
        with self if implementation else nullcontext():
            result = (implementation or func)(*args, **named)
        for each in pytree.tree_leaves(result):
            if isinstance(each, Tensor):
                self._see(each)
        return result

    def _see(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata in self._storages:
            return
        self._storages[storage._cdata] = storage.nbytes()
        self.held += storage.nbytes()
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._release, storage._cdata)

    def _release(self, key: int) -> None:
        self.held -= self._storages.pop(key)


_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
_QUESTIONS = tuple(getattr(torch.ops.aten, name).default for name in ("_local_scalar_dense", "is_nonzero", "item"))
