"""Scores as sentences. Scores of trained checkpoints are in the tests of the training loop and of the command line."""

from trainer.inference.scores import sentences


def test_a_score_without_data_is_named_and_never_printed_as_a_number() -> None:
    without = {"bits_per_byte": None, "num_bytes": 0, "exact_middle_fraction": None, "num_middles": 0}
    found = sentences({**without, "compiled_fraction": None, "compile_verdicts": {"no compiler": 2}})

    assert found == [
        "held-out bits per byte: no held-out rows over 0 bytes",
        "middles infilled exactly: none to infill of 0",
        "completions that compile: unknown (2 no compiler)",
    ]


def test_scores_are_rounded() -> None:
    scored = {"bits_per_byte": 2.34567, "num_bytes": 1234, "exact_middle_fraction": 0.125, "num_middles": 8}
    found = sentences({**scored, "compiled_fraction": 0.5, "compile_verdicts": {"compiled": 1, "did not compile": 1}})

    assert "2.3457 over 1,234 bytes" in found[0]
    assert "12.5% of 8" in found[1]
    assert "50.0% (1 compiled, 1 did not compile)" in found[2]
