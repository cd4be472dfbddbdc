"""How far a kernel is from its reference, forward and for every gradient, in units of machine epsilon."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.spec import Argument, KernelSpec, Operation, ShapeCase


@dataclass(frozen=True, slots=True)
class ParityResult:
    """One comparison. `output` is "forward" or "gradient <i>" for the i-th argument; errors are in units of eps."""

    kernel: str
    dtype: str
    case: str
    output: str
    error_eps: float
    tolerance_eps: float

    @property
    def passed(self) -> bool:
        """Whether the error is a number within the tolerance (a NaN is not)."""
        return self.error_eps <= self.tolerance_eps


def measure_parity(
    spec: KernelSpec, dtype: torch.dtype, case: ShapeCase, device: str, seed: int
) -> Iterator[ParityResult]:
    """Compare op and reference on one sample, the reference in float64: the forward result, then each gradient."""
    generator = torch.Generator(device).manual_seed(seed)
    arguments = spec.sample_inputs(generator, dtype, case)
    actual = _outputs(spec.op, arguments, dtype)
    expected = _outputs(spec.reference, arguments, torch.float64)
    for name, expected_tensor in expected.items():
        error_eps = _relative_error(actual[name], expected_tensor) / torch.finfo(dtype).eps
        yield ParityResult(
            spec.name, str(dtype).removeprefix("torch."), case.label, name, error_eps, spec.tolerance_eps
        )


def check_registration(spec: KernelSpec, device: str) -> None:
    """Run `torch.library.opcheck` on the custom operation `sluice::<name>`. Raises if schema, fakes or autograd lie."""
    generator = torch.Generator(device).manual_seed(0)
    arguments = spec.sample_inputs(generator, torch.float32, spec.cases[0])
    torch.library.opcheck(getattr(torch.ops.sluice, spec.name).default, _leaves(arguments, torch.float32))


def _leaves(arguments: tuple[Argument, ...], dtype: torch.dtype) -> tuple[Argument, ...]:
    """The arguments with each floating-point tensor as a leaf of `dtype` that asks for its gradient."""
    return tuple(
        argument.detach().to(dtype, copy=True).requires_grad_()
        if isinstance(argument, Tensor) and argument.is_floating_point()
        else argument
        for argument in arguments
    )


def _outputs(operation: Operation, arguments: tuple[Argument, ...], dtype: torch.dtype) -> dict[str, Tensor]:
    leaves = _leaves(arguments, dtype)
    result = operation(*leaves)
    # The incoming gradient is the same for both dtypes, uneven, and exact in bfloat16.
    ramp = (torch.arange(result.numel(), device=result.device) % 13 - 6).view(result.shape) / 8
    result.backward(ramp.to(result.dtype))
    gradients = {
        f"gradient {index}": leaf.grad
        for index, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor) and leaf.grad is not None
    }
    return {"forward": result.detach(), **gradients}


def _relative_error(actual: Tensor, expected: Tensor) -> float:
    scale = max(expected.abs().max().item(), torch.finfo(torch.float32).tiny)
    return (actual.double() - expected).abs().max().item() / scale
