"""Time left counts bytes, knows the tail of parts that do not grow, and falls while nothing is finished."""

import pytest

from pipeline.build.build import ProgressEvent
from pipeline.cli.time_left import TimeLeft, clock_text


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def event(stage: str, done: tuple[float, float], left: tuple[float, float]) -> ProgressEvent:
    return ProgressEvent(stage, int(left == (0, 0)), 1, 0, "a", False, done, left)


def test_a_large_part_counts_by_its_bytes_and_the_tail_is_known() -> None:
    clock = Clock()
    time_left = TimeLeft(clock)
    time_left.start()
    time_left.update(event("verify", (0, 0), (100, 6)))
    assert time_left.of_stage() is None, "nothing says how fast its parts are"
    clock.now = 10
    time_left.update(event("verify", (50, 0), (50, 6)))
    assert time_left.of_stage() == pytest.approx(16), "half of the bytes, and the tail"
    clock.now = 20
    time_left.update(event("verify", (100, 0), (0, 6)))
    assert (time_left.of_stage(), time_left.share_done()) == (pytest.approx(6), pytest.approx(20 / 26))
    clock.now = 23
    assert time_left.of_stage() == pytest.approx(3), "it falls while nothing is finished"
    clock.now = 40
    assert time_left.of_stage() is None, "a part takes longer than was said: nothing says how long"
    assert time_left.share_done() == pytest.approx(20 / 21), "it is not over while a part is left"
    time_left.update(event("verify", (100, 6), (0, 0)))
    assert (time_left.of_stage(), time_left.of_build()) == (0, 0)
    clock.now = 50
    time_left.start()
    time_left.update(event("verify", (0, 0), (100, 4)))
    assert 14 < (time_left.of_stage() or 0) < 45, "before its first part a stage is as slow as the one before"


def test_the_build_counts_the_stages_to_come_as_slow_as_this_one() -> None:
    clock = Clock()
    time_left = TimeLeft(clock)
    clock.now = 11
    time_left.update(event("normalize", (50, 0), (50, 0)))

    assert time_left.of_stage() == pytest.approx(11)
    of_build = time_left.of_build() or 0
    assert 11 + 22 * 11 / 10 * 2 + 10 < of_build < 11 + 22 * 11 / 10 * 3 + 10
    assert (clock_text(of_build / of_build * 65), clock_text(None)) == ("1:05 left", "")
