"""`why` says of every file where it went and on what evidence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import pipeline.lineage.why as why_module
from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import run_stages
from pipeline.cli.main import main
from pipeline.contracts.part import Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.contracts.stage import PartKind, Stage, StageTable
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import MissingError
from pipeline.core.params import Params
from pipeline.core.records import EnrichedDocument
from pipeline.lineage.report import report_corpus
from pipeline.lineage.report_page import render_page
from pipeline.lineage.why import FileTrace, why
from pipeline.stages.normalize.filters.filters import FILTERS
from pipeline.stages.stages import STAGES
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from tests.pipeline.build.made_corpus.test_made_corpus import EXPECTED


class ForgetfulTracer(why_module._Tracer):
    """Queries that find nothing in the tables of enrich."""

    def _row(self, part: StoredObject, table: StageTable, columns: str) -> dict[str, Any] | None:
        return None if table.record is EnrichedDocument else super()._row(part, table, columns)


class AnnounceParams(Params):
    """No settings."""


def run_announce(context: StageContext[AnnounceParams]) -> StageOutput:
    made, failures = context.make([Part(pin.name, "announce", context.params) for pin in context.pins])
    return StageOutput({name: part.object_id for name, part in made.items()}, StageReport(0, 0, {}), failures)


def announce(job: PartJob) -> PartOutput:
    return PartOutput({}, StageReport(0, 0, {}))


ANNOUNCE = Stage(
    name="announce",
    version=1,
    description="Announce each source.",
    params=f"{__name__}:AnnounceParams",
    run=f"{__name__}:run_announce",
    parts=(PartKind("announce/part", {"announce": f"{__name__}:announce"}),),
    libraries=(),
)


def example(outcome: str) -> tuple[str, str]:
    """Return a file of that outcome; changes with equal hunks are near copies of their own kind."""
    return next((source, path) for (source, path), found in EXPECTED.items() if found == outcome and source != "loom")


@pytest.fixture(scope="module")
def traces(tiny_store: Store) -> dict[tuple[str, str], FileTrace]:
    return {name: why(tiny_store, "tiny", *name) for name in EXPECTED}


def test_every_file_of_the_made_corpus_is_explained_by_its_outcome(traces: dict[tuple[str, str], FileTrace]) -> None:
    lasts = {place: trace.steps[-1] for place, trace in traces.items()}
    found = {place: last.verdict if last.verdict == "kept" else last.reason for place, last in lasts.items()}

    assert found == EXPECTED


def test_every_drop_tells_its_limit_and_every_document_those_that_it_passed(
    traces: dict[tuple[str, str], FileTrace],
) -> None:
    for place, trace in traces.items():
        steps = {step.stage: step for step in trace.steps}
        assert trace.steps[-1].verdict == "kept" or trace.steps[-1].evidence["limit"], place
        passed = steps["normalize"].evidence.get("filters", []) if "normalize" in steps else []
        assert len(passed) == (len(FILTERS.names) if "duplicates" in steps else 0), place
        assert all(" is " in line for line in passed)
    near = traces[example("near_duplicate")].steps[-1]
    assert near.evidence["limit"] == "normalize.duplicates.min_jaccard_between_sources is 0.7"


def test_a_kept_file_is_followed_to_its_rows(tiny_store: Store) -> None:
    source, path = example("kept")
    trail = why(tiny_store, "tiny", source, path)

    assert trail.kept
    assert [step.stage for step in trail.steps] == [step for stage in STAGES for step in stage.steps]
    assert trail.steps[1].evidence["license"]
    assert trail.steps[-1].evidence["rows"]


def test_a_build_that_ends_early_answers_with_the_stages_that_it_has(tiny_store: Store, tmp_path: Path) -> None:
    found = why(tiny_store, "tiny", "lantern", "src/arena.c", tiny_store.ref("tiny", "normalize"))
    short = Store(shutil.copytree(tiny_store.root, tmp_path / "short"))
    short.move_ref("short", "normalize", None, tiny_store.ref("tiny", "normalize") or "", "build --until normalize")

    assert [step.verdict for step in found.steps] == ["kept", "kept", "kept"]
    assert (found.build["stage"], found.kept, found.lost) == ("normalize", False, False)
    assert why(short, "short", "lantern", "src/arena.c").steps == found.steps


def test_a_refused_license_shows_the_expression_that_was_found(tiny_store: Store) -> None:
    step = why(tiny_store, "tiny", "quarry", "src/merge_runs.c").steps[-1]

    assert (step.stage, step.reason) == ("normalize", "license_refused")
    assert "GPL" in step.evidence["license"]
    assert "src/merge_runs.c:3" in step.evidence["detail"]


def test_a_duplicate_names_its_keeper_and_how_alike_they_are(tiny_store: Store) -> None:
    source, path = example("near_duplicate")
    step = why(tiny_store, "tiny", source, path).steps[-1]

    assert step.evidence["keeper_path"]
    assert 0.7 <= step.evidence["jaccard"] < 1


def test_a_filtered_file_shows_the_measured_value_and_the_limit(tiny_store: Store) -> None:
    source, path = example("too_small")
    step = why(tiny_store, "tiny", source, path).steps[-1]

    assert any(letter.isdigit() for letter in step.evidence["detail"])


def test_an_unknown_path_names_the_nearest_ones(tiny_store: Store) -> None:
    source, path = example("kept")

    with pytest.raises(MissingError, match=f"Did you mean .*{path}"):
        why(tiny_store, "tiny", source, path + "x")


def test_a_stage_before_collect_that_follows_no_files_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, where = Store(tmp_path / "store"), ["--corpus", "tiny", "--store", str(tmp_path / "store")]
    declared = STAGES.names[: STAGES.names.index("normalize") + 1]
    with STAGES.registered(ANNOUNCE, before="collect"):
        with open_build(BuildRequest("tiny", TINY.params, pins_of(TINY), "a test"), store) as build:
            assert [result.stage for result in run_stages(build, "normalize")] == ["announce", *declared]
        assert main(["why", "quarry", "src/merge_runs.x", *where]) == 1
        assert "Did you mean src/merge_runs.c" in capsys.readouterr().err.replace("\n", " ")
        assert [step.stage for step in why(store, "tiny", "quarry", "src/merge_runs.c").steps] == [
            "collect",
            "normalize",
        ]
        report = report_corpus(store, "tiny")
        assert {source["source"] for source in report.sources} == {pin.name for pin in pins_of(TINY)}
        with_stage = render_page(report)
    assert render_page(report) == with_stage


def test_a_file_that_a_stage_lost_is_a_failure_of_the_command(
    tiny_store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(why_module, "_Tracer", ForgetfulTracer)
    source, path = example("kept")

    assert main(["why", source, path, "--corpus", "tiny", "--store", str(tiny_store.root), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["steps"][-1]["verdict"] == "lost"


def test_the_command_prints_the_trail_as_json(tiny_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    source, path = example("kept")
    code = main(["why", source, path, "--corpus", "tiny", "--store", str(tiny_store.root), "--json"])

    assert code == 0
    assert json.loads(capsys.readouterr().out)["kept"] is True
