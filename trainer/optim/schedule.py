"""Learning-rate schedule: the rate as a function of the step."""

import math

import torch

from trainer.config.model import DecayShape, OptimizerConfig, Schedule


def learning_rate(step: int, config: OptimizerConfig) -> float:
    """Return the learning rate of a step, counted from 0: linear warm-up, the schedule to the horizon, then any annealing."""
    if step < config.num_warmup_steps:
        return config.peak_learning_rate * (step + 1) / config.num_warmup_steps
    final, annealing = config.final_learning_rate_fraction, config.annealing
    if annealing is not None and step > config.num_horizon_steps:
        progress = min(1.0, (step - config.num_horizon_steps) / annealing.num_steps)
        return config.peak_learning_rate * (final + (annealing.floor_fraction - final) * progress)
    start = config.num_horizon_steps - config.num_decay_steps
    progress = min(1.0, max(0, step - start) / config.num_decay_steps)
    return config.peak_learning_rate * (final + (1 - final) * _height(progress, config))


def _height(progress: float, config: OptimizerConfig) -> float:
    """Return how high the rate is between the final one (0) and the peak (1), after a share of the fall."""
    is_stable_decay = config.schedule is Schedule.WARMUP_STABLE_DECAY
    match str(config.decay_shape if is_stable_decay else config.schedule):
        case DecayShape.COSINE:
            return 0.5 * (1 + math.cos(math.pi * progress))
        case DecayShape.SQUARE_ROOT:
            return 1 - math.sqrt(progress)
        case _:
            return 1 - progress


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group to `rate` times the group's own factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["learning_rate_factor"]
