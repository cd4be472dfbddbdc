"""The quick tier of the mutations: the rule that makes them, and a few that run in every `make test`."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.contracts.gates import GATES
from tests.mutations.__main__ import mutations
from tests.mutations.judges import of_checks
from tests.mutations.mutation import Kind, Mutation, Status, judge
from tests.mutations.offenses.gate_offenses import GATE_OFFENSES
from tests.mutations.offenses.row_offenses import OF_ROWS
from tests.support.mutations_page import counted, updated_page
from tests.support.paths import ROOT

KILLED = (
    "every_pin_verified/offense",
    "round_trip_is_exact/offense",
    "rows_respect_their_boundaries/offense",
    "training_rows_equal_packed_rows/offense",
    "tokens_are_in_range/offense",
    "splits_are_apart/offense",
)
RULES = ("offense", "measure", "verdict", "stored", "thinned", "first", "source")
CONTROLS = ("control/renamed-variable", "control/times-of-files")  # what nothing at all turns red, these do too


def test_every_gate_has_its_mutations_and_an_offense() -> None:
    found = Counter(each.name.split("/")[0] for each in mutations())

    assert [gate.name for gate in GATES if found[gate.name] < len(RULES)] == []
    assert sorted(set(GATES.names) - GATE_OFFENSES.keys() - OF_ROWS.keys()) == []
    assert sorted((GATE_OFFENSES.keys() | OF_ROWS.keys()) - set(GATES.names)) == []


def test_every_module_that_judges_has_tests() -> None:
    assert [module for module in of_checks.JUDGES if not of_checks.tests_of(module)] == []


def test_a_new_gate_has_its_mutations_by_itself() -> None:
    before = {each.name for each in mutations()}
    with GATES.registered(replace(GATES["round_trip_is_exact"], name="a_new_gate")):
        new = {each.name for each in mutations()} - before

    assert new == {f"a_new_gate/{rule}" for rule in RULES}


def test_the_list_is_long_enough_and_its_names_differ() -> None:
    found = mutations()
    number = Counter(each.kind is Kind.CONTROL for each in found)

    assert len({each.name for each in found}) == len(found)
    assert number[False] >= 150
    assert number[True] >= 10


@pytest.mark.parametrize(
    ("red", "status"),
    [
        ([], Status.SURVIVED),
        (["gate:one is 3, must be 0"], Status.KILLED),
        (["gate:two"], Status.KILLED_BY_ANOTHER),
        (["gate:two", "canary:a/b"], Status.KILLED),
        (["gate:one", "not-planted no such name"], Status.NOT_PLANTED),
    ],
)
def test_a_mutation_is_killed_by_what_was_expected_only(red: list[str], status: Status) -> None:
    mutation = Mutation("m", Kind.STAGE, "", ("gate:one", "canary:*"), lambda bench: None)

    assert judge(mutation, red, 0.0).status is status


def test_a_control_holds_if_nothing_went_red() -> None:
    control = Mutation("c", Kind.CONTROL, "", (), lambda bench: None)

    assert judge(control, [], 0.0).holds
    assert not judge(control, ["gate:one"], 0.0).holds


def test_the_page_keeps_rows_of_what_was_not_run_again_and_drops_those_that_are_gone(tmp_path: Path) -> None:
    page = tmp_path / "mutations.md"
    kinds = dict.fromkeys(("a", "b|c", "d"), Kind.STAGE) | {"control/x": Kind.CONTROL}
    names = (name for name in kinds if name != "d")
    first, second, third = (Mutation(name, kinds[name], "a fault", ("gate:*",), lambda bench: None) for name in names)
    outcomes = [judge(first, [], 0), judge(second, ["gate:one is 3"], 0), judge(third, [], 0)]
    page.write_text(updated_page(page, outcomes, kinds) + "\n## Read by people\n")
    again = updated_page(page, [judge(first, ["gate:two"], 0)], kinds)

    assert "Killed 1 of 2 planted, 0 killed by another, 1 survived" in page.read_text()
    assert "Killed 2 of 2 planted, 0 killed by another, 0 survived" in again
    assert "1 of 1 controls survived; 1 of 4 not run yet." in again
    assert again.endswith("\n## Read by people\n")
    assert "| `a` |" not in updated_page(page, [], {"d": Kind.STAGE})
    assert counted(page, kinds) == (3, 1, 1, 1, 1, 1)
    page.write_text(again)
    assert counted(page, {"b|c": Kind.STAGE}) == (1, 1, 0, 0, 0, 0)


@pytest.mark.slow
def test_the_quick_tier_is_killed_and_its_controls_stay_green(tmp_path: Path) -> None:
    line = [
        sys.executable,
        "-m",
        "tests.mutations",
        *KILLED,
        *CONTROLS,
        "--json",
        "--state",
        str(tmp_path / "state.json"),
    ]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    found = {each["name"]: each for each in json.loads(done.stdout)["outcomes"]}

    assert {name: found[name]["status"] for name in KILLED} == dict.fromkeys(KILLED, Status.KILLED), done.stderr
    assert {name: found[name]["red"] for name in CONTROLS} == {name: [] for name in CONTROLS}
    assert done.returncode == 0
