"""The environment of a run: what is set enters it, and what is off is left out, so that adding an entry moves nothing."""

import platform

import numpy as np
import pytest
import torch

from trainer.checkpoint.environment import describe_environment


def test_an_environment_names_versions_machine_and_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    found = describe_environment("cpu", 3, compiled="fullgraph, eager", attention="math")

    assert (found["torch"], found["numpy"], found["python"]) == (
        torch.__version__,
        np.__version__,
        platform.python_version(),
    )
    assert (found["num_threads"], found["compiled"], found["MKL_CBWR"]) == (3, "fullgraph, eager", "COMPATIBLE")
    assert found["processor"]
    assert "attention" not in found, "on a CPU it is part of the configuration alone"
    assert "compiled" not in describe_environment("cpu", 3)
