"""A loss spike is judged by the good steps before it."""

import math

import pytest

from trainer.checkpoint.certificate import History
from trainer.train.loss_spike import is_loss_spike


def history_of(losses: list[float], skipped: tuple[int, ...] = ()) -> History:
    history = History()
    for place, loss in enumerate(losses):
        history.extend(bytes(32), loss, place in skipped, None)
    return history


@pytest.mark.parametrize(
    ("loss", "norm", "history", "expected"),
    [
        (math.nan, 1.0, history_of([]), True),
        (1.0, math.inf, history_of([]), True),
        (50.0, 1.0, history_of([2.0] * 19), False),
        (6.1, 1.0, history_of([2.0] * 20), True),
        (5.9, 1.0, history_of([2.0] * 20), False),
        (6.1, 1.0, history_of([2.0] * 20 + [math.nan, 90.0], skipped=(20, 21)), True),
    ],
)
def test_a_step_is_judged_by_the_recent_good_ones(loss: float, norm: float, history: History, expected: bool) -> None:
    assert is_loss_spike(loss, norm, history, spike_factor=3.0) is expected
