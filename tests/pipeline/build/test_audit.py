"""Rows that a stage loses, doubles or invents turn its gate red, whatever its report says; so do wrong columns and splits."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.build_context import BuildContext
from pipeline.build.oracles.drops.drop_rules import DROP_RULES
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stage, run_stages
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.records import Split
from pipeline.pins.held_out import HeldOut
from pipeline.stages.collect import stage as collect
from pipeline.stages.enrich import stage as enrich
from pipeline.stages.normalize import clean_source
from pipeline.stages.normalize.duplicates import compare_sources
from pipeline.stages.stages import STAGES
from pipeline.stages.tokenize import stage as tokenize
from pipeline.store.store import Store
from tests.conftest import known_answers

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
    assert Store(tmp_path / "store").moves("tiny", "last")[-1]["reason"] == f"blocked in {stage}"
    assert any(note.text.startswith("Rows lost: ") for note in result.notes)


def test_a_pin_that_is_not_collected_blocks_the_build(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    initialize = BuildContext.__init__

    def without_quarry(context: BuildContext, *given: Any) -> None:
        initialize(context, *given)
        context.pins = [pin for pin in context.pins if pin.name != "quarry"]

    monkeypatch.setattr(BuildContext, "__init__", without_quarry)

    result = run_with(tiny_store, "collect", tmp_path)

    assert red(result) == {"every_pin_verified"}
    assert result.report.measures["num_failed_sources"] == 1
    assert "Sources without files: quarry." in [note.text for note in result.notes]


def test_audits_know_the_held_out_sources_from_the_request(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    initialize = BuildContext.__init__

    def without_held_out(context: BuildContext, *given: Any) -> None:
        initialize(context, *given)
        context.held_out = HeldOut()

    monkeypatch.setattr(BuildContext, "__init__", without_held_out)

    result = run_with(tiny_store, "normalize", tmp_path)

    store = Store(tmp_path / "store")
    audit_id = store.read(result.object_id).manifest.inputs["evidence/audit"]
    assert store.read(audit_id).manifest.identity["held_out"]["sources"] == ["heron"]


def test_rows_of_a_source_without_its_listing_come_from_nowhere(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "_listings", lambda parts: [])

    result = run_with(tiny_store, "collect", tmp_path)

    assert red(result) == {"no_row_lost_in_collect"}
    assert result.report.rows_in == 0


def swapped(*columns: str) -> Callable[[pa.Table], pa.Table]:
    """Exchange the values of the first two rows."""

    def edit(table: pa.Table) -> pa.Table:
        for column in columns if table.num_rows > 1 else ():
            values = table[column].to_pylist()
            field = table.schema.field(column)
            other = pa.array([values[1], values[0], *values[2:]], field.type)
            table = table.set_column(table.schema.get_field_index(column), field, other)
        return table

    return edit


def marked_as_evidence(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("is_evidence")
    return table.set_column(at, table.schema.field(at), pa.array([*table["is_evidence"].to_pylist()[:-1], True]))


def moved_to_drops(documents: str, reason: str) -> Callable[[PartFunction], PartFunction]:
    """Wrap a part function: its largest row is dropped, by a reason that does not hold."""

    def make(function: PartFunction) -> PartFunction:
        def planted(job: PartJob) -> PartOutput:
            output = function(job)
            kept, dropped = output.tables[documents], output.tables["dropped.parquet"]
            sizes = [0 if row.get("is_evidence") else row["num_bytes"] for row in kept.to_pylist()]
            at = sizes.index(max(sizes))
            row = {name: kept[name][at].as_py() for name in ("source", "path", "num_bytes")}
            drop = {"record_id": f"{row['source']}/{row['path']}", "reason": reason, "detail": "", **row}
            tables = {
                documents: pa.concat_tables([kept.slice(0, at), kept.slice(at + 1)]),
                "dropped.parquet": pa.concat_tables([dropped, pa.Table.from_pylist([drop], schema=dropped.schema)]),
            }
            return replace(output, tables={**output.tables, **tables})

        return planted

    return make


@pytest.mark.parametrize(
    ("stage", "module", "function", "plant"),
    [
        ("collect", collect, "collect_source", lambda made: edited(made, "files.parquet", marked_as_evidence)),
        ("collect", collect, "collect_source", lambda made: edited(made, "files.parquet", swapped("content"))),
        ("collect", collect, "collect_source", moved_to_drops("files.parquet", "other_language")),
        ("collect", collect, "collect_source", moved_to_drops("files.parquet", "too_large")),
        ("collect", collect, "collect_source", moved_to_drops("files.parquet", "excluded")),
        ("collect", collect, "collect_source", moved_to_drops("files.parquet", "withdrawn")),
        ("normalize", clean_source, "clean_source", lambda made: edited(made, "documents.parquet", swapped("path"))),
        *(
            ("normalize", clean_source, "clean_source", moved_to_drops("documents.parquet", reason))
            for reason in DROP_RULES
        ),
        (
            "normalize",
            clean_source,
            "clean_source",
            lambda made: edited(made, "documents.parquet", swapped("blob_sha256")),
        ),
        ("enrich", enrich, "enrich_source", lambda made: edited(made, "enriched.parquet", swapped("path"))),
        (
            "tokenize",
            tokenize,
            "tokenize_source",
            lambda made: edited(made, "tokens.parquet", swapped("document_id", "text_sha256")),
        ),
    ],
)
def test_a_row_with_another_content_and_a_drop_without_cause_block_the_stage(
    stage: str,
    module: Any,
    function: str,
    plant: Callable[[PartFunction], PartFunction],
    tiny_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, function, plant(getattr(module, function)))

    result = run_with(tiny_store, stage, tmp_path)

    assert f"no_row_lost_in_{stage}" in red(result)
    assert any(note.text.startswith("Rows altered") for note in result.notes)


def test_contents_under_other_names_block_the_build(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = swapped("content", "git_blob_id", "blob_sha256", "num_bytes")
    monkeypatch.setattr(collect, "collect_source", edited(collect.collect_source, "files.parquet", swap))

    result = run_with(tiny_store, "collect", tmp_path)

    assert red(result) == {"no_row_lost_in_collect"}


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
    tmp_path: Path, tiny_store: Store, monkeypatch: pytest.MonkeyPatch
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
    with known_answers(tiny_store), open_build(request, Store(tmp_path / "store")) as build:
        *_, last = run_stages(build)

    # Before there are rows, which held_out_sources_are_held_out judges: enrich copies the split.
    assert (red(last), last.stage) == ({"no_row_lost_in_enrich"}, "enrich")


def test_a_sound_build_loses_nothing(tiny_results: list[StageResult]) -> None:
    for result in tiny_results:
        assert result.report.measures["num_rows_not_conserved"] == 0
        assert result.report.rows_in == result.report.rows_out + sum(result.report.dropped.values())
