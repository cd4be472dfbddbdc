"""The graph budget: frames and breaks are counted in the warm-up, and nothing new is captured after it."""

import pytest
import torch

from pipeline.core.errors import TrainingError
from trainer.compile.graph_budget import Budget, FrameWatch
from trainer.config.choices import CompileBackend

pytestmark = pytest.mark.usefixtures("untouched_torch")


def test_frames_are_counted_by_label_and_judged_against_the_budget() -> None:
    watch = FrameWatch(CompileBackend.EAGER, Budget(1, 0))
    double, halve = (watch.compile(function, is_whole=True) for function in (lambda x: x * 2, lambda x: x / 2))

    watch.label = "double"
    double(torch.ones(2))
    watch.assert_budget(1)
    assert watch.sentence == "1 frames (1 double), 0 graph breaks"

    watch.label = "halve"
    halve(torch.ones(2))
    with pytest.raises(TrainingError, match=r"2 frames \(1 double, 1 halve\).* at most 1 frames, and 0 graph breaks"):
        watch.assert_budget(1)


def test_a_break_is_counted_and_one_after_the_warm_up_is_an_error() -> None:
    watch = FrameWatch(CompileBackend.EAGER, Budget(2, 0))

    def broken(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    watch.end_warm_up()
    watch.check(2)
    watch.restart()
    watch.compile(broken, is_whole=False)(torch.ones(2))
    assert watch.num_breaks == 1
    watch.end_warm_up()
    with pytest.raises(TrainingError, match="step 2: 1 graph breaks; expected 0"):
        watch.check(2)
