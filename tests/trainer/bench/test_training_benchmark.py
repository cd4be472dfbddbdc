"""`trainer bench` and the table of a GPU's figures: each figure has rows that fill it, and a dry row never does."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kernels import chunked_cross_entropy
from kernels.framework.spec import ShapeCase
from kernels.mamba3_scan import op as mamba3_scan
from kernels.measure.measurements import timing_environment
from pipeline.core.errors import TrainingError
from tests.benchmarks.trainer.on_gpu import FIGURES, HEAD, section
from tests.support.paths import ROOT
from trainer.bench import training_benchmark as bench

HERE = {"gpu": "NVIDIA H200", "torch": "2", "triton": "3", "driver": "1"}


def operation(spec: Any, case: ShapeCase, implementation: str, milliseconds: float, **more: Any) -> dict[str, Any]:
    names = {"kernel": spec.name, "dtype": "bfloat16", "case": case.label, "implementation": implementation}
    times = {"forward_backward_ms": {"median": milliseconds}, "forward_backward_device_ms": {"median": milliseconds**2}}
    return {**HERE, **names, **times, "extra_bytes": 100, **more}


def operations() -> list[dict[str, Any]]:
    """Rows as `kernels benchmark` names them: ours takes 2 ms, the public scan 3 ms, 5 at the last size; eager 4 ms and 2 kB."""
    scans = mamba3_scan.SPEC.real_cases
    public = next(name for name in mamba3_scan.SPEC.peers if "mamba3_siso" in name)
    eager = next(iter(chunked_cross_entropy.SPEC.peers))
    (case,) = chunked_cross_entropy.SPEC.real_cases
    return [
        *(operation(mamba3_scan.SPEC, each, "kernel", 2) for each in scans),
        *(operation(mamba3_scan.SPEC, each, public, 5 if each is scans[-1] else 3) for each in scans),
        operation(mamba3_scan.SPEC, scans[0], public, 1, dtype="float32"),
        operation(chunked_cross_entropy.SPEC, case, "kernel", 2),
        operation(chunked_cross_entropy.SPEC, case, eager, 4, extra_bytes=2000),
    ]


def trainings() -> list[dict[str, Any]]:
    """Rows of every name that `trainer bench` has on a GPU, with the fields that the dry rows of this file are checked to have."""
    steps = {"step_seconds": 2.0, "mfu": 0.4, "tokens_per_second": 9000.4, "frames": 5, "breaks": 0, "recompiles": 0}
    checks = {
        "determinism-cost": {"cost_fraction": 0.03},
        "packing-invariance": {"num_touched": 0, "num_different_alone": 2, "moved_eps": 1.5},
        "training-in-bfloat16": {
            "different": [],
            "expert_padding_fraction": 0.2,
            "expert_overflow_fraction": 0.0,
        },
    }
    starts = {"warm_start_seconds": 25.0, "cold_start_seconds": 900.0}
    return [{**HERE, "name": row.name, **checks.get(row.name, {**steps, **starts})} for row in bench.rows_of(False)]


def table(folder: Path, rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    (folder / "training.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = section(folder).removeprefix(HEAD).splitlines()
    return {
        line.split(" | ")[0].removeprefix("| "): [cell.strip(" |") for cell in line.split(" | ")[1:]] for line in lines
    }


def test_the_rows_of_one_run_fill_every_figure_of_a_gpu(tmp_path: Path) -> None:
    found = table(tmp_path, operations() + trainings())

    assert list(found) == [figure.name for figure in FIGURES]
    assert {name: (cells[0], cells[2]) for name, cells in found.items()} == {
        "graph/breaks": ("0", "yes"),
        "graph/frames": ("5", "yes"),
        "graph/later": ("0", "yes"),
        "graph/modes": ("1", "yes"),
        "mamba3": ("1.5", "yes"),
        "mamba3/device": ("2.25", "yes"),
        "mamba3/many-heads": ("2.5", "yes"),
        "train-base": ("40", "yes"),
        "train-nam56r": ("9,000", "**no**"),
        "expert-padding": ("20", "yes"),
        "expert-padding/overflow": ("0", "yes"),
        "loss": ("0.5", "yes"),
        "loss/memory": ("0.05", "yes"),
        "state-digest": ("not yet measured", ""),
        "warm-start": ("25", "yes"),
        "warm-start/cold": ("900", ""),
        "packing-invariance": ("2", "**no**"),
        "packing-invariance/moved": ("1.5", ""),
        "determinism-cost": ("3", "yes"),
        "resume-bfloat16": ("0", "yes"),
    }
    assert {cells[3] for name, cells in found.items() if name != "state-digest"} == {"NVIDIA H200"}


@pytest.mark.parametrize("mark", [{"dry": True}, {"gpu": "none"}, {"gpu": "none: Triton's interpreter"}])
def test_a_dry_row_is_not_a_figure(tmp_path: Path, mark: dict[str, Any]) -> None:
    found = table(tmp_path, [{**row, **mark} for row in operations() + trainings()])

    assert {cells[0] for cells in found.values()} == {"not yet measured"}


def test_a_row_that_failed_gives_its_reason_in_place_of_its_figure_and_each_gpu_has_its_own(tmp_path: Path) -> None:
    spent = {**HERE, "gpu": "NVIDIA H100", "name": "train-nam56r", "failed": "torch.OutOfMemoryError: 80 | 80 GiB"}
    absent = [
        {**row, "failed": "not installed: mamba_ssm"} for row in operations() if "mamba_ssm" in row["implementation"]
    ]
    kept = [row for row in operations() if "mamba_ssm" not in row["implementation"]]
    found = table(tmp_path, [*kept, *absent, spent])

    assert found["train-nam56r"][0] == "failed: torch.OutOfMemoryError: 80 / 80 GiB"
    assert found["train-nam56r"][3] == "NVIDIA H100"
    assert found["mamba3"][0] == "failed: not installed: mamba_ssm"
    assert found["loss"][3] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("is_dry", "out", "message"),
    [(True, "docs/benchmarks/training.jsonl", "among the measurements of GPUs"), (False, None, "no CUDA device")],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_dry_rows_are_never_written_among_measured_ones(
    is_dry: bool, out: str | None, message: str, tmp_path: Path
) -> None:
    place = ROOT / out if out else None
    options = argparse.Namespace(dry_run=is_dry, out=place, only=None, measure=False, budget=0.0, store=tmp_path)

    with pytest.raises(TrainingError, match=message):
        bench.bench(options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_an_output_that_holds_no_rows_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"\xff\xfe")
    options = argparse.Namespace(
        dry_run=True, out=tmp_path / "rows", only=None, measure=False, budget=0.0, store=tmp_path
    )

    with pytest.raises(TrainingError, match="line 1 is no row; expected rows that this command wrote"):
        bench.bench(options)


@pytest.mark.parametrize("name", ["folder", "file/below"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_an_output_that_is_no_file_is_refused_before_a_row_is_measured(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    options = argparse.Namespace(
        dry_run=True, out=tmp_path / name, only=None, measure=False, budget=9.0, store=tmp_path
    )

    with pytest.raises(TrainingError, match="it is no file; expected a file of rows"):
        bench.bench(options)


def test_a_run_continues_at_the_first_row_that_its_file_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "training.jsonl"
    rows = [{"name": row.name, **timing_environment()} for row in bench.rows_of(is_dry=True)]
    out.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    options = argparse.Namespace(dry_run=True, out=out, only=None, measure=False, budget=0.0, store=tmp_path)
    answer = bench.bench(options)

    assert answer["rows"] == rows[:2]
    assert capsys.readouterr().err.startswith(f"{rows[2]['name']}: the budget is spent")
