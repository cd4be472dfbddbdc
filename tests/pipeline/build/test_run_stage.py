"""Runs of stages: what a program registers is part of every build; limits of gates move no part and no snapshot."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.core.errors import StageError
from pipeline.lineage.report import report_corpus
from pipeline.stages.normalize.params import DropBands
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
            StageError, match=r"no source came through.*Source heron failed: .*ZeroDivisionError.*test_run_stage\.py"
        ),
    ):
        normalized(tmp_path, 1)


def test_limits_of_gates_move_no_part_and_no_snapshot(
    tiny_store: Store, tiny_results: list[StageResult], tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    params = TINY.params
    others = params.model_copy(
        update={
            "normalize": params.normalize.model_copy(update={"drop_bands": DropBands(generated=0.4)}),
            "enrich": params.enrich.model_copy(update={"max_degraded_fraction": 0.9}),
            "verify": params.verify.model_copy(update={"min_trained_fraction": 0.1}),
        }
    )
    order = BuildRequest("tiny", others, pins_of(TINY), "a test", offline=True)
    with open_build(order, Store(tmp_path / "store")) as build:
        made = list(run_stages(build))

    assert made[-1].snapshot_id == tiny_results[-1].snapshot_id
    for before, after in zip(tiny_results, made, strict=True):
        changed = {name for name in before.parts if before.parts[name] != after.parts[name]}
        assert changed <= {"canaries", "smoke", "loader"}
        assert (before.object_id == after.object_id) == (after.stage == "collect")
