"""The work of a stage counts parts that are still to come, and knows how workers share the rest."""

from pathlib import Path

import pytest

from pipeline.build.engines.part_task import PartTask
from pipeline.build.engines.stage_work import NO_WORK, StageWork, Work, part_ends
from pipeline.contracts.joined_parts import JOIN
from pipeline.contracts.part import Part
from pipeline.core.params import Params
from pipeline.stages.stages import STAGES

NORMALIZE = STAGES["normalize"]


def work_task(name: str, place: Path, function: str = "clean") -> PartTask:
    part = Part(name, function, Params(), places={"file": place})
    return PartTask(part, "", place.parent, place.parent)


def test_parts_that_come_later_are_left_until_they_are_done_and_a_join_is_no_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 318_000)
    source = NORMALIZE.of_full.seconds / 100  # of a hundredth of the full slice
    start, single = NORMALIZE.start_seconds, 0.07 * source
    work = StageWork(NORMALIZE, 2)
    work.add(["a"], [work_task("a", tmp_path / "file")])
    left = start + source / 2 + 2 * single
    assert work.work == Work(0, pytest.approx(left), pytest.approx(left), pytest.approx(0.01)), "copies and audit come"

    work.finish("a")
    work.add(["b"], [work_task("b", tmp_path / "file", JOIN)])
    assert work.work == Work(*map(pytest.approx, (start + source / 2, 2 * single, 2 * single, 0.01)))
    work.add(["duplicates"], [work_task("duplicates", tmp_path / "file")])
    work.finish("duplicates")
    assert work.work.left == pytest.approx(single)


def test_the_tail_of_verify_is_shared_by_the_workers_and_an_unchanged_stage_has_no_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    seconds = {kind.only: kind.seconds for kind in STAGES["verify"].parts}
    work = StageWork(STAGES["verify"], 2)
    assert work.work == NO_WORK
    work.add(["snapshot"], [work_task("snapshot", tmp_path / "file")])
    assert work.work.left == pytest.approx(seconds["canaries"] + seconds["loader"]), "the longest of two rows"
    tail = ["loader", "smoke", "canaries"]
    work.add(tail, [work_task(name, tmp_path / "file") for name in tail])
    whole = work.work.left
    work.finish("canaries")
    assert work.work.left < whole
    assert part_ends([3.0, 4.5, 2.0], 2) == [3.0, 4.5, 5.0]
