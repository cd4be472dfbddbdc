"""What a kernel file declares about its operation, and how every declaration is found.

Each kernel file ends in one `SPEC`. The parity test, the benchmark and `python -m kernels` walk the same
specifications, so a new kernel is one new file and nothing else.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import kernels

Argument = Tensor | float | int


@dataclass(frozen=True, slots=True)
class ShapeCase:
    """One problem size. `why` names the edge that this size reaches and the others do not."""

    sizes: tuple[int, ...]
    why: str

    @property
    def label(self) -> str:
        """The sizes as one word, such as `3x5x48`."""
        return "x".join(str(size) for size in self.sizes)


SampleInputs = Callable[[torch.Generator, torch.dtype, ShapeCase], tuple[Argument, ...]]
Operation = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One operation: what it means (`reference`), what runs (`op`), and how far apart the two may be.

    `reference` is plain differentiable torch. `op` always runs the kernel, whatever the device. `sample_inputs` draws
    the arguments of both from its generator alone; gradients are compared for every floating-point tensor among them.
    `tolerance_eps` bounds max|op - reference| / max|reference| in units of the dtype's machine epsilon, with the
    reference computed in float64 from the same inputs; `tolerance_reason` says where that many roundings come from.
    """

    name: str
    reference: Operation
    op: Operation
    sample_inputs: SampleInputs
    cases: tuple[ShapeCase, ...]
    dtypes: tuple[torch.dtype, ...]
    tolerance_eps: float
    tolerance_reason: str


def all_specs() -> tuple[KernelSpec, ...]:
    """The `SPEC` of every module of this package that declares one, in the order of the modules' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(kernels.__path__) if module.name != "__main__")
    modules = [importlib.import_module(f"kernels.{name}") for name in names]
    return tuple(module.SPEC for module in modules if hasattr(module, "SPEC"))
