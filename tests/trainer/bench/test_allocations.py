"""Bytes are counted once for each storage, from its allocation to its end, within operations too."""

import torch

from kernels.rms_norm import rms_norm
from trainer.bench.allocations import AllocationWatch


def test_a_storage_counts_once_and_until_its_end() -> None:
    with AllocationWatch() as watch:
        first = torch.zeros(256)
        view = first.view(16, 16)
        assert watch.held == first.nbytes
        second = view + 1
        assert watch.held == 2 * first.nbytes
        del first, second
        assert watch.held == view.nbytes, "a view holds its storage"
        del view
        assert watch.held == 0
        assert watch.mark() == 2 * 1024
        assert watch.peak == 0


def test_what_an_operation_allocates_and_releases_is_in_the_peak_and_numbers_that_are_asked_for_are_given() -> None:
    with torch.device("meta"), AllocationWatch() as watch:
        hidden, weight = torch.zeros(64, 32), torch.ones(32)
        result = rms_norm(hidden, weight, 1e-5)
        assert watch.peak > watch.held >= hidden.nbytes + weight.nbytes + result.nbytes
        assert torch.zeros(3).tolist() == [0.0, 0.0, 0.0]
        assert bool(torch.zeros(()))
