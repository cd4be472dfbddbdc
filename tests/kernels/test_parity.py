"""Every kernel equals its reference, forward and for each gradient: on the GPU or else in Triton's interpreter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.spec import KernelSpec, all_specs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report() -> list[dict[str, object]]:
    """The comparisons of a fresh process: Triton chooses its interpreter when a kernel is decorated, once a process."""
    command = [sys.executable, "-m", "kernels", "parity", "--json"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert completed.stdout, completed.stderr
    return json.loads(completed.stdout)


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_a_kernel_equals_its_reference_forward_and_for_every_gradient(
    spec: KernelSpec, report: list[dict[str, object]]
) -> None:
    results = [result for result in report if result["kernel"] == spec.name]

    failures = [result for result in results if not result["passed"]]
    compared = {(result["dtype"], result["case"]) for result in results}
    declared = {(str(dtype).removeprefix("torch."), case.label) for dtype in spec.dtypes for case in spec.cases}

    assert failures == []
    assert compared == declared
    assert {result["output"] for result in results} > {"forward"}, "no gradient was compared"


def test_every_kernel_file_declares_a_spec_of_its_own_name() -> None:
    machinery = {"__init__", "__main__", "spec", "parity", "backend", "launch", "configurations", "benchmark", "tuning"}
    names = {spec.name for spec in all_specs()}

    files = {path.stem for path in (ROOT / "kernels").glob("*.py")} - machinery
    parts = {stem for stem in files - names if any(stem.startswith(f"{name}_") for name in names)}

    assert names == files - parts


def test_every_spec_says_where_its_tolerance_and_its_shapes_come_from() -> None:
    for spec in all_specs():
        assert spec.tolerance_reason
        assert all(case.why for case in spec.cases)
