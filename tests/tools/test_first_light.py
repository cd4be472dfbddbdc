"""The first session on a GPU continues after a failure, ends in its time, and resumes where it stopped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.tools import first_light
from tests.tools.first_light import BUDGET, Phase, in_order, main, phases, run_phases

GOOD = Phase("good", ("-c", "print('[1]')"))
BAD = Phase("bad", ("-c", "raise SystemExit('it is bad')"))
LONG = Phase("long", ("-c", "import time; time.sleep(60)"), limit_seconds=1.0)


def rows(path: Path) -> list[tuple[str, str]]:
    return [(row["phase"], row["outcome"]) for row in map(json.loads, path.read_text().splitlines())]


def test_a_failure_hides_nothing_and_only_what_did_not_pass_runs_again(tmp_path: Path, capsys) -> None:
    output = tmp_path / "rows.jsonl"
    arguments = ["--output", str(output), "--budget", "300", "--rehearse"]

    assert main(arguments, (BAD, LONG, GOOD)) == 1
    assert rows(output) == [("bad", "failed"), ("long", "failed"), ("good", "passed")]
    assert json.loads(capsys.readouterr().out)["summary"]["failed"] == ["bad", "long"]

    repaired, new = Phase("bad", GOOD.command), Phase("new", GOOD.command)
    assert main(arguments, (repaired, GOOD, new)) == 0
    assert rows(output)[3:] == [("new", "passed"), ("bad", "passed")]
    assert main(arguments, (repaired, GOOD, new)) == 0
    assert len(rows(output)) == 5


def test_a_row_names_files_from_the_root_of_the_project() -> None:
    (row,) = run_phases([Phase("where", ("-c", f"print('{ROOT}/kernels/x.py')", f"{ROOT}/tests"))], 60)

    assert (row["answer"], row["command"]) == ("kernels/x.py\n", "python -c print('kernels/x.py') tests")


def test_all_of_it_ends_within_the_budget_and_what_was_cut_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_light, "LEAST_SECONDS", 0.5)
    endless = Phase("endless", ("-c", "import time; time.sleep(300)", BUDGET))

    (row,) = run_phases((endless, GOOD), budget_seconds=2.0)

    assert (row["phase"], row["outcome"], row["exit_code"]) == ("endless", "unfinished", None)
    assert in_order((endless, GOOD), [row]) == [endless, GOOD]


def test_every_operation_and_every_file_of_gpu_tests_is_a_phase() -> None:
    names = [phase.name for phase in phases()]

    assert {"parity/m2rnn", "tests/kernels/measure/test_parity_gpu", "doctor", "tune", "bench/training"} <= set(names)
    assert names.index("doctor") < names.index("tune") < names.index("bench/kernels")


@pytest.mark.slow
def test_gpu_tests_are_found_without_the_libraries_of_the_pipeline() -> None:
    script = """
import sys
from tests.conftest import BUILDING
sys.modules.update(dict.fromkeys((*BUILDING, "dagster", "unearth", "rich", "jinja2"), None))
import pytest
sys.exit(pytest.main(["-m", "gpu", "--collect-only", "-p", "no:xdist"]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:]
    assert "tests/kernels/measure/test_parity_gpu.py::" in done.stdout
    assert "error" not in done.stdout.splitlines()[-1]
