"""The same claims on a CUDA device, where there is one."""

import json
import subprocess
import sys

import pytest
import torch

from kernels.framework.spec import KernelSpec, all_specs
from kernels.measure.parity import leaves, run_with_gradients
from tests.support.paths import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_a_kernel_agrees_with_its_reference_on_the_device(spec: KernelSpec) -> None:
    line = [sys.executable, "-m", "kernels", "parity", "--only", spec.name, "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.stdout, done.stderr
    assert [result for result in json.loads(done.stdout) if not result["passed"]] == []
    assert done.returncode == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_two_runs_of_a_kernel_give_the_same_bits_forward_and_backward(spec: KernelSpec, dtype: torch.dtype) -> None:
    case = (spec.real_cases or spec.cases)[0]

    def run() -> dict[str, torch.Tensor]:
        arguments = spec.sample_inputs(torch.Generator("cuda").manual_seed(3), dtype, case)
        return run_with_gradients(spec.op, leaves(arguments))

    first, second = run(), run()

    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
