"""The backend of a call: plain torch on a CPU, in reference mode and for float64; other dtypes are refused."""

import ast

import pytest
import torch

from kernels.framework.backend import is_interpreting, reference_mode, runs_kernel
from tests.support.paths import ROOT


def test_a_kernel_runs_on_a_cpu_in_the_interpreter_alone() -> None:
    assert runs_kernel("norm", torch.ones(2)) is is_interpreting()
    assert not runs_kernel("norm", torch.ones(2, dtype=torch.float64))


def test_reference_mode_ends_with_its_block_also_at_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.framework.backend.is_interpreting", lambda: True)
    with reference_mode():
        assert not runs_kernel("norm", torch.ones(2))
    with pytest.raises(KeyError), reference_mode():
        raise KeyError
    assert runs_kernel("norm", torch.ones(2))


def test_a_dtype_that_kernels_do_not_take_is_refused_by_operation_and_name() -> None:
    with pytest.raises(TypeError, match=r"norm: found torch\.int64, expected one of float32, bfloat16"):
        runs_kernel("norm", torch.ones(2), torch.ones(2, dtype=torch.int64))


def test_no_kernel_subtracts_a_value_from_itself() -> None:
    """A compiler fuses `x - x` with the product that made x, as it may, and what is left is its rounding error and no zero."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "kernels").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and ast.dump(node.left) == ast.dump(node.right)
    ]

    assert found == []
