"""`trainer bench` and the table of a GPU's figures: each figure has rows that fill it, and a dry row never does."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kernels import chunked_cross_entropy
from kernels.framework.spec import ShapeCase
from kernels.mamba3_scan import op as mamba3_scan
from kernels.measure.rows import timing_environment
from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.benchmarks.trainer.on_gpu import FIGURES, HEAD, section
from tests.support.paths import ROOT
from trainer.bench import rows as bench
from trainer.bench.device_checks import CheckSizes, measure_packing, measure_training
from trainer.bench.step_timing import measure_determinism_cost, measure_steps

HERE = {"gpu": "NVIDIA H200", "torch": "2", "triton": "3", "driver": "1"}


@pytest.fixture(autouse=True)
def _untouched_torch():
    before = torch._dynamo.config.save_config()
    inductor = torch._inductor.config.deterministic
    torch._dynamo.reset()
    yield
    torch._dynamo.config.load_config(before)
    torch._inductor.config.deterministic = inductor
    torch.use_deterministic_algorithms(False)
    torch._dynamo.reset()


def operation(spec: Any, case: ShapeCase, implementation: str, milliseconds: float, **more: Any) -> dict[str, Any]:
    names = {"kernel": spec.name, "dtype": "bfloat16", "case": case.label, "implementation": implementation}
    return {**HERE, **names, "forward_backward_ms": {"median": milliseconds}, "extra_bytes": 100, **more}


def operations() -> list[dict[str, Any]]:
    """Rows as `kernels benchmark` names them: ours takes 2 ms, the public scan 3 ms, 5 at the last size; eager 4 ms and 2 kB."""
    scans = mamba3_scan.SPEC.real_cases
    public = next(name for name in mamba3_scan.SPEC.peers if "mamba3_siso" in name)
    (eager,) = chunked_cross_entropy.SPEC.peers
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
    steps = {"step_seconds": 2.0, "mfu": 0.4, "tokens_per_second": 9000.0, "frames": 5, "breaks": 0, "recompiles": 0}
    checks = {
        "determinism-cost": {"cost_fraction": 0.03},
        "packing-invariance": {"num_touched": 0, "num_different_alone": 2, "moved_eps": 1.5},
        "training-in-bfloat16": {
            "different": [],
            "expert_padding_fraction": 0.2,
            "expert_overflow_fraction": 0.001,
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
        "mamba3/many-heads": ("2.5", "yes"),
        "train-base": ("40", "yes"),
        "train-nam56r": ("9,000", "**no**"),
        "expert-padding": ("20", "yes"),
        "expert-padding/overflow": ("0.1", "yes"),
        "loss": ("0.5", "yes"),
        "loss/memory": ("0.05", "yes"),
        "warm-start": ("25", "yes"),
        "warm-start/cold": ("900", ""),
        "packing-invariance": ("2", "**no**"),
        "packing-invariance/moved": ("1.5", ""),
        "determinism-cost": ("3", "yes"),
        "resume-bfloat16": ("0", "yes"),
    }
    assert {cells[3] for cells in found.values()} == {"NVIDIA H200"}


@pytest.mark.parametrize("mark", [{"dry": True}, {"gpu": "none"}, {"gpu": "none: Triton's interpreter"}])
def test_a_dry_row_is_no_figure(tmp_path: Path, mark: dict[str, Any]) -> None:
    found = table(tmp_path, [{**row, **mark} for row in operations() + trainings()])

    assert {cells[0] for cells in found.values()} == {"not yet measured"}


def test_a_row_that_failed_says_why_in_the_place_of_its_figure_and_each_gpu_has_its_own(tmp_path: Path) -> None:
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


def test_a_dry_step_row_has_the_fields_of_the_table_and_says_that_it_is_dry() -> None:
    case = replace(bench._shrunk(bench.CASES[1]), num_rows=1, length=16)
    row = measure_steps(case)

    assert (row["name"], row["dry"], row["gpu"], row["mfu"]) == ("dry-train-base", True, "none", None)
    assert (row["frames"], row["breaks"], row["recompiles"]) == (4, 0, 0)
    assert row["tokens_per_second"] > 0


def test_the_cost_of_determinism_is_measured_in_turns_of_one_model() -> None:
    row = measure_determinism_cost(replace(bench._shrunk(bench.STRICT_CASE), num_rows=1, length=16))

    assert len(row["pairs"]) == 5
    assert all(len(pair) == 2 for pair in row["pairs"])
    assert row["cost_fraction"] > -1


def test_packed_documents_come_out_as_alone_and_a_leak_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = replace(CheckSizes.dry(), lengths=(5, 1, 9))
    row = measure_packing(sizes)
    assert (row["num_touched"], row["num_different_alone"], row["dtype"]) == (0, 0, "bfloat16")

    one = "trainer.model.hybrid.describe_rows"
    honest = sys.modules["trainer.model.hybrid"].describe_rows
    monkeypatch.setattr(one, lambda ids, documents, *more: honest(ids, torch.ones_like(documents), *more))
    leaking = measure_packing(sizes)
    assert leaking["num_touched"] > 0


@pytest.mark.parametrize(
    ("is_dry", "out", "words"),
    [(True, "docs/benchmarks/training.jsonl", "among the measurements of GPUs"), (False, None, "no CUDA device")],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_dry_rows_never_lie_among_measured_ones(is_dry: bool, out: str | None, words: str) -> None:
    place = ROOT / out if out else None
    options = argparse.Namespace(dry_run=is_dry, out=place, only=None, measure=False, budget=0.0, store=None)

    with pytest.raises(TrainingError, match=words):
        bench.bench(options)


def test_a_run_goes_on_at_the_first_row_that_its_file_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "training.jsonl"
    rows = [{"name": row.name, **timing_environment()} for row in bench.rows_of(is_dry=True)]
    out.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    options = argparse.Namespace(dry_run=True, out=out, only=None, measure=False, budget=0.0, store=None)
    answer = bench.bench(options)

    assert answer["rows"] == rows[:2]
    assert capsys.readouterr().err.startswith(f"{rows[2]['name']}: the budget is spent")


def test_a_compiled_training_in_bfloat16_resumes_to_its_bits_and_says_how_its_experts_were_filled(
    tiny_store: Store,
) -> None:
    sizes = replace(CheckSizes.dry(), steps=(1, 2), options=(*CheckSizes.dry().options, "--batch-rows", "1"))
    options = argparse.Namespace(store=tiny_store.root, corpus="tiny", snapshot="live")
    row = measure_training(sizes, options)

    assert (row["num_steps"], row["num_processes"], row["different"]) == (2, 2, [])
    assert "certificate" in row["compared"]
    assert 0 < row["expert_padding_fraction"] < 1
    assert 0 <= row["expert_overflow_fraction"] < 0.5
