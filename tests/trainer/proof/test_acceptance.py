"""The acceptance gates in short form, and that each of them can be red."""

from pathlib import Path

import pytest

from pipeline.core.errors import ParamsError
from pipeline.store.store import Store
from tests.tools.accept import Phase, run_phases
from trainer.proof import acceptance
from trainer.proof.acceptance import ACCEPTANCE_GATES, AcceptanceGate, AcceptanceRun, GateFailed, run_gates


@pytest.mark.slow  # trainings of a few steps, two of them in processes of their own
def test_the_gates_hold(tiny_store: Store) -> None:
    outcomes = run_gates(tiny_store, tiny_store.ref("tiny", "live") or "", is_short=True)

    assert [outcome.name for outcome in outcomes] == [gate.name for gate in ACCEPTANCE_GATES if gate.is_short]
    assert 0 < len(outcomes) < len(ACCEPTANCE_GATES)
    assert [outcome for outcome in outcomes if not outcome.passed] == []


def test_a_run_that_differs_turns_a_gate_red(tmp_path: Path) -> None:
    one = dict.fromkeys(acceptance.SAME, "x") | {"steps": 6}

    with pytest.raises(GateFailed, match="certificate differ"):
        acceptance._equal(one, one | {"certificate": "y"})
    run = AcceptanceRun(Store(tmp_path / "store"), "f" * 64, tmp_path / "runs", 2)
    outcome = acceptance._judge(acceptance.two_runs_are_equal, run)
    assert (outcome.passed, "exit 1" in outcome.detail) == (False, True)


def test_phases_stop_at_the_first_red_and_a_future_part_is_not_green() -> None:
    phases = (
        Phase("one", (("-c", "pass"),)),
        Phase("two", to_come="a part"),
        Phase("three", (("-c", "import sys; sys.exit(3)"),)),
        Phase("four", (("-c", "pass"),)),
    )

    assert [verdict.outcome for verdict in run_phases(phases)] == ["green", "not run", "red"]


def test_a_gate_is_declared_once_and_an_unknown_one_is_refused(tiny_store: Store) -> None:
    def always_red(run: AcceptanceRun) -> str:
        raise GateFailed(f"as declared, over {run.num_steps} steps")

    snapshot_id, seen = tiny_store.ref("tiny", "live") or "", []
    with ACCEPTANCE_GATES.registered(AcceptanceGate("always_red", always_red)):
        (outcome,) = run_gates(tiny_store, snapshot_id, only=["always_red"], on_outcome=seen.append)

    assert (outcome.passed, outcome.detail) == (False, "as declared, over 12 steps")
    assert seen == [outcome]
    with pytest.raises(ParamsError, match="acceptance gate always_red: it is not registered; expected one of two_runs"):
        run_gates(tiny_store, snapshot_id, only=["always_red"])


def test_a_damaged_file_that_is_read_turns_its_gate_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(b"{}")
    monkeypatch.setattr(acceptance, "load", lambda store, checkpoint_id: None)

    with pytest.raises(GateFailed, match=r"a damaged state\.json was not refused by name: None"):
        acceptance._refuse_damage(Store(tmp_path), "f" * 64, file)
