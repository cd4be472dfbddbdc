"""Trials of the attention backends: what cannot run, and which one is picked."""

from trainer.config.choices import Precision
from trainer.model.attention_backends import default_choice
from trainer.proof.attention_trials import CPU_TRIAL, AttentionTrial, pick, try_attention


def test_a_trial_reports_what_cannot_run_and_picks_the_fastest_of_the_good() -> None:
    found = try_attention("cpu")

    assert [(trial.choice, trial.is_good) for trial in found] == 2 * [
        ("math", True),
        ("flex", False),
        ("varlen", False),
    ]
    assert found[1].found == "cannot run: the device is cpu"
    assert pick(found, Precision.BFLOAT16) == "math"

    def made(choice: str, eps: float, repeats: bool, apart: bool, milliseconds: float) -> AttentionTrial:
        return AttentionTrial("cuda", "bfloat16", choice, "", eps, repeats, apart, milliseconds)

    slow = made("math", 1.0, True, True, 9.0)
    for bad in (
        made("flex", 9.0, True, True, 1.0),
        made("flex", 1.0, False, True, 1.0),
        made("flex", 1.0, True, False, 1.0),
    ):
        assert pick([slow, bad], Precision.BFLOAT16) == "math"
    assert pick([slow, made("flex", 1.0, True, True, 1.0)], Precision.BFLOAT16) == "flex"
    assert pick([slow], Precision.FLOAT32) is None
    assert sum(CPU_TRIAL.lengths) < CPU_TRIAL.num_tokens, "padding is tried too"
    assert default_choice("cpu", Precision.BFLOAT16) == "math"
