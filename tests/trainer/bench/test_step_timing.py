"""Step timing: the fields of its rows on a CPU, where timings mean nothing."""

from dataclasses import replace

import pytest

from trainer.bench import training_benchmark as bench
from trainer.bench.step_timing import measure_determinism_cost, measure_steps

pytestmark = pytest.mark.usefixtures("untouched_torch")


def test_a_dry_step_row_has_the_fields_of_the_table_and_is_marked_as_dry() -> None:
    case = replace(bench._shrunk(bench.CASES[1]), num_rows=1, length=16)
    row = measure_steps(case)

    assert (row["name"], row["dry"], row["gpu"], row["mfu"]) == ("dry-train-base", True, "none", None)
    assert (row["frames"], row["breaks"], row["recompiles"]) == (4, 0, 0)
    assert row["tokens_per_second"] > 0
    assert row["slowest_kernels"][0]["milliseconds"] > 0


def test_the_cost_of_determinism_is_measured_in_turns_of_one_model() -> None:
    row = measure_determinism_cost(replace(bench._shrunk(bench.STRICT_CASE), num_rows=1, length=16))

    assert len(row["pairs"]) == 5
    assert all(len(pair) == 2 for pair in row["pairs"])
    assert row["cost_fraction"] > -1
