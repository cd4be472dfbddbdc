"""Time left follows the work of recorded builds, says little before it knows, and falls while nothing is finished."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.build.build import ProgressEvent
from pipeline.build.engines.stage_work import Work
from pipeline.cli.time_left import TimeLeft, clock_text

RECORDED = json.loads(Path(__file__).with_name("recorded_builds.json").read_text())
"""Builds by two workers: seconds, and each start of a stage and each event with its time, its parts and the fields of its work."""


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def event(stage: str, *work: float, parts: tuple[int, int] = (1, 2)) -> ProgressEvent:
    return ProgressEvent(stage, *parts, 0, "a", False, Work(*work))


def said_and_true(name: str) -> Iterator[tuple[float, float]]:
    """Yield what was said of a recorded build every quarter of a second, where something was, and what was left."""
    clock, seconds, events = Clock(), RECORDED[name]["seconds"], RECORDED[name]["events"]
    time_left = TimeLeft(2, clock)
    following = iter([*events, [seconds + 1]])
    at, *what = next(following)
    for moment in (quarter / 4 for quarter in range(int(seconds * 4))):
        while at <= moment:
            clock.now = at
            if what:
                stage, num_done, num_parts, *work = what
                time_left.update(event(stage, *work, parts=(num_done, num_parts)))
            else:
                time_left.start()
            at, *what = next(following)
        clock.now = moment
        if (left := time_left.of_build()) is not None:
            yield left, seconds - moment


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_said_of_a_build_is_honest_at_every_moment_and_near_in_its_last_tenth(name: str) -> None:
    found = list(said_and_true(name))
    last = [(said, true) for said, true in found if true <= RECORDED[name]["seconds"] / 10]
    assert len(last) >= 0.9 * RECORDED[name]["seconds"] / 10 * 4 - 2, "something is said"
    assert not [each for each in found if not each[1] / 3 - 2 <= each[0] <= 3 * each[1] + 2]
    assert not [(said, true) for said, true in last if not true / 2 - 1 <= said <= 1.7 * true + 1.5]


def test_nothing_follows_from_the_network_nor_from_a_first_part_that_waits_for_what_is_compiled() -> None:
    clock = Clock()
    time_left = TimeLeft(2, clock)
    clock.now = 40
    time_left.update(event("collect", 4, 4, 1, 0.04))
    assert (time_left.of_stage(), time_left.of_build()) == (pytest.approx(40), None), "of no other stage"
    time_left.start()
    time_left.update(event("normalize", 0, 6, 3, 0.04))
    clock.now = 100
    time_left.update(event("normalize", 2.4, 3.6, 1, 0.04))
    assert (time_left.of_stage(), time_left.of_build()) == (None, None), "not by the minute of its first part"
    clock.now = 102
    time_left.update(event("normalize", 4, 2, 1, 0.04))
    assert time_left.of_stage() == pytest.approx(4), (
        "one second of work, beside what the other worker had begun, took two"
    )
    clock.now = 103
    assert time_left.of_stage() == pytest.approx(3), "it falls while nothing is finished"
    clock.now = 110
    assert time_left.of_stage() == pytest.approx(5), "a part is overdue: two seconds of work took ten, and one is left"
    assert time_left.share_done() == pytest.approx(4 / 6)


def test_the_stages_to_come_are_as_slow_as_the_fastest_so_far_and_a_stage_without_work_says_nothing() -> None:
    clock = Clock()
    time_left = TimeLeft(2, clock)
    for stage, seconds in (("normalize", 40), ("enrich", 20)):
        time_left.start()
        time_left.update(event(stage, 0, 10, 2, 0.1))
        clock.now += seconds / 10
        time_left.update(event(stage, 1, 9, 2, 0.1))
        clock.now += 9 * seconds / 10
        time_left.update(event(stage, 10, 0, 0, 0.1))
    time_left.start()
    time_left.update(event("verify", 0, 5, 2))
    assert time_left.of_build() == pytest.approx(2 * (5 + 0.1 + 0.75)), "the proofs of the sources are still to come"
    time_left.start()
    time_left.update(event("verify", parts=(1, 1)))
    assert (time_left.of_build(), time_left.share_done()) == (None, 1.0)
    assert (clock_text(65.0), clock_text(None)) == ("1:05 left", "")
