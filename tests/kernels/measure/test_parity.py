"""Every kernel equals its reference, forward and for each gradient: on the GPU or else in Triton's interpreter."""

import dataclasses
import json
import subprocess
import sys

import pytest
import torch

from kernels import rms_norm
from kernels.framework.backend import dtype_name
from kernels.framework.spec import KernelSpec, ShapeCase, all_specs
from kernels.measure.parity import measure_parity_within_memory
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def report() -> list[dict[str, object]]:
    """The comparisons of a fresh process: Triton chooses its interpreter when a kernel is decorated, once a process."""
    command = [sys.executable, "-m", "kernels", "parity", "--json"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert completed.stdout, completed.stderr
    return json.loads(completed.stdout)


@pytest.mark.slow  # every operation, size and dtype in the interpreter
@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_a_kernel_equals_its_reference_forward_and_for_every_gradient(
    spec: KernelSpec, report: list[dict[str, object]]
) -> None:
    results = [result for result in report if result["kernel"] == spec.name]

    failures = [result for result in results if not result["passed"]]
    compared = {(result["dtype"], result["case"]) for result in results}
    declared = {(dtype_name(dtype), case.label) for dtype in spec.dtypes for case in spec.cases}

    assert failures == []
    assert compared == declared
    outputs = {result["output"] for result in results}
    assert outputs > {"forward"} if spec.is_differentiable else outputs == {"forward"}, "no gradient was compared"


@pytest.mark.parametrize(
    ("sizes", "limit", "compared"),
    [((4, 8, 16), 256, "2x8x16"), ((1, 8, 16), 40, "1x2x16"), ((2, 8, 16), 10_000, "2x8x16")],
)
def test_a_size_that_the_memory_does_not_hold_is_halved_and_says_so(
    sizes: tuple[int, ...], limit: int, compared: str
) -> None:
    def spent_beyond_the_limit(hidden, *others):
        if hidden.numel() > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return rms_norm.rms_norm_reference(hidden, *others)

    spec = dataclasses.replace(rms_norm.SPEC, op=spent_beyond_the_limit)
    case = ShapeCase(sizes, "a size of training")
    results = measure_parity_within_memory(spec, torch.float32, case, "cpu", seed=1)

    assert {result.case for result in results} == {compared}
    assert {result.bounded_from for result in results} == {None if compared == case.label else case.label}
    assert all(result.passed for result in results)


def test_memory_that_holds_nothing_ends_in_its_error() -> None:
    def spent(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    spec = dataclasses.replace(rms_norm.SPEC, op=spent)
    with pytest.raises(torch.OutOfMemoryError, match="does not hold one token"):
        measure_parity_within_memory(spec, torch.float32, ShapeCase((2, 2, 4), ""), "cpu", seed=1)
