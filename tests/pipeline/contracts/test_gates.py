"""Every gate can pass and can fail, by its own examples; and no gate passes for lack of data."""

import re
from dataclasses import replace

import pytest
from pydantic import ValidationError

from pipeline.build.recipes import RECIPES, CorpusParams, recipe_document
from pipeline.contracts.gates import GATES, NONE, REMEDIES, Gate, LimitComparison, judge, refuse_blocked, summary
from pipeline.core.errors import BlockedError, MeasureError
from pipeline.core.settings.fields import field_at
from pipeline.stages.stages import STAGES


def params_of(gate: Gate):
    return CorpusParams().of_stage(gate.stage)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_gate_passes_its_passing_example_and_fails_its_failing_one(gate: Gate) -> None:
    subjects = {gate.subjects: 1.0} if gate.subjects else {}
    assert gate.judge({**subjects, gate.measure: gate.limit.passing}, params_of(gate)).outcome == "passed"
    assert not gate.judge({**subjects, gate.measure: gate.limit.failing}, params_of(gate)).passed


@pytest.mark.parametrize("gate", [gate for gate in GATES if gate.subjects], ids=lambda gate: gate.name)
def test_a_gate_without_subjects_says_so_and_is_not_counted_as_passed(gate: Gate) -> None:
    verdict = gate.judge({gate.measure: gate.limit.passing, gate.subjects: 0}, params_of(gate))

    assert verdict.outcome == "nothing to judge"
    assert "nothing to judge" in verdict.sentence
    assert summary([verdict, verdict]) == "0 of 2 gates passed, 2 had nothing to judge"
    failed, warned = (replace(verdict, passed=False, blocking=is_blocking) for is_blocking in (True, False))
    assert summary([warned, failed, verdict]) == "0 of 3 gates passed, 1 failed, 1 warned, 1 had nothing to judge"
    refuse_blocked([verdict], "stage")
    with pytest.raises(MeasureError, match=gate.subjects):
        gate.judge({gate.measure: gate.limit.passing}, params_of(gate))


def test_a_failure_without_subjects_is_a_failure() -> None:
    gate = GATES["commits_are_in_order"]

    assert gate.judge({gate.measure: 1, gate.subjects: 0}, params_of(gate)).outcome == "failed"


def test_every_stage_has_gates_and_every_gate_has_a_stage() -> None:
    assert {gate.stage for gate in GATES} == set(STAGES.names)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_limit_that_names_a_field_is_a_number_in_every_recipe(recipe) -> None:
    for gate in GATES:
        assert gate.limit.number(recipe.params.of_stage(gate.stage)) >= 0


@pytest.mark.parametrize(
    "gate", [gate for gate in GATES if isinstance(gate.limit.value, str)], ids=lambda gate: gate.name
)
def test_a_limit_at_which_a_gate_cannot_fail_is_refused(gate: Gate) -> None:
    params, name = params_of(gate), str(gate.limit.value)
    cannot_fail = 1 if gate.limit.comparison is LimitComparison.AT_MOST else 0

    with pytest.raises(ValidationError, match=rf"{name}\n.* should be (less than 1|greater than 0)"):
        type(params).model_validate({**dict(params), name: cannot_fail})


def test_every_stage_has_a_gate_that_no_row_is_lost() -> None:
    assert {gate.stage for gate in GATES if gate.measure == "num_rows_not_conserved"} == set(STAGES.names)


def test_a_missing_measure_is_an_error_that_names_those_that_exist() -> None:
    with pytest.raises(
        MeasureError,
        match=r"reports no measure num_files_without_revision; expected one of num_failed_sources, rows_in",
    ):
        judge("collect", {"rows_in": 1.0, "num_failed_sources": 0.0}, CorpusParams().collect)


def test_a_measure_that_is_not_a_number_does_not_pass() -> None:
    gate = Gate("test", "collect", "measure", NONE, "")

    assert not gate.judge({"measure": float("nan")}, CorpusParams().collect).passed


def test_a_blocked_stage_says_name_value_and_limit() -> None:
    gate = GATES["round_trip_is_exact"]
    verdict = gate.judge({gate.measure: 3}, params_of(gate))

    with pytest.raises(
        BlockedError, match="round_trip_is_exact BLOCKED: num_round_trip_failures is 3, must be at most 0"
    ):
        refuse_blocked([verdict], "stage verify")


def test_every_gate_blocks_but_those_that_the_use_of_a_vocabulary_decides() -> None:
    assert [gate.name for gate in GATES if not gate.blocking] == ["vocabulary_is_used"]


def test_a_verdict_as_json_has_its_outcome() -> None:
    gate = GATES["rows_are_worth_reading"]
    verdict = gate.judge({gate.measure: 0.4}, params_of(gate))

    found = verdict.as_json()
    assert (found["gate"], found["measured"], found["limit"], found["comparison"]) == (gate.name, 0.4, 0.5, "at least")
    assert (found["passed"], found["outcome"]) == (False, "failed")


def test_a_warning_blocks_nothing() -> None:
    gate = replace(GATES["every_pin_verified"], blocking=False)

    refuse_blocked([gate.judge({gate.measure: 1}, params_of(gate))], "stage collect")


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_gate_that_fails_names_the_field_by_which_what_is_small_passes_wherever_it_was_set(gate: Gate) -> None:
    subjects = {gate.subjects: 1} if gate.subjects else {}
    verdict = replace(gate, blocking=True).judge({**subjects, gate.measure: gate.limit.failing}, params_of(gate))
    with pytest.raises(BlockedError) as refusal:
        refuse_blocked([verdict], "a stage")

    said = str(refusal.value)
    fields = re.findall(r" field `((?:held_out|\w+\.)[\w.]*)`", said)
    is_limit = isinstance(gate.limit.value, str)
    assert bool(fields) == (is_limit or " field `" in REMEDIES.get(gate.name, ""))
    assert said.count("as the recipe says, unless `--set`, the launchpad or the list of corpora sets it") == bool(
        fields
    )
    assert "of the recipe" not in said, "a launch may have set it"
    assert [name for name in fields if field_at(recipe_document(), name.split(".")) is None] == []


def test_remedies_are_of_gates() -> None:
    assert REMEDIES.keys() <= set(GATES.names)
