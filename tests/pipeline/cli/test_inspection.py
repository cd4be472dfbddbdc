"""Commands that change nothing answer what is declared and stored."""

from collections.abc import Callable
from typing import Any

from pipeline.contracts.gates import GATES
from pipeline.stages.stages import STAGES

Run = Callable[..., tuple[int, Any, str]]


def test_gates_lists_every_gate(run: Run) -> None:
    code, answer, _ = run("gates")

    assert code == 0
    assert [row["name"] for row in answer] == [gate.name for gate in GATES]
    assert set(answer[0]) == {"name", "stage", "blocking", "measure", "limit", "why"}


def test_config_names_the_fingerprint_of_each_stage(run: Run) -> None:
    code, answer, _ = run("config", "--recipe", "quick")

    assert code == 0
    assert set(answer["stages"]) == set(STAGES.names)
    assert answer["params"]["tokenize"]["row_length"] == 512


def test_show_lists_refs_and_opens_objects(run: Run) -> None:
    run("build", "--recipe", "tiny", "--workers", "1", "--until", "collect")
    _, refs, _ = run("show", "--corpus", "tiny")
    code, stored, _ = run("show", refs["refs"]["collect"])

    assert code == 0
    assert stored["kind"] == "collect/stage"
    assert stored["report"]["rows_in"] > 0
    assert run("show", "0" * 64)[0] == 1
