"""Shares of kernels: the operations of a step, the slowest first, and no more of the time than there is."""

import torch

from trainer.bench.kernel_shares import measure_kernel_shares


def test_a_step_of_one_large_product_is_that_product() -> None:
    left = torch.ones((800, 800))
    found = measure_kernel_shares(lambda: (left @ left).relu(), "cpu")

    assert (found[0]["kernel"], found[0]["launches"]) == ("aten::mm", 1)
    assert found[0]["share"] > 0.3
    assert sum(row["share"] for row in found) <= 1.001
    assert [row["milliseconds"] for row in found] == sorted((row["milliseconds"] for row in found), reverse=True)
