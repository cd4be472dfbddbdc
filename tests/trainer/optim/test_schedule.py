"""The learning rate of each step."""

import math

import pytest

from trainer.config.model import OptimizerConfig, Schedule
from trainer.optim.schedule import learning_rate


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        (Schedule.COSINE, 0, 0.25),
        (Schedule.COSINE, 3, 1.0),
        (Schedule.COSINE, 4, 1.0),
        (Schedule.COSINE, 54, 0.1 + 0.9 * 0.5),
        (Schedule.COSINE, 29, 0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2),
        (Schedule.COSINE, 104, 0.1),
        (Schedule.COSINE, 10_000, 0.1),
        (Schedule.LINEAR, 29, 0.1 + 0.9 * 0.75),
        (Schedule.LINEAR, 104, 0.1),
    ],
)
def test_the_rate_is_a_function_of_the_step(schedule: Schedule, step: int, expected: float) -> None:
    config = OptimizerConfig(
        peak_learning_rate=1.0,
        schedule=schedule,
        num_warmup_steps=4,
        num_horizon_steps=104,
        final_learning_rate_fraction=0.1,
    )

    assert learning_rate(step, config) == pytest.approx(expected, abs=1e-12)
