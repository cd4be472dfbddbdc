"""Contexts of stages: what a program registers is part of every build, with one id for any number of workers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.build.audit import ALTERED, NOT_COLLECTED, OUT_OF_ORDER
from pipeline.build.build import BuildRequest, open_build
from pipeline.build.build_context import _note
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.core.errors import StageError
from pipeline.lineage.report import report_corpus
from pipeline.stages.normalize.scrub.detectors import DETECTORS, Detector, example
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.store.store import Store


def find_rings(text: str) -> Iterator[Finding]:
    for match in re.finditer(r"\bring_[a-z]+\b", text):
        yield Finding(*match.span(), match[0])


def normalized(root: Path, num_workers: int) -> StageResult:
    request = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test", num_workers=num_workers)
    with open_build(request, Store(root)) as build:
        return list(run_stages(build, "normalize"))[-1]


def test_a_detector_added_by_a_program_gives_one_id_for_any_number_of_workers(tmp_path: Path) -> None:
    before = normalized(tmp_path / "one", 1)
    with DETECTORS.registered(Detector("ring", find_rings, "ring", example("// {}", ("ring_bell",)))):
        one, two = normalized(tmp_path / "one", 1), normalized(tmp_path / "two", 2)
        report = report_corpus(Store(tmp_path / "one"), "tiny")

    assert report.redactions["ring"] == one.report.measures["num_redactions_ring"]
    assert one.report.measures["num_redactions_ring"] == two.report.measures["num_redactions_ring"] > 0
    assert one.object_id == two.object_id != before.object_id
    assert not one.unchanged


def find_nothing(text: str) -> Iterator[Finding]:
    raise ZeroDivisionError("division by zero")


def test_a_detector_that_breaks_is_named_with_the_source_and_the_line(tmp_path: Path) -> None:
    with (
        DETECTORS.registered(Detector("ring", find_nothing, "ring", example("", ()))),
        pytest.raises(
            StageError,
            match=r"no source came through.*Source heron failed: .*ZeroDivisionError.*test_build_context\.py",
        ),
    ):
        normalized(tmp_path, 1)


def test_of_an_audit_only_files_are_named_as_such() -> None:
    assert _note("Rows lost", ["mine/src/a.c"]).files == (("mine", "src/a.c"),)
    assert _note("Rows lost", ["mine/src/a.c"]).text == "Rows lost: mine/src/a.c."
    assert _note(ALTERED, ["mine/src/a.c"]).text.endswith("by `exclude` in its pin until it is mended.")
    assert _note(OUT_OF_ORDER, ["mine/files.parquet row 4"]).files == ()
    assert _note(NOT_COLLECTED, ["mine"]).files == ()
