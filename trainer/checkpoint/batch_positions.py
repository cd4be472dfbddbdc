"""Positions of batches: how many rows a run has read before each of its steps, whatever sizes its batches had."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainer.config.training_config import TrainingConfig

_BATCH_ROWS = "config.batch_rows"

BatchSizes = Sequence[tuple[int, int, int]]
"""The steps at which the batch changed, its size before and after."""


def batch_sizes(forks: Iterable[Mapping[str, Any]]) -> BatchSizes:
    """Return the changes of the batch that a checkpoint records as forks."""
    return [(fork["step"], *fork["fields"][_BATCH_ROWS]) for fork in forks if _BATCH_ROWS in fork["fields"]]


def position_of_step(step: int, sizes: BatchSizes, batch_rows: int) -> int:
    """Return how many rows come before a step."""
    position, last = 0, 0
    for at, before, _ in sizes:
        position += (min(step, at) - last) * before
        last = min(step, at)
    return position + (step - last) * batch_rows


def change_positions(forks: Iterable[Mapping[str, Any]], config: TrainingConfig) -> tuple[int, ...]:
    """Return the position of each change of the mixture: the rows of the batches before it, in the sizes that they had."""
    sizes = batch_sizes(forks)
    return tuple(position_of_step(change.at_step, sizes, config.batch_rows) for change in config.mixture_changes)
