"""The same claims on a CUDA device, where there is one."""

import json
import subprocess
import sys

import pytest
import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def test_every_kernel_agrees_with_its_reference_on_the_device() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kernels", "parity", "--json"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert all(result["passed"] for result in json.loads(done.stdout))
