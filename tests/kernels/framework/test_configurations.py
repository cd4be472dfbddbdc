"""Launch configurations: an entry for every kernel, and a trial that ends with its block."""

import torch

from kernels.framework.configurations import TABLE, Configuration, launch_options, trial
from kernels.framework.spec import all_specs

CPU = torch.device("cpu")
KERNEL = ("m2rnn.forward", "any")


def test_a_trial_ends_with_its_block_and_every_kernel_has_an_entry() -> None:
    committed = launch_options(*KERNEL, CPU)
    with trial({KERNEL: Configuration(16, 3)}) as requests:
        assert launch_options(*KERNEL, CPU) == {"num_warps": 16, "num_stages": 3}
        assert requests == {KERNEL}
    assert launch_options(*KERNEL, CPU) == committed
    assert {spec.name for spec in all_specs()} == {key[0].split(".")[0] for key in TABLE}
