"""A part is made into its folder; a source that fails, and a defect at a source, are results."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.engines.local_engine import LocalEngine
from pipeline.build.engines.part_task import make_part, write_output
from pipeline.contracts.part import PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import SourceError
from pipeline.store.store import Store
from tests.pipeline.build.engines.part_functions import tasks


def test_a_source_that_fails_is_a_result_in_one_process_too(store: Store) -> None:
    with LocalEngine(1) as engine:
        results = {task.part.name: result for task, result in engine.run(tasks(store, "refuse"))}

    assert isinstance(results.pop("1"), SourceError)
    assert all(isinstance(result, StageReport) for result in results.values())
    assert len(results) == 3


def test_a_defect_fails_its_source_and_names_the_line(store: Store) -> None:
    with LocalEngine(1) as engine:
        made = [replace(task, is_of_source=True) for task in tasks(store, "break_at_one")]
        results = {task.part.name: result for task, result in engine.run(made)}

    assert isinstance(results["1"], SourceError)
    assert "raised IndexError: beyond the end (part_functions.py:" in str(results["1"])
    assert isinstance(results["2"], StageReport)
    with LocalEngine(1) as engine, pytest.raises(IndexError):
        list(engine.run(tasks(store, "break_at_one")))


def test_a_source_for_which_memory_does_not_suffice_is_no_defect(store: Store) -> None:
    with LocalEngine(1) as engine:
        made = [replace(task, is_of_source=True) for task in tasks(store, "lack_memory", 1)]
        ((_, result),) = engine.run(made)

    assert "out of memory. Run again with fewer workers" in str(result)
    assert "Report it" not in str(result)


def test_memory_that_a_part_has_freed_is_the_systems_again(store: Store) -> None:
    before = _num_resident_bytes()
    make_part(tasks(store, "fill_memory", 1)[0])

    assert _num_resident_bytes() - before < 50_000_000


def _num_resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_report_is_written_beside_the_tables(tmp_path: Path) -> None:
    write_output(tmp_path / "part", PartOutput({}, StageReport(2, 1, {"too_small": 1})))

    assert (tmp_path / "part" / "report.json").read_bytes().startswith(b'{"dropped":{"too_small":1}')
