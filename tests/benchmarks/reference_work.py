"""Reference work: seconds of processor are compared with those of a fixed piece of work, as machines differ by half and more."""

from time import process_time

REFERENCE_SECONDS = 0.11
"""Seconds of processor of the work on the machine on which bounds in seconds were stated."""


def bound_here(seconds: float) -> float:
    """Return how many seconds of processor here are as much as these on the machine of the bounds."""
    return seconds * min(_work() for _ in range(3)) / REFERENCE_SECONDS


def _work() -> float:
    before = process_time()
    table = {}
    for number in range(1_000_000):
        table[number % 1_000] = str(number)
    return process_time() - before
