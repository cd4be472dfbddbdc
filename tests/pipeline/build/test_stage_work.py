"""The work of a stage counts the parts that it will ask for, and nothing where all is known."""

from pathlib import Path

from pipeline.build.engine import PartTask
from pipeline.build.stage_work import StageWork
from pipeline.contracts.part import Part
from pipeline.core.params import Params
from pipeline.stages.stages import STAGES


def task(name: str, place: Path, is_of_source: bool) -> PartTask:
    part = Part(name, "clean", Params(), places={"file": place})
    return PartTask(part, "", place.parent, place.parent, is_of_source=is_of_source)


def test_parts_that_come_later_are_left_until_they_are_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    work = StageWork(STAGES["normalize"], 1)
    work.add(["a"], [task("a", tmp_path / "file", True)])
    assert (work.done, work.left) == ((0, 0), (140, 0)), "the duplicates and the audit are to come"

    work.finish("a")
    work.add(["duplicates"], [task("duplicates", tmp_path / "file", False)])
    work.finish("duplicates")
    assert (work.done, work.left) == ((120, 0), (20, 0))


def test_the_tail_of_verify_is_shared_by_the_workers_and_an_unchanged_stage_has_no_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    work = StageWork(STAGES["verify"], 2)
    assert work.left == (0, 0)
    work.add(["snapshot"], [task("snapshot", tmp_path / "file", False)])
    assert work.left == (0, 5)
