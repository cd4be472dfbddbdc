"""Launch configurations: an entry for every kernel, and a trial that ends with its block."""

from pathlib import Path

import pytest
import torch

from kernels.framework.configurations import MEASURED_PATH, TABLE, Configuration, is_table, launch_options, trial
from kernels.framework.spec import all_specs

CPU = torch.device("cpu")
KERNEL = ("m2rnn.forward", "any")
MORE = b'{"configurations": [], "measured_on": {}, "notes": "precious"}'


def test_a_trial_ends_with_its_block_and_every_kernel_has_an_entry() -> None:
    committed = launch_options(*KERNEL, CPU)
    with trial({KERNEL: Configuration(16, 3)}) as requests:
        assert launch_options(*KERNEL, CPU) == {"num_warps": 16, "num_stages": 3}
        assert requests == {KERNEL}
    assert launch_options(*KERNEL, CPU) == committed
    assert {spec.name for spec in all_specs()} == {key[0].split(".")[0] for key in TABLE}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"name": "my-app"}', b'[{"a": 1}]', b'{"cells": []}', b"<html>", b"\xff", MORE]
)
def test_a_file_that_is_no_table_is_not_taken_for_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)

    assert not is_table(tmp_path / "file")
    assert is_table(tmp_path / "new")
    assert not is_table(tmp_path / "none" / "new")
    assert not is_table(tmp_path)
    assert is_table(MEASURED_PATH)
