"""Signals of a log are judged by their exact text."""

import pytest

from trainer.bench.triage import has_jumped, triage_log
from trainer.config.choices import CompileMode

BREAK = "Graph break in user code at hybrid.py:80"
LISTED = "Skip calling function (reason: sluice-opaque M: the scan over chunks, as published)"


@pytest.mark.parametrize(
    ("lines", "mode", "verdicts"),
    [
        (["native_specialize_impl of a shape"], "fullgraph", ["ignore"]),
        ([BREAK, "print is called"], "budgeted", ["fail"]),
        ([BREAK, LISTED], "budgeted", ["count"]),
        ([BREAK, LISTED], "fullgraph", ["fail"]),
        ([BREAK, LISTED] * 3, "budgeted", ["count", "count", "fail"]),
        (["torch._dynamo hit config.recompile_limit (64)"], "fullgraph", ["fail"]),
        (["torch._dynamo hit config.accumulated_cache_size_limit (256)"], "budgeted", ["fail"]),
        (["compile fullgraph; recompile_limit 64, accumulated_recompile_limit 256"], "fullgraph", []),
        (["out of resource. Ignoring this choice."], "fullgraph", ["warn"]),
    ],
)
def test_a_signal_has_its_verdict(lines: list[str], mode: str, verdicts: list[str]) -> None:
    assert [finding.verdict for finding in triage_log(lines, CompileMode(mode), num_breaks=2)] == verdicts


def test_a_dropped_autotune_choice_fails_only_where_steps_became_slower() -> None:
    assert not has_jumped([1.0, 1.1, 1.0, 1.2])
    assert has_jumped([1.0, 1.1, 2.0, 2.2])
    (finding,) = triage_log(["Ignoring this choice"], CompileMode.FULLGRAPH, has_jumped=True)
    assert finding.verdict == "fail"
