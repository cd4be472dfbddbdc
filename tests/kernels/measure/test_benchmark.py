"""The benchmark reports that it needs a GPU, and continues where it stopped."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from kernels import chunked_cross_entropy, rms_norm
from kernels.framework.spec import KernelSpec, all_specs
from kernels.mamba3_scan import op as mamba3_scan
from kernels.measure.benchmark import _implementations, _timings, run_benchmark, smallest_case
from kernels.measure.parity import leaves
from tests.support.paths import ROOT


def benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernels", "--json", "--only", "rms_norm", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_without_a_gpu_it_reports_that_and_fails(tmp_path: Path) -> None:
    done = benchmark("--output", str(tmp_path / "rows.jsonl"))

    assert done.returncode == 1
    assert "no CUDA device" in done.stderr
    assert json.loads(done.stdout)["message"] in done.stderr, "one value, and no row"


def test_an_output_that_holds_no_rows_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"kernel": "a"}\n')
    done = benchmark("--interpret", "--output", str(tmp_path / "rows.jsonl"))

    assert done.returncode == 2
    assert "line 1 is no row; expected rows that this command wrote" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_a_row_of_the_interpreter_is_never_stored_among_those_of_gpus() -> None:
    done = benchmark("--interpret", "--output", "docs/benchmarks/kernels.jsonl")

    assert done.returncode == 2
    assert "among the measurements of GPUs" in done.stderr
    assert json.loads(done.stdout)["error"] == "UsageError"


def test_a_row_without_an_end_fails_and_the_next_one_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.measure.benchmark.ROW_SECONDS", 0.1)
    spec = dataclasses.replace(rms_norm.SPEC, op=lambda *arguments: time.sleep(60), dtypes=(torch.float32,))
    rows = run_benchmark([spec], tmp_path / "rows.jsonl", budget_seconds=1e9, seed=1)
    first = next(rows)
    monkeypatch.undo()
    second = next(rows)

    assert first["failed"] == "no end within 0 s"
    assert second["implementation"] == "reference"
    assert "failed" not in second


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_each_reference_is_timed_in_every_dtype_of_its_kernel(spec: KernelSpec) -> None:
    for dtype in spec.dtypes:
        arguments = leaves(spec.sample_inputs(torch.Generator().manual_seed(1), dtype, smallest_case(spec)))
        row = _timings(lambda: spec.reference, lambda arguments=arguments: arguments, "cpu")

        assert "failed" not in row, (dtype, row)


def test_a_row_that_the_budget_cuts_is_left_for_the_next_run(tmp_path: Path) -> None:
    spec = dataclasses.replace(rms_norm.SPEC, op=lambda *arguments: time.sleep(60))

    assert list(run_benchmark([spec], tmp_path / "rows.jsonl", budget_seconds=0.1, seed=1)) == []
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_reference_that_loops_over_tokens_is_not_compiled() -> None:
    assert [spec.name for spec in all_specs() if spec.has_serial_reference] == ["m2rnn", "mamba3_scan"]
    assert "compiled reference" not in _implementations(mamba3_scan.SPEC, "cuda")
    assert "compiled reference" in _implementations(rms_norm.SPEC, "cuda")


def test_a_run_continues_at_the_first_missing_row_and_names_its_environment(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    spec = dataclasses.replace(rms_norm.SPEC, op=rms_norm.rms_norm_reference)

    first = next(run_benchmark([spec], rows, budget_seconds=1e9, seed=1))
    second = next(run_benchmark([spec], rows, budget_seconds=1e9, seed=1))
    spent = list(run_benchmark([spec], rows, budget_seconds=0, seed=1))

    assert [first["implementation"], second["implementation"], spent] == ["kernel", "reference", []]
    assert [json.loads(line) for line in rows.read_text().splitlines()] == [first, second]
    times = {"forward_ms", "forward_backward_ms", "forward_backward_device_ms"}
    assert {"gpu", "torch", "triton", "extra_bytes", *times} <= first.keys()
    assert first.get("dry", False) is not torch.cuda.is_available()


@pytest.mark.skipif(
    any(map(importlib.util.find_spec, ("mamba_ssm", "fla", "liger_kernel", "cut_cross_entropy"))),
    reason="a peer is here",
)
def test_a_peer_that_is_absent_is_a_row_that_says_so() -> None:
    peers = {**mamba3_scan.SPEC.peers, **chunked_cross_entropy.SPEC.peers}
    rows = {name: _timings(make, lambda: (), "cpu") for name, make in peers.items() if not name.startswith("torch")}

    absent = {"mamba_ssm": "mamba_ssm", "fla": "fla", "liger": "liger_kernel", "cut_cross_entropy": "cut_cross_entropy"}
    assert {name.split()[0]: row["failed"] for name, row in rows.items()} == {
        name: f"not installed: {library}" for name, library in absent.items()
    }
