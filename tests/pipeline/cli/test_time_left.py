"""Time left counts bytes, knows the tail of parts that do not grow, and falls while nothing is finished."""

import pytest

from pipeline.build.build import ProgressEvent
from pipeline.cli.time_left import TimeLeft, clock_text


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def event(stage: str, done: float, left: tuple[float, float]) -> ProgressEvent:
    return ProgressEvent(stage, int(left == (0, 0)), 1, 0, "a", False, done, left)


def test_the_first_part_says_nothing_and_the_tail_is_known() -> None:
    clock = Clock()
    time_left = TimeLeft(clock=clock)
    time_left.update(event("verify", 0, (110, 6)))
    assert time_left.of_stage() is None, "nothing says how fast its parts are"
    clock.now = 40
    time_left.update(event("verify", 10, (100, 6)))
    assert (time_left.of_stage(), time_left.of_build()) == (None, None), (
        "the first part waited for workers and imports too"
    )
    assert time_left.share_done() == pytest.approx(10 / 110), "its bytes are done all the same"
    clock.now = 41
    time_left.update(event("verify", 15, (95, 6)))
    assert time_left.of_stage() is None, "a twentieth of the bytes is not enough to say how fast the others are"
    clock.now = 50
    time_left.update(event("verify", 60, (50, 6)))
    assert time_left.of_stage() == pytest.approx(16), "as fast as the parts after the first, and the tail"
    clock.now = 60
    time_left.update(event("verify", 110, (0, 6)))
    assert (time_left.of_stage(), time_left.share_done()) == (pytest.approx(6), pytest.approx(60 / 66))
    clock.now = 63
    assert time_left.of_stage() == time_left.of_build() == pytest.approx(3), "it falls while nothing is finished"
    clock.now = 80
    assert time_left.of_stage() is None, "a part takes longer than was said: nothing says how long"
    assert time_left.share_done() == pytest.approx(60 / 61), "it is not over while a part is left"
    time_left.update(event("verify", 110, (0, 0)))
    assert (time_left.of_stage(), time_left.of_build()) == (0, 0)
    clock.now = 90
    time_left.start()
    time_left.update(event("verify", 0, (100, 4)))
    assert time_left.of_stage() == pytest.approx(26), "before its first part a stage is as slow as the one before"


def test_the_build_counts_the_stages_to_come_as_slow_as_this_one() -> None:
    clock = Clock()
    time_left = TimeLeft(2, clock)
    for clock.now, num_bytes in ((20, 10), (31, 60)):
        time_left.update(event("normalize", num_bytes, (110 - num_bytes, 0)))

    assert time_left.of_stage() == pytest.approx(11)
    tail = 5  # of parts of 3, 4 and 3 s
    later = 24.2 * (11 / 10 + 11 / 15 + 11 / 10) + tail
    assert time_left.of_build() == pytest.approx(11 + later)
    clock.now += 12
    assert (time_left.of_stage(), time_left.of_build()) == (None, pytest.approx(later - 1)), "little of it is overdue"
    clock.now += 12
    assert time_left.of_build() is None
    assert (clock_text(65.0), clock_text(None)) == ("1:05 left", "")
