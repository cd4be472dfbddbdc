"""The measure of parity: it sees a wrong kernel, and NaN never passes."""

import dataclasses

import torch

from kernels import rms_norm
from kernels.framework.spec import KernelSpec
from kernels.measure.parity import ParityResult, compare_everywhere, measure_parity

SELF_COMPARISON = dataclasses.replace(rms_norm.SPEC, op=rms_norm.rms_norm_reference)


def measured(spec: KernelSpec) -> dict[str, ParityResult]:
    results = measure_parity(spec, torch.float32, spec.cases[1], "cpu", seed=1)
    return {result.output: result for result in results}


def test_the_reference_is_within_tolerance_of_itself() -> None:
    results = measured(SELF_COMPARISON)

    assert set(results) == {"forward", "gradient 0", "gradient 1"}
    assert all(result.passed for result in results.values())


def test_a_kernel_that_forgets_the_mean_is_out_of_tolerance_in_every_output() -> None:
    def forgetful(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps) * weight

    results = measured(dataclasses.replace(rms_norm.SPEC, op=forgetful))

    assert not any(result.passed for result in results.values())


def test_a_wrong_gradient_after_a_right_forward_is_out_of_tolerance() -> None:
    def detached_scale(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps).detach() * weight

    results = measured(dataclasses.replace(rms_norm.SPEC, op=detached_scale))

    assert results["forward"].passed
    assert not results["gradient 0"].passed


def test_a_case_that_raises_is_a_failure_of_its_own_and_the_others_are_compared() -> None:
    def refusing_one_row(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        if x.shape[0] == 1:
            raise ValueError("one row")
        return rms_norm.rms_norm(x, weight, eps)

    spec = dataclasses.replace(rms_norm.SPEC, op=refusing_one_row, dtypes=(torch.float32,))
    results = list(compare_everywhere(spec, "cpu", seed=1))

    assert [(result.case, result.failure) for result in results if not result.passed] == [
        ("1x5", "ValueError: one row")
    ]
    assert {result.case for result in results} == {case.label for case in spec.cases}


def test_nan_never_passes() -> None:
    assert not ParityResult("k", "float32", "1", "forward", error_eps=float("nan"), tolerance_eps=1.0).passed
