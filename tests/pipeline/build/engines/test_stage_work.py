"""The time left counts parts that are still to come, and knows how workers share the rest."""

from pathlib import Path

from pipeline.build.engines.part_task import PartTask
from pipeline.build.engines.stage_work import StageWork
from pipeline.contracts.part import Part
from pipeline.core.params import Params
from pipeline.stages.stages import STAGES


def work_task(name: str, place: Path, is_of_source: bool) -> PartTask:
    part = Part(name, "clean", Params(), places={"file": place})
    return PartTask(part, "", place.parent, place.parent, is_of_source=is_of_source)


def test_parts_that_come_later_are_left_until_they_are_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    work = StageWork(STAGES["normalize"], 1)
    work.add(["a"], [work_task("a", tmp_path / "file", True)])
    assert (work.bytes_done, work.left) == (0, (140, 0)), "the duplicates and the audit are to come"

    work.finish("a")
    work.add(["duplicates"], [work_task("duplicates", tmp_path / "file", False)])
    work.finish("duplicates")
    assert (work.bytes_done, work.left) == (120, (20, 0))


def test_the_tail_of_verify_is_shared_by_the_workers_and_an_unchanged_stage_has_no_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    work = StageWork(STAGES["verify"], 2)
    assert work.left == (0, 0)
    work.add(["snapshot"], [work_task("snapshot", tmp_path / "file", False)])
    assert work.left == (0, 5)
