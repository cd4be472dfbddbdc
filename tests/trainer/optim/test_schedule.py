"""The learning rate of each step."""

import math

import pytest

from trainer.config.model import AnnealingConfig, DecayShape, OptimizerConfig, Schedule
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


@pytest.mark.parametrize(
    ("shape", "step", "expected"),
    [
        (DecayShape.LINEAR, 3, 1.0),
        (DecayShape.LINEAR, 80, 1.0),
        (DecayShape.LINEAR, 85, 0.1 + 0.9 * 0.75),
        (DecayShape.COSINE, 85, 0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2),
        (DecayShape.SQUARE_ROOT, 85, 0.1 + 0.9 * 0.5),
        (DecayShape.SQUARE_ROOT, 100, 0.1),
        (DecayShape.LINEAR, 10_000, 0.1),
    ],
)
def test_the_peak_is_held_until_the_declared_share_falls(shape: DecayShape, step: int, expected: float) -> None:
    config = OptimizerConfig(
        peak_learning_rate=1.0,
        schedule=Schedule.WARMUP_STABLE_DECAY,
        decay_fraction=0.2,
        decay_shape=shape,
        num_warmup_steps=4,
        num_horizon_steps=100,
    )

    assert learning_rate(step, config) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("schedule", list(Schedule))
def test_annealing_falls_from_the_final_rate_to_its_floor(schedule: Schedule) -> None:
    annealing = AnnealingConfig(num_steps=20, floor_fraction=0.02)
    plain = OptimizerConfig(schedule=schedule, peak_learning_rate=1.0, num_horizon_steps=100)
    config = plain.model_copy(update={"annealing": annealing})

    assert [learning_rate(step, config) for step in range(101)] == [learning_rate(step, plain) for step in range(101)]
    assert [learning_rate(step, config) for step in (110, 120, 500)] == pytest.approx([0.06, 0.02, 0.02], abs=1e-12)
