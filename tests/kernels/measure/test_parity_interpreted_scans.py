"""The Triton kernels of the scans keep documents apart, look at no later token, and repeat their bits."""

import json
import subprocess
import sys

import pytest

from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def facts() -> dict[str, dict[str, bool]]:
    command = [sys.executable, "-m", "tests.tools.interpreted_scans"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("claim", ["isolation", "nan stays", "causality", "reruns", "views"])
@pytest.mark.parametrize("scan", ["mamba3_scan", "m2rnn"])
def test_the_kernels_of_a_scan_keep_this_claim(facts: dict[str, dict[str, bool]], scan: str, claim: str) -> None:
    assert facts[scan][claim]


def test_phases_of_a_thousand_radians_keep_the_digits_of_one_turn(facts: dict[str, dict[str, bool]]) -> None:
    assert facts["mamba3_scan"]["phases"]


def test_gradients_hold_where_spans_of_chunks_and_groups_of_heads_end(facts: dict[str, dict[str, bool]]) -> None:
    assert facts["mamba3_scan"]["spans"]


def test_gradients_of_velocities_hold_where_shares_of_queries_and_keys_cancel(
    facts: dict[str, dict[str, bool]],
) -> None:
    assert facts["mamba3_scan"]["velocities"]


def test_kernels_import_without_triton_and_a_gpu_tensor_names_the_reference_mode() -> None:
    script = """
import sys
sys.modules["triton"] = None
import torch
from kernels import rms_norm
from kernels.framework import backend
from kernels.m2rnn import op as m2rnn
from kernels.mamba3_scan import op as mamba3_scan
from torch._subclasses.fake_tensor import FakeTensorMode
assert not backend.HAS_TRITON and not backend.runs_kernel("rms_norm", torch.zeros(1))
with FakeTensorMode(allow_non_fake_inputs=True):
    there = torch.empty(1, device="cuda")
try:
    backend.runs_kernel("rms_norm", there)
except backend.UnavailableKernelError as error:
    assert "reference_mode()" in str(error)
    with backend.reference_mode():
        assert not backend.runs_kernel("rms_norm", there)
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.stdout == "refused\n", done.stderr
