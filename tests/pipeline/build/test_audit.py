"""Rows that a stage loses, doubles or invents turn its gate red, whatever its report says; so do wrong columns and splits."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stage, run_stages
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.records import Split
from pipeline.stages.collect import stage as collect
from pipeline.stages.enrich import stage as enrich
from pipeline.stages.normalize import clean_source, compare_sources
from pipeline.stages.stages import STAGES
from pipeline.stages.tokenize import stage as tokenize
from pipeline.store.store import Store

PartFunction = Callable[[PartJob], PartOutput]


def red(result: StageResult) -> set[str]:
    return {verdict.gate for verdict in result.verdicts if not verdict.passed}


def edited(function: PartFunction, name: str, edit: Callable[[pa.Table], pa.Table]) -> PartFunction:
    """Wrap a part function: one of its tables is another."""

    def planted(job: PartJob) -> PartOutput:
        output = function(job)
        return PartOutput({**output.tables, name: edit(output.tables[name])}, output.report, output.files)

    return planted


def with_value(column: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        values = [value, *table[column].to_pylist()[1:]]
        field = table.schema.field(column)
        return table.set_column(table.schema.get_field_index(column), field, pa.array(values, field.type))

    return edit


def first_rows(function: PartFunction, *tables: str, count: int = -2, is_honest: bool = True) -> PartFunction:
    """Wrap a part function: its tables lose rows, and its report says so, or says what it said before."""

    def planted(job: PartJob) -> PartOutput:
        output = function(job)
        cut = {name: table.slice(0, table.num_rows + count) for name, table in output.tables.items() if name in tables}
        num_kept = min(table.num_rows for table in cut.values())
        report = replace(output.report, rows_in=num_kept, rows_out=num_kept) if is_honest else output.report
        return PartOutput({**output.tables, **cut}, report, output.files)

    return planted


def run_with(store: Store, stage: str, tmp_path: Path) -> StageResult:
    """Run a stage again that has to make its parts: the keys of a copied store are gone."""
    shutil.copytree(store.root, tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "keys")
    copied = Store(tmp_path / "store")
    request = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test", offline=True)
    before = STAGES.names[STAGES.names.index(stage) - 1] if stage != STAGES.names[0] else None
    with open_build(request, copied) as build:
        return run_stage(stage, build, copied.ref("tiny", before) if before else None)


@pytest.mark.parametrize("is_honest", [True, False], ids=["reported", "unreported"])
@pytest.mark.parametrize(
    ("stage", "module", "function", "tables"),
    [
        ("collect", collect, "collect_source", ("files.parquet",)),
        ("normalize", clean_source, "clean_source", ("documents.parquet",)),
        ("normalize", compare_sources, "compare_sources", ("kept.parquet",)),
        ("enrich", enrich, "enrich_source", ("enriched.parquet",)),
        ("tokenize", tokenize, "tokenize_source", ("tokens.parquet",)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_stage_that_loses_rows_is_blocked(
    stage: str,
    module: Any,
    function: str,
    tables: tuple[str, ...],
    is_honest: bool,
    tiny_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted = first_rows(getattr(module, function), *tables, is_honest=is_honest)
    monkeypatch.setattr(module, function, planted)

    result = run_with(tiny_store, stage, tmp_path)

    assert f"no_row_lost_in_{stage}" in red(result)
    assert result.blocked
    assert any(note.startswith("Rows lost: ") for note in result.notes)


def twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)])


@pytest.mark.parametrize(
    ("stage", "module", "function", "table", "edit", "gate"),
    [
        ("collect", collect, "collect_source", "files.parquet", twice, "no_row_lost_in_collect"),
        ("collect", collect, "collect_source", "files.parquet", with_value("path", "x"), "no_row_lost_in_collect"),
        (
            "collect",
            collect,
            "collect_source",
            "files.parquet",
            with_value("revision", "0"),
            "every_file_has_a_revision",
        ),
        ("enrich", enrich, "enrich_source", "enriched.parquet", twice, "no_row_lost_in_enrich"),
        (
            "enrich",
            enrich,
            "enrich_source",
            "enriched.parquet",
            with_value("provenance", "guessed"),
            "provenance_on_every_document",
        ),
        ("tokenize", tokenize, "tokenize_source", "tokens.parquet", twice, "no_row_lost_in_tokenize"),
    ],
    ids=["doubled", "renamed", "revision", "doubled document", "provenance", "doubled tokens"],
)
def test_a_stored_row_that_is_wrong_blocks_the_stage(
    stage: str,
    module: Any,
    function: str,
    table: str,
    edit: Callable[[pa.Table], pa.Table],
    gate: str,
    tiny_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, function, edited(getattr(module, function), table, edit))

    assert gate in red(run_with(tiny_store, stage, tmp_path))


def test_a_held_out_source_that_is_labeled_train_blocks_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def relabel(table: pa.Table) -> pa.Table:
        is_header = [path.endswith(".hpp") for path in table["path"].to_pylist()]
        values = [
            str(Split.TRAIN) if header else split
            for header, split in zip(is_header, table["split"].to_pylist(), strict=True)
        ]
        field = table.schema.field("split")
        return table.set_column(table.schema.get_field_index("split"), field, pa.array(values, field.type))

    monkeypatch.setattr(enrich, "enrich_source", edited(enrich.enrich_source, "enriched.parquet", relabel))
    request = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test", offline=True)
    with open_build(request, Store(tmp_path / "store")) as build:
        *_, last = run_stages(build)

    assert red(last) >= {"held_out_sources_are_held_out"}
    assert last.stage == "verify"


def test_a_sound_build_loses_nothing(tiny_results: list[StageResult]) -> None:
    for result in tiny_results:
        assert result.report.measures["num_rows_not_conserved"] == 0
        assert result.report.rows_in == result.report.rows_out + sum(result.report.dropped.values())
