"""On a CUDA device, at sizes of training: two runs of a kernel give the same bits, and the loss keeps its memory small."""

import pytest
import torch

from kernels.chunked_cross_entropy import SPEC, chunked_cross_entropy, cross_entropy_of_all_logits
from kernels.framework.spec import KernelSpec, all_specs
from kernels.measure.parity import leaves, run_with_gradients

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

REAL = [spec for spec in all_specs() if spec.real_cases]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("spec", REAL, ids=lambda spec: spec.name)
def test_two_runs_at_real_sizes_are_equal_bit_for_bit(strict: None, spec: KernelSpec, dtype: torch.dtype) -> None:
    arguments = spec.sample_inputs(torch.Generator("cuda").manual_seed(1), dtype, spec.real_cases[0])

    first, again = (run_with_gradients(spec.op, leaves(arguments)) for _ in range(2))

    assert first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_the_chunked_loss_needs_a_tenth_of_the_memory_of_all_logits() -> None:
    arguments = SPEC.sample_inputs(torch.Generator("cuda").manual_seed(1), torch.bfloat16, SPEC.real_cases[0])
    peaks = {}
    for name, way in (("chunked", chunked_cross_entropy), ("eager", cross_entropy_of_all_logits)):
        fresh = leaves(arguments)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        way(*fresh).backward()
        kept = sum(leaf.grad.nbytes for leaf in fresh[:2])
        peaks[name] = torch.cuda.max_memory_allocated() - before - kept

    assert peaks["chunked"] <= peaks["eager"] / 10, peaks


@pytest.fixture
def strict():
    """Strict deterministic algorithms for one test."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
