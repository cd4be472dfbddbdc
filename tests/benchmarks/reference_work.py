"""Reference work: seconds of processor are compared with those of a fixed piece of work, as machines differ by half and more."""

from collections.abc import Callable
from time import process_time

from tests.benchmarks.figure import Figure

REFERENCE_SECONDS = 0.11
"""Seconds of processor of the work on the machine on which bounds in seconds were stated."""


def processor_figure(name: str, seconds: float, reach_seconds: float) -> Figure:
    """Make the figure of scaled seconds that must not be more than some."""
    unit = "s of processor, scaled by a fixed work beside it"
    return Figure(name, round(seconds, 2), unit, f"<= {reach_seconds:g} s", seconds <= reach_seconds)


def scaled_seconds(work: Callable[[], object]) -> float:
    """Return the seconds of processor of some work, the least of three, as they would be on the machine of the bounds."""
    return min(_seconds(work) for _ in range(3)) / scale()


def scale() -> float:
    """Return how many times the seconds of the machine of the bounds a piece of work takes here and now."""
    return min(_seconds(_work) for _ in range(3)) / REFERENCE_SECONDS


def _seconds(work: Callable[[], object]) -> float:
    before = process_time()
    work()
    return process_time() - before


def _work() -> None:
    table = {}
    for number in range(1_000_000):
        table[number % 1_000] = str(number)
