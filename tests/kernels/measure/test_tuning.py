"""The tuner refuses to run without a GPU, continues where it stopped, and writes a table of its rows."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernels import rms_norm
from kernels.framework.configurations import Configuration, launch_options, read_measured
from kernels.framework.spec import KernelSpec
from kernels.measure.tuning import candidates, run_tuning, write_tuning_table
from tests.support.paths import ROOT

CPU = torch.device("cpu")
KERNEL = ("mamba3_scan.turns", "any")


def launching(factor_of_two_warps: float = 1.0) -> KernelSpec:
    """A norm that requests its configuration as a launch does, and is `factor_of_two_warps` too large with two warps."""

    def operation(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        y = rms_norm.rms_norm_reference(x, weight, eps)
        return y * factor_of_two_warps if launch_options(*KERNEL, CPU)["num_warps"] == 2 else y

    return dataclasses.replace(rms_norm.SPEC, name="mamba3_scan", op=operation, dtypes=(torch.float32,))


def rows_of(milliseconds: dict[tuple[int, int], list[float | None]]) -> list[dict[str, object]]:
    """Rows of one launch: for each (warps, stages) its time on each sample, None where it failed."""
    return [
        {
            "kernel": KERNEL[0],
            "shape_class": KERNEL[1],
            "sm": 90,
            "num_warps": warps,
            "num_stages": stages,
            "dtype": "float32",
        }
        | {"case": str(sample), "gpu": "a GPU"}
        | ({"failed": "no"} if time is None else {"forward_backward_ms": {"median": time}})
        for (warps, stages), times in milliseconds.items()
        for sample, time in enumerate(times)
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_without_a_gpu_it_reports_that_and_writes_nothing(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "kernels",
        "tune",
        "--output",
        str(tmp_path / "rows"),
        "--table",
        str(tmp_path / "table"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (1, "", [])
    assert "no CUDA device" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({(4, 1): [1, 9], (8, 2): [0.9, 8.1]}, (8, 2)),
        ({(4, 1): [1, 9], (8, 2): [0.99, 8.95]}, (4, 1)),  # within the noise
        ({(4, 1): [1, 9], (8, 2): [0.1, None]}, (4, 1)),  # fails on a sample
        ({(4, 1): [1, 9], (8, 2): [0.1]}, (4, 1)),  # was not measured on every sample
        ({(4, 1): [None, 9], (2, 1): [3, 9], (2, 3): [2, 9]}, (2, 3)),  # the committed one fails
    ],
)
def test_the_table_holds_the_fastest_candidate_that_failed_nowhere(times, expected, tmp_path: Path) -> None:
    rows, table = rows_of(times), tmp_path / "table.json"

    write_tuning_table(table, rows, ["mamba3_scan"])
    written = table.read_bytes()
    write_tuning_table(table, rows[::-1], ["mamba3_scan"])

    assert read_measured(table) == {(*KERNEL, 90): Configuration(*expected, is_measured=True)}
    assert table.read_bytes() == written


def test_an_operation_that_was_not_finished_stays_as_it_was(tmp_path: Path) -> None:
    assert write_tuning_table(tmp_path / "table.json", rows_of({(4, 1): [2], (8, 2): [1]}), []) == []


def test_a_candidate_with_other_numbers_is_refused_and_named(tmp_path: Path) -> None:
    rows = list(run_tuning([launching(1.01)], tmp_path / "rows", 1e9, seed=1))

    assert rows.pop() == {"finished": "mamba3_scan"}
    assert {row["num_warps"] for row in rows if "failed" in row} == {2}
    assert {row["num_warps"] for row in rows if "forward_backward_ms" in row} == {4, 8}
    assert all("forward is" in str(row["failed"]) for row in rows if row["num_warps"] == 2)


def test_a_run_continues_at_the_first_missing_row(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    first = next(run_tuning([launching()], rows, 1e9, seed=1))
    rest = list(run_tuning([launching()], rows, 1e9, seed=1))

    assert len(rest) == len(candidates(*KERNEL))  # one less, and the end of the operation
    assert [json.loads(line) for line in rows.read_text().splitlines()] == [first, *rest[:-1]]
    assert list(run_tuning([launching()], rows, 0, seed=1)) == []
