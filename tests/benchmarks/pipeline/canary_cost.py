"""The figure `canaries`: seconds of processor of all canaries of a build of `tiny`."""

from pipeline.build.canaries.canaries import send
from pipeline.build.recipes import TINY
from tests.benchmarks.figure import Figure
from tests.benchmarks.reference_work import processor_figure, scaled_seconds

REACH_SECONDS = 2.0


def canaries() -> list[Figure]:
    """Send them once unmeasured, as a build's process has its code compiled, and then measure."""
    send(TINY.params)
    seconds = scaled_seconds(lambda: send(TINY.params))
    return [processor_figure("canaries", seconds, REACH_SECONDS)]
