"""Specification of an operation, declared by its kernel file, and the search for all of them.

Each kernel file ends in one `SPEC`. The parity test, the benchmark and `python -m kernels` walk the same
specifications, so that a new kernel is one new file.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

import torch
from torch import Tensor

import kernels

Argument = Tensor | float | int | bool | None


@dataclass(frozen=True, slots=True)
class ShapeCase:
    """A problem size. `why` names the edge case that only this size reaches."""

    sizes: tuple[int, ...]
    why: str

    @property
    def label(self) -> str:
        """The sizes, such as `3x5x48`."""
        return "x".join(str(size) for size in self.sizes)


SampleInputs = Callable[[torch.Generator, torch.dtype, ShapeCase], tuple[Argument, ...]]
Operation = Callable[..., Tensor | tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """An operation: its meaning (`reference`), its implementation (`op`), and how far apart the two may be.

    `reference` is plain differentiable torch. `op` runs the kernel on a GPU and in the interpreter. Both return a tensor
    or a tuple of tensors; integer and boolean outputs must be equal. `sample_inputs` draws the arguments of both from
    its generator alone; gradients are compared for every floating-point tensor among them, each in the dtype that it was
    drawn in. `tolerance_eps` bounds max|op - reference| / max|reference| in units of the dtype's machine epsilon, with
    the reference computed in float64 from the same inputs; `tolerance_reason` says where that many roundings come from.

    `gradient_tolerance_eps` is the bound for gradients if it differs. `registered_inputs` turns sample inputs into the
    arguments of the custom operation `sluice::<name>` if its schema is not that of `op`. `real_cases` are sizes of
    training: a GPU compares and times them, the interpreter never runs them. `peers` are public implementations of the
    same arguments by name; each loader imports its library and returns the callable. `has_serial_reference` says that the
    reference is a loop over tokens, which a compiler would unroll: it is not timed compiled, and its own error in the dtype bounds
    that of the kernel where the sample amplifies what is rounded (`measure_parity`). One of whole numbers is not
    differentiable: it has no gradients to compare.
    """

    name: str
    reference: Operation
    op: Operation
    sample_inputs: SampleInputs
    cases: tuple[ShapeCase, ...]
    tolerance_eps: float
    tolerance_reason: str
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16, torch.float16)
    gradient_tolerance_eps: float | None = None
    registered_inputs: Callable[[tuple[Argument, ...]], tuple[Argument, ...]] | None = None
    real_cases: tuple[ShapeCase, ...] = ()
    peers: Mapping[str, Callable[[], Operation]] = field(default_factory=dict)
    has_serial_reference: bool = False
    is_differentiable: bool = True

    def tolerance_of(self, output: str) -> float:
        """Return the bound for an output as the parity names it: "gradient ..." or "forward ..."."""
        if output.startswith("gradient") and self.gradient_tolerance_eps is not None:
            return self.gradient_tolerance_eps
        return self.tolerance_eps


def all_specs() -> tuple[KernelSpec, ...]:
    """Find the `SPEC` of every operation: a module of `kernels`, or the module `op` of a folder, sorted by its name."""
    found = sorted((module.name, module.ispkg) for module in pkgutil.iter_modules(kernels.__path__))
    names = [f"{name}.op" if is_folder else name for name, is_folder in found if name != "__main__"]
    modules = [importlib.import_module(f"kernels.{name}") for name in names if find_spec(f"kernels.{name}") is not None]
    return tuple(module.SPEC for module in modules if hasattr(module, "SPEC"))
