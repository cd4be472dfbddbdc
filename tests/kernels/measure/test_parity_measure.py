"""The measure of parity: it sees a wrong kernel, and NaN never passes."""

import dataclasses

import pytest
import torch

from kernels import rms_norm
from kernels.framework.spec import Argument, KernelSpec, ShapeCase
from kernels.m2rnn import op as m2rnn
from kernels.measure.parity import ParityResult, compare_everywhere, compare_in_processes, measure_parity

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


def test_a_loop_that_amplifies_what_it_rounds_is_bounded_by_its_own_reference_and_no_further() -> None:
    def amplifying(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
        *tensors, forget, transition, documents = m2rnn.SPEC.sample_inputs(generator, dtype, case)
        return (*(tensor / 1e4 for tensor in tensors), forget, 4 * transition, torch.zeros_like(documents))

    spec = dataclasses.replace(m2rnn.SPEC, sample_inputs=amplifying, cases=(ShapeCase((1, 100, 1, 8, 8), ""),) * 2)
    off = dataclasses.replace(spec, op=lambda *tensors: spec.op(*tensors[:4], tensors[4] * 1.001, tensors[5]))
    results, results_off = measured(spec), measured(off)

    assert all(result.passed for result in results.values())
    assert any(result.error_eps > m2rnn.SPEC.tolerance_of(name) for name, result in results.items())
    assert not any(result.passed for result in results_off.values())


def test_nan_never_passes() -> None:
    assert not ParityResult("k", "float32", "1", "forward", error_eps=float("nan"), tolerance_eps=1.0).passed


@pytest.mark.slow  # two processes that load torch
def test_processes_find_what_one_does_in_the_same_order() -> None:
    found = list(compare_in_processes([rms_norm.SPEC.name], "cpu", 42, 2))

    assert found == list(compare_everywhere(rms_norm.SPEC, "cpu", 42))
