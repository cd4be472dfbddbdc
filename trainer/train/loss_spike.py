"""Loss spikes: steps whose loss or gradients must not change the weights."""

import math
import statistics
from itertools import islice

from trainer.checkpoint.certificate import History

NUM_STEPS_OF_MEDIAN = 20
"""Good steps that a loss is compared with. With fewer, only a value that is not finite is a spike."""


def is_loss_spike(loss: float, norm: float, history: History, spike_factor: float) -> bool:
    """Return whether a step must not change the weights: not finite, or far above the median of the last good steps."""
    if not (math.isfinite(loss) and math.isfinite(norm)):
        return True
    steps = zip(reversed(history.losses), reversed(history.skipped), strict=True)
    recent = list(islice((before for before, is_skipped in steps if not is_skipped), NUM_STEPS_OF_MEDIAN))
    return len(recent) == NUM_STEPS_OF_MEDIAN and loss > spike_factor * statistics.median(recent)
