"""Rules for a resume are declared once: comparison, message, command line and the documented table follow the list."""

from typing import Any

import pytest

from pipeline.core.errors import TrainingError
from tests.support.paths import ROOT
from trainer.__main__ import build_parser
from trainer.checkpoint.resume_rules import RESUME_RULES, ResumeRule, RuleKind, check_resume, rules_table

ID = "c" * 64
BEFORE: dict[str, Any] = {
    "config": {"batch_rows": 4, "model": {"depth": 2}},
    "seed": 42,
    "snapshot_id": "a" * 64,
    "environment": {"torch": "1", "processor": "x"},
    "tokenizer": "1",
}


def after(**changes: Any) -> dict[str, Any]:
    return {**BEFORE, **changes}


def test_a_field_that_forks_is_returned_with_both_values() -> None:
    now = after(config={"batch_rows": 8, "model": {"depth": 2}})

    assert check_resume(ID, BEFORE, now, ()) == {"config.batch_rows": [4, 8]}


def test_another_environment_is_refused_by_field_unless_it_is_allowed() -> None:
    now = after(environment={"torch": "2", "processor": "x"})

    with pytest.raises(
        TrainingError, match=r"environment\.torch was '1', is now '2'.*--allow-drift environment\.torch"
    ):
        check_resume(ID, BEFORE, now, ())
    for allowed in ("environment", "environment.torch"):
        assert check_resume(ID, BEFORE, now, [allowed]) == {"environment.torch": ["1", "2"]}


def test_another_tokenizer_or_configuration_is_refused_whatever_is_allowed() -> None:
    with pytest.raises(TrainingError, match=r"tokenizer was '1', is now '2'.*start a new run"):
        check_resume(ID, BEFORE, after(tokenizer="2", snapshot_id="b" * 64), ["environment", "snapshot_id"])
    with pytest.raises(TrainingError, match=r"config\.model\.depth was 2, is now 3"):
        check_resume(ID, BEFORE, after(config={"batch_rows": 4, "model": {"depth": 3}}), ["environment"])
    with pytest.raises(TrainingError, match=r"--allow-drift config\.model\.depth: this field may not differ"):
        check_resume(ID, BEFORE, BEFORE, ["config.model.depth"])


def test_a_rule_registered_at_run_time_is_followed_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    now = after(seed=43)

    with pytest.raises(TrainingError, match="seed was 42, is now 43"):
        check_resume(ID, BEFORE, now, ())
    with RESUME_RULES.registered(ResumeRule("seed", RuleKind.ALLOWABLE, "a reason for seeds")):
        with pytest.raises(TrainingError, match=r"seed was 42, is now 43.*--allow-drift seed"):
            check_resume(ID, BEFORE, now, ())
        assert check_resume(ID, BEFORE, now, ["seed"]) == {"seed": [42, 43]}
        assert "| `seed` | forking, if allowed | a reason for seeds |" in rules_table()
        with pytest.raises(SystemExit):
            build_parser().parse_args(["train", "--help"])
        assert "selection, seed" in " ".join(capsys.readouterr().out.split())
    with RESUME_RULES.registered(ResumeRule("seed", RuleKind.ELASTIC, "no bits depend on it")):
        assert check_resume(ID, BEFORE, now, ()) == {}


def test_the_documentation_has_the_table_of_the_rules() -> None:
    assert rules_table() in (ROOT / "docs" / "reproducibility.md").read_text()


def test_a_run_that_began_with_weights_is_resumed_with_them_and_the_option_is_named() -> None:
    begun = after(initial={"checkpoint_id": "d" * 64})

    with pytest.raises(
        TrainingError, match=r"The run began with --init-from d{12}, or the folder of its export: resume"
    ):
        check_resume(ID, begun, after(initial=None), ())
    with pytest.raises(TrainingError, match=r"The run began without --init-from: resume it so"):
        check_resume(ID, after(initial=None), begun, ())
