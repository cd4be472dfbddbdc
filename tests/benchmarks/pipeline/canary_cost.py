"""The figure `canaries`: seconds of processor of all canaries of a build of `tiny`."""

from pipeline.build.canaries.canaries import send
from pipeline.build.recipes import TINY
from tests.benchmarks.figure import Figure
from tests.benchmarks.reference_work import scaled_seconds

REACH_SECONDS = 2.0


def canaries() -> list[Figure]:
    """Send them once unmeasured, as a build's process has its code compiled, and then measure."""
    send(TINY.params)
    seconds = scaled_seconds(lambda: send(TINY.params))
    unit = "s of processor, scaled by a fixed work beside it"
    return [Figure("canaries", round(seconds, 2), unit, f"<= {REACH_SECONDS:g} s", seconds <= REACH_SECONDS)]
