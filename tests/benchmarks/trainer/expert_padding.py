"""Padding in the experts' slots of a real training, and pairs that found no slot, from its first step on."""

from statistics import mean

from tests.benchmarks.figure import Figure
from tests.benchmarks.trainer.checkpoint_costs import made_training

NUM_STEPS, NUM_AVERAGED_STEPS = 60, 20
MAX_PADDING = 27.0


def expert_padding() -> list[Figure]:
    """The tiny recipe on the tiny corpus, each step's slots counted as they are computed."""
    padding, overflow = [], []
    with made_training() as (training, _):
        for _ in range(NUM_STEPS):
            metrics = training.step(training.loader.batch_at(training.position, training.config.batch_rows))
            padding.append(100 * metrics["expert_padding_fraction"])
            overflow.append(100 * metrics["expert_overflow_fraction"])
    first, last = mean(padding[:NUM_AVERAGED_STEPS]), mean(padding[-NUM_AVERAGED_STEPS:])
    unit = f"% of the slots, {NUM_AVERAGED_STEPS} steps"
    return [
        Figure("expert-padding", round(last, 2), unit, f"<= {MAX_PADDING:.0f}", last <= MAX_PADDING),
        Figure("expert-padding/first", round(first, 2), unit, f"<= {MAX_PADDING:.0f}", first <= MAX_PADDING),
        Figure("expert-padding/overflow-real", max(overflow), "% of the pairs, worst step", "0", max(overflow) == 0),
    ]
