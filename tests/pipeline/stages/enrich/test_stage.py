"""The stage: what an enriched table holds, what is counted, and what a part depends on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.engines.part_task import write_output
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.digests import document_id, text_sha256
from pipeline.core.records import ChunkKind, Document, EnrichedDocument
from pipeline.core.schema import arrow_schema, table_of_records
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.enrich.params import EnrichParams, SyntaxParams
from pipeline.stages.enrich.stage import enrich_source, measure_enriched
from pipeline.store.store import Store

BROKEN = "".join(f"int unparsable{n}[ = ] ) > ( {{ number{n * n};\n" for n in range(20))


def document(source: str, path: str, text: str) -> Document:
    sha256 = text_sha256(text)
    return Document(
        document_id=document_id(source, path, sha256),
        source=source,
        revision="0" * 64,
        path=path,
        split="train",
        text=text,
        text_sha256=sha256,
        blob_sha256=hashlib.sha256(text.encode()).hexdigest(),
        num_bytes=len(text.encode()),
        encoding="ascii",
        edits=(),
        license="MIT",
        license_class="permissive",
        license_branch="MIT",
        license_evidence="file",
        license_detail="",
        num_redactions=0,
        scores="{}",
        repo_stable_id=None,
        filepath_stable_id=None,
        file_local_commit_index=None,
        commit_hash=None,
    )


def enrich(
    store: Store, texts: Mapping[str, str], params: SyntaxParams | None = None, dropped: tuple[str, ...] = ()
) -> PartOutput:
    """Make the part of one source with `texts` by path, of which those at the paths `dropped` lost as duplicates."""
    documents = [document("made", path, text) for path, text in texts.items()]
    folder = store.root / "scratch"
    folder.mkdir(parents=True)
    table = table_of_records(Document, documents)
    write_output(folder, PartOutput({"documents.parquet": table}, StageReport(len(documents), len(documents))))
    object_id = store.commit(folder, "normalize/rules", {}, {})
    lost = sorted(item.document_id for item in documents if item.path in dropped)
    job = PartJob("made", params or SyntaxParams(), {"documents": store.read(object_id)}, {"dropped": lost}, {})
    output = enrich_source(job)
    return replace(output, report=measure_enriched(job, output))


class MemoryTables:
    """An object with one table, in memory."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def table(self, name: str, columns: Sequence[str]) -> pa.Table:
        return self._table.select(list(columns))


def test_chunks_that_differ_from_the_text_are_counted_in_bytes() -> None:
    documents = table_of_records(Document, [document("made", "a.cc", "int a;\n\nint b;\n")])
    job = PartJob("made", SyntaxParams(), {"documents": MemoryTables(documents)}, {"dropped": []}, {})
    output = enrich_source(job)
    (row,) = rows(output)
    kept = {"chunk_starts": row["chunk_starts"][:1], "chunk_ends": row["chunk_ends"][:1]}  # type: ignore[index]
    for change, expected in ((kept, len("int b;\n")), ({"text": "int a;\n\nint c;\n"}, 1), ({}, 0)):
        table = pa.Table.from_pylist([row | change], schema=output.tables["enriched.parquet"].schema)
        report = measure_enriched(job, replace(output, tables={"enriched.parquet": table}))
        assert report.measures["num_bytes_changed"] == expected


def rows(output: PartOutput) -> list[dict[str, object]]:
    found: list[dict[str, object]] = output.tables["enriched.parquet"].to_pylist()
    return found


def test_a_row_holds_the_text_and_the_structure_beside_it(store: Store) -> None:
    output = enrich(store, {"a.c": '#include "b.h"\nint f(void) {\n  return 1;\n}\n'})
    (row,) = rows(output)

    assert output.tables["enriched.parquet"].schema == arrow_schema(EnrichedDocument)
    assert (row["language"], row["provenance"], row["provenance_detail"]) == ("c", "syntax_only", "no_database")
    assert row["chunk_starts"] == [0, 15, 27]
    assert row["chunk_ends"] == [15, 27, 43]
    kinds = [list(ChunkKind)[code].value for code in row["chunk_kinds"]]  # type: ignore[attr-defined]
    assert kinds == ["preamble", "func_sig", "func_body"]
    assert row["chunk_levels"] == [0, 0, 0]
    assert row["includes"] == ['"b.h"']
    assert row["error_fraction"] == 0


def test_the_columns_of_the_compiler_index_are_absent(store: Store) -> None:
    (row,) = rows(enrich(store, {"a.c": "int x;\n"}))

    assert [row[name] for name in ("build_context", "symbols", "calls", "type_references")] == [None] * 4


def test_offsets_count_bytes_and_not_characters(store: Store) -> None:
    (row,) = rows(enrich(store, {"a.cc": "int größe;\n\nint f();\n"}))

    assert row["chunk_starts"] == [0, 14]


def test_rows_are_in_order_headers_first(store: Store) -> None:
    output = enrich(store, {"a.c": '#include "z.h"\n', "z.h": '#include "m.h"\n', "m.h": "int m;\n"})

    assert [(row["path"], row["order_in_source"]) for row in rows(output)] == [("m.h", 0), ("z.h", 1), ("a.c", 2)]


def test_documents_that_lost_are_left_out(store: Store) -> None:
    output = enrich(store, {"a.c": "int a;\n", "b.c": "int b;\n", "c.c": "int c;\n"}, dropped=("b.c",))

    assert [row["path"] for row in rows(output)] == ["a.c", "c.c"]
    assert (output.report.rows_in, output.report.rows_out) == (2, 2)


def test_a_source_that_lost_everything_still_has_its_table(store: Store) -> None:
    output = enrich(store, {"a.c": "int a;\n"}, dropped=("a.c",))

    assert output.tables["enriched.parquet"].num_rows == 0
    assert output.report.measures["num_chunks"] == 0


@pytest.mark.parametrize(
    ("text", "params", "detail"),
    [
        (BROKEN, SyntaxParams(), "max_error_fraction"),
        ("int x;\n" * 200, SyntaxParams(max_num_bytes=1_000), "max_num_bytes"),
        ("a<" * 20_000, SyntaxParams(max_operations_per_byte=8), "max_operations_per_byte"),
    ],
)
def test_a_text_that_cannot_be_parsed_is_degraded_with_the_reason(
    store: Store, text: str, params: SyntaxParams, detail: str
) -> None:
    output = enrich(store, {"a.cc": text, "b.cc": "int x;\n"}, params)

    assert {row["path"]: (row["provenance"], row["provenance_detail"]) for row in rows(output)} == {
        "a.cc": ("degraded", detail),
        "b.cc": ("syntax_only", "no_database"),
    }
    assert output.report.measures["num_documents_degraded"] == 1
    assert output.report.measures["num_documents_syntax_only"] == 1


def test_the_report_counts_what_the_table_holds(store: Store) -> None:
    output = enrich(store, {"a.cc": "int a;\n@@@@\n", "b.cc": "int f() { return 1; }\n"})

    assert output.report.num_bytes_in == output.report.num_bytes_out == 12 + 22
    assert output.report.measures == {
        "num_documents_build_aware": 0,
        "num_documents_syntax_only": 2,
        "num_documents_degraded": 0,
        "num_chunks": 3,
        "num_bytes_changed": 0,
        "num_error_bytes": 4,
        "num_documents_with_errors": 1,
        "num_error_bytes_unblanked": 4,
        "num_documents_with_blanked_branches": 0,
        "num_bytes_build_aware": 0,
        "num_bytes_syntax_only": 30,
        "num_bytes_degraded": 4,
        "num_bytes_without_provenance": 0,
        "num_files_matched": 0,
        "num_files_indexed": 0,
        "num_files_partial": 0,
        "num_files_fallen_back": 0,
        "num_documents_tool_failed": 0,
        "num_sources_built": 0,
        "num_sources_out_of_band": 0,
        "num_local_paths_in_context": 0,
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three trees: `first` and `second` differ, `third` copies a file of `second`."""
    root = tmp_path_factory.mktemp("sources")
    tag = "// SPDX-License-Identifier: MIT\n"
    shared = tag + "".join(f"int step_{n}(int value) {{ return value + {n}; }}\n" for n in range(20))
    own = tag + "".join(f"double scale_{n}(double x) {{ return {n}.5 * x - {n * n}; }}\n" for n in range(5))
    files = {"first/a.c": tag + BROKEN, "second/b.c": shared, "third/a.c": shared, "third/c.c": own}
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    return root


def build(store: Store, sources: Path, *names: str) -> StageResult:
    """Return the result of enrich over the local trees of these names."""
    pins = tuple(
        LocalPin(name=name, path=sources / name, digest=tree_digest(sources / name), declared_license="MIT")
        for name in names
    )
    order = BuildRequest("made", CorpusParams(held_out=()), pins, "a test", 1)
    with open_build(order, store) as opened:
        return list(run_stages(opened, until="enrich"))[-1]


def test_a_new_source_leaves_the_parts_of_the_others_alone(store: Store, sources: Path) -> None:
    alone = build(store, sources, "first", "second")
    together = build(store, sources, "first", "second", "third")

    assert sorted(together.parts) == ["first", "second", "third"]
    assert {name: together.parts[name] for name in alone.parts} == dict(alone.parts)


def test_a_source_that_loses_a_document_has_a_new_part(store: Store, sources: Path) -> None:
    alone = build(store, sources, "third")
    together = build(store, sources, "second", "third")

    assert alone.parts["third"] != together.parts["third"]
    assert (alone.report.rows_out, together.report.rows_out) == (2, 2), "one copy of the shared file is left"


def test_a_second_build_does_not_run_the_stage_again(store: Store, sources: Path) -> None:
    first = build(store, sources, "first", "second")
    second = build(store, sources, "first", "second")

    assert (first.object_id, first.unchanged, second.unchanged) == (second.object_id, False, True)


def test_the_stage_reports_shares_of_all_its_documents(store: Store, sources: Path) -> None:
    measures = build(store, sources, "first", "second", "third").report.measures

    assert measures["degraded_fraction"] == measures["broken_fraction"] == pytest.approx(1 / 3)
    assert measures["syntax_only_fraction"] == pytest.approx(2 / 3)
    assert measures["build_aware_fraction"] == 0
    assert 0 < measures["error_byte_fraction"] < 1


def test_a_limit_of_the_gate_alone_makes_no_part_anew() -> None:
    assert EnrichParams(max_degraded_fraction=0.5).syntax == EnrichParams().syntax


def test_a_part_of_no_documents_has_the_schema_of_the_record(store: Store) -> None:
    table = enrich(store, {}).tables["enriched.parquet"]

    assert isinstance(table, pa.Table)
    assert table.schema == arrow_schema(EnrichedDocument)
