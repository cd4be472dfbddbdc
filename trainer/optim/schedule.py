"""Learning-rate schedule: the rate as a function of the step."""

import math

import torch

from trainer.config.model import OptimizerConfig, Schedule


def learning_rate(step: int, config: OptimizerConfig) -> float:
    """Return the learning rate of a step, counted from 0: linear warm-up, then the schedule to the horizon."""
    if step < config.num_warmup_steps:
        return config.peak_learning_rate * (step + 1) / config.num_warmup_steps
    num_falling_steps = config.num_horizon_steps - config.num_warmup_steps
    progress = min(1.0, (step - config.num_warmup_steps) / num_falling_steps)
    match config.schedule:
        case Schedule.COSINE:
            height = 0.5 * (1 + math.cos(math.pi * progress))
        case Schedule.LINEAR:
            height = 1 - progress
    floor = config.final_learning_rate_fraction
    return config.peak_learning_rate * (floor + (1 - floor) * height)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group to `rate` times the group's own factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["learning_rate_factor"]
