"""A stage recognizes what it made before by key, and believes no key that leads elsewhere."""

import shutil
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.promotion import promote
from pipeline.build.recipes import TINY, CorpusParams, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.cli.main import main
from pipeline.contracts.gates import CONSERVED, GATES, NONE, Gate
from pipeline.contracts.joined_parts import JOIN, JOIN_SHARDS, make_joined, shard_parts
from pipeline.contracts.part import Part, PartJob, PartOutput, StageContext, StageOutput
from pipeline.contracts.stage import AUDIT, PartKind, Stage, StageTable
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core import table_names
from pipeline.core.errors import MissingError, ParamsError
from pipeline.core.params import Params
from pipeline.core.records import (
    CommitEvidence,
    DroppedRecord,
    EnrichedDocument,
    FileModification,
    ListedChange,
    ListedCommitFile,
    SourceFile,
    TreeFile,
)
from pipeline.core.schema import check_table, table_of_records
from pipeline.core.table_names import (
    COMMIT_EVIDENCE,
    DROPPED,
    ENRICHED,
    EVIDENCE,
    HISTORY,
    LISTED,
    LISTED_CHANGES,
    LISTED_EVIDENCE,
    TRAINING_ROWS,
    TREE,
    VERSIONS,
)
from pipeline.lineage.stored_build import stored_build
from pipeline.stages.stages import STAGES, reserved_names
from pipeline.stages.verify import smoke
from pipeline.store.store import Store
from tests.conftest import sound_answer
from tests.support.shorten_stage import FEW_ARE_LONG, SHORTEN

OF_SOME_SOURCES = {TREE: TreeFile, HISTORY: FileModification, VERSIONS: SourceFile, COMMIT_EVIDENCE: CommitEvidence}
"""Tables of sources that are built, that have a history, or whose changes are documents."""
OF_SOME_LISTINGS = {LISTED_CHANGES: ListedChange, LISTED_EVIDENCE: ListedCommitFile}
"""Tables of the listings of sources with a history."""


def test_every_table_of_what_is_kept_or_dropped_says_in_which_order_its_rows_are() -> None:
    tables = (table for stage in STAGES for kind in stage.parts for table in kind.tables)

    without = {*OF_SOME_SOURCES, *OF_SOME_LISTINGS, EVIDENCE, LISTED, *TRAINING_ROWS.values()}
    assert {table.name for table in tables if not table.order} == without


def test_every_part_that_is_of_no_source_has_a_reserved_name(tiny_results: list[StageResult]) -> None:
    sources = set(tiny_results[0].parts)
    others = {name for result in tiny_results for name in result.parts} - sources

    assert others | {AUDIT} == reserved_names()


def test_every_declared_table_is_stored_with_the_schema_of_its_record(
    tiny_store: Store, tiny_results: list[StageResult]
) -> None:
    kinds = {kind.kind: kind for stage in STAGES for kind in stage.parts}
    stages = [tiny_store.read(result.object_id).manifest.inputs for result in tiny_results]
    labeled = [pair for inputs in stages for pair in sorted(inputs.items()) if pair[0] != f"evidence/{AUDIT}"]
    stored = [tiny_store.read(part) for label, part in labeled if label.startswith(("part/", "evidence/"))]
    found = {part.manifest.kind: part for part in stored}

    of_large_corpora = {f"normalize/{name}" for name in ("marks", "links", "copies")}
    assert found.keys() == kinds.keys() - of_large_corpora
    assert not any(kinds[name].tables for name in of_large_corpora)
    for name, part in found.items():
        for table in kinds[name].tables:
            if table.name not in OF_SOME_SOURCES | OF_SOME_LISTINGS:
                check_table(part.table(table.name), table.record, f"{name}/{table.name}")
    with_changes = tiny_store.read(tiny_results[0].parts["loom"])
    for name, record in OF_SOME_SOURCES.items():
        if name != TREE:
            check_table(with_changes.table(name), record, name)
    listing = tiny_store.read(stages[0]["evidence/loom.listing"])
    for name, record in OF_SOME_LISTINGS.items():
        check_table(listing.table(name), record, name)


def test_the_fields_of_the_params_are_the_stages() -> None:
    params = CorpusParams()
    assert {name: type(params.of_stage(name)) for name in STAGES.names} == {
        stage.name: stage.params_class() for stage in STAGES
    }
    assert set(params.model_dump()) == {"held_out", *STAGES.names}


def test_a_key_that_leads_to_another_object_is_not_believed(
    tiny_store: Store, tiny_results: list[StageResult], tmp_path: Path
) -> None:
    root = tmp_path / "store"
    shutil.copytree(tiny_store.root, root)
    keys = sorted((root / "keys").iterdir())
    contents = [key.read_text() for key in keys]
    for key, content in zip(keys, [*contents[1:], contents[0]], strict=True):
        key.write_text(content)

    order = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test")
    with open_build(order, Store(root)) as build:
        made = [result.object_id for result in run_stages(build, "normalize")]
    assert made == [result.object_id for result in tiny_results[:2]]


def test_every_table_that_two_folders_read_is_declared_by_a_stage() -> None:
    declared = {table.name for stage in STAGES for kind in stage.parts for table in kind.tables}
    values = {value for name, value in vars(table_names).items() if name.isupper() and isinstance(value, str)}
    names = values - {table_names.COMPILER_RECORD}

    assert names | {*table_names.PACKED.values(), *table_names.TRAINING_ROWS.values()} == declared


def pass_on(context: StageContext[Params]) -> StageOutput:
    """Make nothing, and pass on what the stage before made."""
    return StageOutput(dict(context.inputs), StageReport(0, 0))


def build_tiny_in(store: Store) -> list[StageResult]:
    order = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test", offline=True)
    with open_build(order, store) as build:
        return list(run_stages(build))


SURVEY = Stage("survey", 1, "Make nothing.", "pipeline.core.params:Params", f"{__name__}:pass_on", (), ())
PASSES_ALL_ON = Gate("no_row_lost_in_survey", "survey", CONSERVED, NONE, "What is passed on is what was given.")


@pytest.mark.parametrize("before", ["collect", "normalize", "tokenize", None])
def test_a_stage_without_tables_can_stand_anywhere_and_its_gate_is_seen_red(before: str | None, copied: Store) -> None:
    with STAGES.registered(SURVEY, before), GATES.registered(PASSES_ALL_ON):
        results = build_tiny_in(copied)
        snapshot_id = next(result.snapshot_id for result in results if result.snapshot_id)

        assert [verdict.sentence for result in results for verdict in result.verdicts if not verdict.passed] == []
        assert promote(copied, "tiny", snapshot_id).new == snapshot_id
        assert main(["why", "heron", "src/rng.c", "--corpus", "tiny", "--store", str(copied.root)]) == 0


SIFT = Stage(
    "sift",
    1,
    "Drop the last document of large sources.",
    "pipeline.core.params:Params",
    f"{__name__}:sift",
    (
        PartKind(
            "sift/part",
            {"drop_last": f"{__name__}:drop_last", JOIN: JOIN_SHARDS},
            (
                StageTable(ENRICHED, EnrichedDocument, "language"),
                StageTable("graded.parquet", EnrichedDocument, "split"),
                StageTable(DROPPED, DroppedRecord),
            ),
        ),
    ),
    (),
)
NO_ROW_LOST = Gate("no_row_lost_in_sift", "sift", CONSERVED, NONE, "Every row is kept or dropped with a reason.")


def sift(context: StageContext[Params]) -> StageOutput:
    """Make one part for each source, or each shard of one."""
    part_of = lambda name, texts: Part(name, "drop_last", context.params, {"texts": texts.object_id})  # noqa: E731
    wanted = {name: shard_parts(name, context.read(part), part_of) for name, part in context.inputs.items()}
    made, failures = make_joined(context, wanted)
    parts = {name: part.object_id for name, part in made.items()}
    return StageOutput(parts, total(part.report for part in made.values()), failures)


def drop_last(job: PartJob) -> PartOutput:
    """Part function: all documents but one of many. Sources with few, such as those of the canaries, are passed on."""
    texts = job.inputs["texts"].table(ENRICHED)
    num_kept = texts.num_rows - (texts.num_rows > 10)
    lost = [
        DroppedRecord(row["source"], row["path"], row["document_id"], len(row["text"].encode()), "last", "", None, None)
        for row in texts.slice(num_kept).to_pylist()
    ]
    kept = texts.slice(0, num_kept)
    tables = {ENRICHED: kept, "graded.parquet": kept, DROPPED: table_of_records(DroppedRecord, lost)}
    return PartOutput(tables, StageReport(texts.num_rows, num_kept, {"last": len(lost)}))


def test_what_a_stage_drops_before_tokenize_is_in_no_row_and_the_snapshot_is_promoted(
    copied: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoke, "_run_trainer", sound_answer)
    with STAGES.registered(SIFT, "tokenize"), GATES.registered(NO_ROW_LOST):
        results = build_tiny_in(copied)
        assert [verdict for result in results for verdict in result.verdicts if not verdict.passed] == []
        snapshot_id = next(result.snapshot_id for result in results if result.snapshot_id)
        reports = {result.stage: result.report for result in results}
        number = {stage: report.rows_out for stage, report in reports.items()}

        assert number["tokenize"] == number["sift"] == number["enrich"] - reports["sift"].dropped["last"]
        assert promote(copied, "tiny", snapshot_id).new == snapshot_id
        assert [*stored_build(copied, "tiny", "live").stages] == [*number]
    with pytest.raises(
        MissingError, match="stage sift is one of those that made it, and this program has registered none"
    ):
        stored_build(copied, "tiny", "live")


def test_a_stage_that_could_lose_rows_needs_a_gate(copied: Store) -> None:
    with (
        STAGES.registered(SHORTEN, "enrich"),
        pytest.raises(ParamsError, match="no gate of it judges num_rows_not_cons"),
    ):
        build_tiny_in(copied)


def test_a_gate_needs_a_stage(copied: Store) -> None:
    with (
        GATES.registered(FEW_ARE_LONG),
        pytest.raises(ParamsError, match="its stage is shorten; expected one of collect"),
    ):
        build_tiny_in(copied)
