"""Every Triton kernel compiles for sm_90, down to the assembler, on a machine without a GPU."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernels
from kernels.backend import HAS_TRITON

ROOT = Path(__file__).parents[2]


def assembler_is_missing() -> bool:
    if not HAS_TRITON:
        return True
    import triton

    return (
        not (Path(triton.__file__).parent / "backends/nvidia/bin/ptxas").exists()
        and "TRITON_PTXAS_PATH" not in os.environ
    )


def launched_kernels() -> set[str]:
    """Functions under @triton.jit whose names say that they are launched; the others are inlined into these."""
    return {
        f"kernels.{path.stem}.{node.name}"
        for path in Path(kernels.__path__[0]).glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
        if any(ast.unparse(each) == "triton.jit" for each in node.decorator_list)
    }


@pytest.mark.slow
@pytest.mark.skipif(assembler_is_missing(), reason="Triton or its ptxas is not installed")
def test_every_kernel_compiles_for_sm_90(tmp_path: Path) -> None:
    told = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.compile_ahead"],
        cwd=ROOT,
        env=told | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert {name: error for name, error in found.items() if error} == {}
    assert found.keys() == launched_kernels()
