"""The acceptance gates in short form, and that each of them can be red."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.tools.accept import Phase, run_phases
from trainer.proof import acceptance
from trainer.proof.acceptance import GATES, SHORT, AcceptanceRun, GateFailed, run_gates


@pytest.mark.slow  # about fifteen trainings of a few steps, each in a process of its own
def test_the_gates_hold(tiny_store: Store) -> None:
    outcomes = run_gates(tiny_store, tiny_store.ref("tiny", "live") or "", is_short=True)

    assert {outcome.name for outcome in outcomes} == SHORT < GATES.keys()
    assert [outcome for outcome in outcomes if not outcome.passed] == []


def test_a_run_that_differs_turns_a_gate_red(tmp_path: Path) -> None:
    one = dict.fromkeys(acceptance.SAME, "x") | {"steps": 6}

    with pytest.raises(GateFailed, match="certificate differ"):
        acceptance._equal(one, one | {"certificate": "y"})
    run = AcceptanceRun(Store(tmp_path / "store"), "f" * 64, tmp_path / "runs", 2)
    outcome = acceptance._judge("two_runs_are_equal", run)
    assert (outcome.passed, "exit 1" in outcome.detail) == (False, True)


def test_phases_stop_at_the_first_red_and_what_is_to_come_is_not_green() -> None:
    phases = (
        Phase("one", (("-c", "pass"),)),
        Phase("two", to_come="a part"),
        Phase("three", (("-c", "import sys; sys.exit(3)"),)),
        Phase("four", (("-c", "pass"),)),
    )

    assert [verdict.outcome for verdict in run_phases(phases)] == ["green", "not run", "red"]


def test_the_doctor_promises_nothing_where_torch_began_in_another_environment() -> None:
    code = "import json; from trainer.proof.doctor import diagnose; found = diagnose(); "
    code += "print(json.dumps([found.is_promised, found.broken_promises]))"
    line = [sys.executable, "-c", code]
    late = subprocess.run(line, capture_output=True, text=True, check=True, env={"PATH": "", "HOME": "/tmp"}, cwd=".")
    doctor = [sys.executable, "-m", "trainer", "doctor", "--json"]
    right = json.loads(subprocess.run(doctor, capture_output=True, text=True, check=True).stdout)

    is_promised, reasons = json.loads(late.stdout)
    assert is_promised is False
    assert any("PYTHONHASHSEED was not set when this process began" in reason for reason in reasons)
    assert right["is_promised"] is True
    assert {trial["piece"] for trial in right["trials"]} >= {"gemm", "attention", "embedding", "cumsum", "block M"}
