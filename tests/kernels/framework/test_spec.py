"""Each operation declares one specification, found by its file, and draws its samples from a generator."""

import torch

from kernels import rms_norm
from kernels.framework.spec import all_specs
from tests.support.paths import ROOT


def test_every_kernel_file_declares_a_spec_of_its_own_name() -> None:
    files = {path.stem for path in (ROOT / "kernels").glob("*.py")} - {"__init__", "__main__"}
    folders = {path.parent.name for path in (ROOT / "kernels").glob("*/op.py")}

    assert {spec.name for spec in all_specs()} == files | folders


def test_every_spec_names_the_reasons_of_its_tolerance_and_shapes() -> None:
    for spec in all_specs():
        assert spec.tolerance_reason
        assert all(case.why for case in spec.cases)


def test_samples_are_a_function_of_the_generator_alone() -> None:
    def sample() -> torch.Tensor:
        return rms_norm.SPEC.sample_inputs(torch.Generator().manual_seed(3), torch.float32, rms_norm.SPEC.cases[0])[0]

    first = sample()
    torch.manual_seed(99)
    second = sample()

    assert torch.equal(first, second)
