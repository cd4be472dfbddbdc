"""Parity: distance of a kernel from its reference, forward and for every gradient, in units of machine epsilon."""

import gc
import math
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import torch
from torch import Tensor

from kernels.framework.backend import dtype_name
from kernels.framework.spec import Argument, KernelSpec, Operation, ShapeCase, all_specs

REFERENCE_FACTOR = 2.0
"""Errors of a serial reference in the dtype that its kernel may make: both round each step, and the sample amplifies both."""


@dataclass(frozen=True, slots=True)
class ParityResult:
    """A comparison. `output` is "forward" ("forward <i>" of several) or "gradient <i>" for the i-th argument.

    Errors are in units of eps, infinite if nothing could be compared; then `failure` says why. `bounded_from` is the requested
    size, if the memory held only half of it or less.
    """

    kernel: str
    dtype: str
    case: str
    output: str
    error_eps: float
    tolerance_eps: float
    bounded_from: str | None = None
    failure: str = ""

    @property
    def passed(self) -> bool:
        """True if the error is a number within the tolerance (a NaN is not)."""
        return self.error_eps <= self.tolerance_eps


def compare_everywhere(spec: KernelSpec, device: str, seed: int) -> Iterator[ParityResult]:
    """Check the registration, then compare every dtype and case, on a GPU those of training too.

    An exception becomes a failed result, so that one case does not hide the next.
    """
    for place in range(num_comparisons(spec, device)):
        yield from compare_at(spec, place, device, seed)


def num_comparisons(spec: KernelSpec, device: str) -> int:
    """Return the number of places of an operation's comparisons, the registration's first."""
    return 1 + len(_compared(spec, device))


def compare_at(spec: KernelSpec, place: int, device: str, seed: int) -> list[ParityResult]:
    """Return the results of one place."""
    dtype, case = (torch.float32, spec.cases[0]) if place == 0 else _compared(spec, device)[place - 1]
    try:
        if place == 0:
            check_registration(spec, device)
            return []
        return measure_parity_within_memory(spec, dtype, case, device, seed)
    except Exception as error:
        where, failure = (spec.name, dtype_name(dtype), case.label), f"{type(error).__name__}: {str(error)[:300]}"
        return [ParityResult(*where, "none", math.inf, spec.tolerance_eps, failure=failure)]


def compare_in_processes(names: Sequence[str], device: str, seed: int, num_processes: int) -> Iterator[ParityResult]:
    """Compare operations in some fresh processes, which compile at the same time; the results are in order."""
    specs = {spec.name: spec for spec in all_specs()}
    places = [(name, place) for name in names for place in range(num_comparisons(specs[name], device))]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(num_processes, context) as pool:
        for results in pool.map(partial(_compare_named, device=device, seed=seed), *zip(*places, strict=True)):
            yield from results


def _compare_named(name: str, place: int, device: str, seed: int) -> list[ParityResult]:
    (spec,) = (spec for spec in all_specs() if spec.name == name)
    results = compare_at(spec, place, device, seed)
    if device == "cuda":
        torch.cuda.empty_cache()  # the others need it
    return results


def _compared(spec: KernelSpec, device: str) -> list[tuple[torch.dtype, ShapeCase]]:
    return list(product(spec.dtypes, (*spec.cases, *(spec.real_cases if device == "cuda" else ()))))


def measure_parity(
    spec: KernelSpec, dtype: torch.dtype, case: ShapeCase, device: str, seed: int
) -> Iterator[ParityResult]:
    """Compare op and reference on one sample, the reference in float64: the forward results, then each gradient.

    What a loop over tokens rounds, its later tokens amplify, by as much as the sample says. Where an output of such a loop is
    out of its tolerance, its bound is REFERENCE_FACTOR times the error of the reference itself in the dtype, if that is more.
    """
    generator = torch.Generator(device).manual_seed(seed)
    arguments = spec.sample_inputs(generator, dtype, case)
    expected = run_with_gradients(spec.reference, leaves(arguments, torch.float64))

    def errors_of(operation: Operation) -> dict[str, float]:
        actual = run_with_gradients(operation, leaves(arguments))
        return {name: relative_error(actual.get(name), expected[name]) / torch.finfo(dtype).eps for name in expected}

    errors = errors_of(spec.op)
    tolerances = {name: spec.tolerance_of(name) for name in errors}
    if spec.has_serial_reference and any(errors[name] > tolerances[name] for name in errors):
        of_reference = errors_of(spec.reference)
        tolerances = {name: max(tolerances[name], REFERENCE_FACTOR * of_reference[name]) for name in errors}
    for name, error_eps in errors.items():
        yield ParityResult(spec.name, dtype_name(dtype), case.label, name, error_eps, tolerances[name])


def measure_parity_within_memory(
    spec: KernelSpec, dtype: torch.dtype, case: ShapeCase, device: str, seed: int
) -> list[ParityResult]:
    """Measure the parity at the size, or at the largest of its halves that fits in the memory of the device.

    The reference keeps the inputs of its gradients in float64, token by token: more than a GPU has at some sizes of training.
    """
    requested = case
    while True:
        try:
            results = measure_parity(spec, dtype, case, device, seed)
            bounded_from = None if case is requested else requested.label
            return [replace(result, bounded_from=bounded_from) for result in results]
        except torch.OutOfMemoryError:
            case = halved(case)
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()


def halved(case: ShapeCase) -> ShapeCase:
    """Return the case with half the rows or, of a single row, half the tokens. Raises torch.OutOfMemoryError for one token."""
    for place in (0, 1):
        if case.sizes[place] > 1:
            sizes = (*case.sizes[:place], case.sizes[place] // 2, *case.sizes[place + 1 :])
            return ShapeCase(sizes, f"{case.why}; half, for lack of memory")
    raise torch.OutOfMemoryError(f"{case.label}: the memory of the device does not hold one token")


def check_registration(spec: KernelSpec, device: str) -> None:
    """Run `torch.library.opcheck` on the custom operation `sluice::<name>`. Raises if schema, fakes or autograd are wrong."""
    generator = torch.Generator(device).manual_seed(0)
    arguments = leaves(spec.sample_inputs(generator, torch.float32, spec.cases[0]))
    if spec.registered_inputs is not None:
        arguments = spec.registered_inputs(arguments)
    torch.library.opcheck(getattr(torch.ops.sluice, spec.name).default, arguments)


def leaves(arguments: tuple[Argument, ...], dtype: torch.dtype | None = None) -> tuple[Argument, ...]:
    """Return the arguments with each floating-point tensor as a leaf that requires its gradient, in `dtype` if given."""
    return tuple(
        argument.detach().to(dtype or argument.dtype, copy=True).requires_grad_()
        if isinstance(argument, Tensor) and argument.is_floating_point()
        else argument
        for argument in arguments
    )


def run_with_gradients(
    operation: Operation, arguments: tuple[Argument, ...], incoming: list[Tensor] | None = None
) -> dict[str, Tensor]:
    """Return the outputs of `operation` and, from fixed incoming gradients, the gradient of each leaf, by name.

    The incoming gradients are made unless given, one for each output that has a gradient: a timing makes them before.
    """
    result = operation(*arguments)
    outputs = {"forward": result}
    if not isinstance(result, Tensor):
        outputs = {f"forward {index}": output for index, output in enumerate(result)}
    differentiable = [output for output in outputs.values() if output.requires_grad]
    torch.autograd.backward(differentiable, incoming_gradients(differentiable) if incoming is None else incoming)
    gradients = {
        f"gradient {index}": leaf.grad
        for index, leaf in enumerate(arguments)
        if isinstance(leaf, Tensor) and leaf.grad is not None
    }
    return {name: output.detach() for name, output in outputs.items()} | gradients


def incoming_gradients(outputs: Iterable[Tensor]) -> list[Tensor]:
    """Return the fixed incoming gradient of each of these outputs that has a gradient."""
    return [_incoming_gradient(output) for output in outputs if output.requires_grad]


def _incoming_gradient(output: Tensor) -> Tensor:
    """Return a gradient that is equal for every dtype, uneven, and exact in bfloat16."""
    ramp = (torch.arange(output.numel(), device=output.device) % 13 - 6).view(output.shape) / 8
    return ramp.to(output.dtype)


def relative_error(actual: Tensor | None, expected: Tensor) -> float:
    """Return the greatest difference over the greatest expected number.

    Infinite if a tensor is missing, has another shape, or is of integers and differs.
    """
    if actual is None or actual.shape != expected.shape:
        return math.inf
    if not expected.is_floating_point():
        return 0.0 if torch.equal(actual, expected) else math.inf
    if expected.numel() == 0:
        return 0.0
    scale = max(expected.abs().max().item(), torch.finfo(torch.float32).tiny)
    return (actual.double() - expected).abs().max().item() / scale
