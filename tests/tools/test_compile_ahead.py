"""Every Triton kernel compiles for sm_90, down to the assembler, at sizes of training, and fits; on a machine without a GPU."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kernels
from kernels.framework.backend import HAS_TRITON
from kernels.framework.configurations import MEASURED
from tests.support.paths import ROOT
from tests.tools import kernel_page

SHARED_BYTES, REGISTERS, REGISTERS_OF_A_PROCESSOR, THREADS_OF_A_WARP = 227 * 1024, 255, 65_536, 32
"""Limits of a program on sm_90."""
SPILLED_BYTES = 64
"""Limit of the bytes that a thread writes to memory and reads again because registers are spent, unless a GPU chose its warps."""
PAGE = ROOT / "docs" / "kernels.md"


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
        ".".join(("kernels", *path.relative_to(kernels.__path__[0]).with_suffix("").parts, node.name))
        for path in Path(kernels.__path__[0]).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
        if any(ast.unparse(each) == "triton.jit" for each in node.decorator_list)
    }


def has_measured_warps(kernel: str) -> bool:
    """Return whether the warps of a kernel were measured: `mamba3_scan.state` is of `span_state_kernel`."""
    measured = (name.split(".") for name, _, architecture in MEASURED if architecture == 90)
    return any(f".{operation}." in kernel and kernel.endswith(f"_{part}_kernel") for operation, part in measured)


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.compile_ahead", "--real", "--dtype", "bfloat16"],
        cwd=ROOT,
        env=variables | {"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def rows(all_rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in all_rows if "kernel" in row]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(assembler_is_missing(), reason="Triton or its ptxas is not installed"),
]


def test_every_kernel_compiles_for_sm_90(rows: list[dict[str, Any]]) -> None:
    assert [row for row in rows if "failed" in row] == []
    assert {row["kernel"] for row in rows} == launched_kernels()


def test_every_launch_fits_the_gpu_and_its_registers(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["shared_bytes"] <= SHARED_BYTES, row
        assert row["registers"] <= REGISTERS, row
        assert row["registers"] * THREADS_OF_A_WARP * row["num_warps"] <= REGISTERS_OF_A_PROCESSOR, row
        assert row["spilled_bytes"] <= SPILLED_BYTES or has_measured_warps(row["kernel"]), row


def test_the_page_of_the_kernels_is_what_they_move_and_what_the_compiler_says(all_rows: list[dict[str, Any]]) -> None:
    import triton

    page, compiler = PAGE.read_text(), f"Triton {triton.__version__}"
    assert "\n".join(kernel_page.operation_lines(all_rows)) in page
    if f"Compiled by {compiler}:" in page:
        assert kernel_page.with_tables(page, all_rows, compiler) == page


def test_bfloat16_reaches_the_tensor_cores(rows: list[dict[str, Any]]) -> None:
    """The products of the scan are compiled as a GPU runs them, and not as the interpreter would."""
    named = ("span_state_kernel", "span_output_kernel", "span_query_gradient_kernel", "span_key_gradient_kernel")
    products = [row for row in rows if row["kernel"].endswith(named)]

    assert products
    assert all(row["tensor_core_products"] > 0 for row in products), products
