"""Each comparison of an audit counts what it is there for, over rows in memory, and nothing else."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.audit import audit, audit_part, population, request_facts
from pipeline.build.canaries.memory_build import MemoryObject
from pipeline.build.oracles.audited_files import OF_COMPILERS
from pipeline.build.recipes import TINY
from pipeline.contracts.gates import CONSERVED
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.digests import document_id
from pipeline.core.params import Params
from pipeline.core.records import Document, DroppedRecord, EnrichedDocument, ListedFile, SourceFile
from pipeline.core.schema import arrow_schema
from pipeline.core.table_names import COMPILER_RECORD, ENRICHED
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store

PIN = SimpleNamespace(name="one", weight=2.0, identity=lambda: {"kind": "sdist", "revision": "r"})
EMPTY_BLOB, EMPTY_SHA256 = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
)
"""The digests of the empty file."""


def rows_of(record: type, *rows: dict[str, Any]) -> pa.Table:
    """Return rows of a record: fields that are not given are empty."""
    schema = arrow_schema(record)
    empty = {field.name: None if field.nullable else _empty(field.type) for field in schema}
    return pa.Table.from_pylist([empty | row for row in rows], schema=schema)


def _empty(kind: pa.DataType) -> Any:
    if pa.types.is_large_list(kind):
        return []
    return {"large_string": "", "large_binary": b"", "bool": False}.get(str(kind), 0)


BLOCK = {"cmake": True}


def stored(kind: str, **tables: pa.Table) -> MemoryObject:
    """Return a part with tables, named by the first word of their files."""
    found = {f"{name}.parquet": table for name, table in tables.items()}
    return MemoryObject("id", kind, {}, PartOutput(found), Path())


def collected(files: list[str], dropped: list[tuple[str, ...]], names: list[dict[str, Any]], **request: Any) -> Any:
    """Audit a collected source: empty files, drops with their reasons, and its listing."""
    file = {"source": "one", "git_blob_id": EMPTY_BLOB, "blob_sha256": EMPTY_SHA256, "revision": "r"}
    drops = [
        {"source": "one", "path": path, "reason": reason, "num_bytes": 1 << 40, "detail": "".join(detail)}
        for path, reason, *detail in dropped
    ]
    listed = [{"source": "one", "git_blob_id": EMPTY_BLOB, "num_bytes": 0} | row for row in names]
    after = {
        "one": stored(
            "collect/part",
            files=rows_of(SourceFile, *(file | {"path": path} for path in files)),
            dropped=rows_of(DroppedRecord, *drops),
        ),
        "one.listing": stored("collect/listing", listed=rows_of(ListedFile, *listed)),
    }
    facts = {**request_facts([PIN], TINY.params), "stage": "collect", **request}
    inputs: dict[str, Any] = {f"after/{name}": part for name, part in after.items()}
    return audit(PartJob("audit", Params(), inputs, facts, {})).report


def test_the_request_of_a_build_is_all_that_audits_know_of_it() -> None:
    decision = {"source": "one", "path": "a.c", "license": "MIT"}
    decisions = [SimpleNamespace(source=name, facts=lambda: decision) for name in ("one", "gone")]
    pins = [PIN, SimpleNamespace(name="gone", weight=1.0, identity=dict)]
    facts = request_facts(pins, TINY.params, ["gone"], decisions)

    assert facts["decisions"] == [decision]
    assert facts["pins"] == {"one": {"kind": "sdist", "revision": "r"}}
    assert (facts["weights"], facts["withdrawn"]) == ({"one": 2.0}, ["gone"])
    assert "decisions" not in request_facts(pins, TINY.params, ["gone", "one"], decisions)


@pytest.mark.parametrize(
    ("stage", "after", "read"),
    [
        ("collect", {}, {"withdrawn"}),
        ("normalize", {}, {"decisions", "evaluation_sha256", "commented_like_c"}),
        ("enrich", {}, {"commented_like_c", "languages", "max_error_fraction"}),
        ("tokenize", {}, set()),
        ("verify", {"snapshot": "id"}, {"weights", "licenses"}),
    ],
)
def test_an_audit_is_of_another_work_for_what_its_own_stage_reads(
    stage: str, after: dict[str, str], read: set[str]
) -> None:
    request = request_facts([PIN], TINY.params) | {"decisions": []}
    identity = audit_part(stage, {}, after, request).identity

    read_by_some = {"withdrawn", "decisions", "evaluation_sha256", "commented_like_c", "languages"}
    read_by_some |= {"max_error_fraction", "weights", "licenses"}
    assert read_by_some & identity.keys() == read
    assert isinstance(identity["audit"], int)


def test_drops_of_a_stage_before_are_not_those_of_a_stage_that_passes_its_parts_on() -> None:
    part = stored("collect/part", files=rows_of(SourceFile), dropped=rows_of(DroppedRecord, {"path": "a.c"}))

    assert population({"one": part}, "blob_sha256", own="collect").dropped.total() == 1
    assert population({"one": part}, "blob_sha256", own="enrich").dropped.total() == 0


def test_a_document_counts_whatever_its_name_is_and_a_file_only_as_code() -> None:
    rows = [{"source": "one", "path": path} for path in ("a.c", "a.txt")]
    files, documents = rows_of(SourceFile, *rows), rows_of(Document, *rows)

    assert population({"one": stored("collect/part", files=files)}, "x", suffixes=[".c"]).kept.total() == 1
    assert population({"one": stored("normalize/rules", documents=documents)}, "x", suffixes=[".c"]).kept.total() == 2


LINES = {"pins": {"one": {"kind": "jsonl", "revision": "r"}}, "withdrawn": ["one/l*"]}
"""Request of a source of JSON lines."""
SOUND_SOURCES: dict[str, tuple[list[str], list[tuple[str, str]], list[dict[str, Any]]]] = {
    "file": (["a.c"], [], [{"path": "a.c"}]),
    "drop of another name": ([], [("b.c", "link")], [{"path": "a.c", "other_path": "b.c", "git_blob_id": None}]),
    "drop that may have another name": (
        [],
        [("a.c", "link")],
        [{"path": "a.c", "other_path": "b.c", "git_blob_id": None}],
    ),
    "name that is another's other name": (
        [],
        [("a.c", "link"), ("b.c", "link")],
        [{"path": "a.c", "other_path": "b.c", "git_blob_id": None}, {"path": "b.c", "git_blob_id": None}],
    ),
    "optional file that was taken": (["a.c"], [], [{"path": "a.c", "is_optional": True}]),
    "optional file that was dropped": (
        [],
        [("a.c", "link")],
        [{"path": "a.c", "is_optional": True, "git_blob_id": None}],
    ),
    "optional file that was not taken": ([], [], [{"path": "a.c", "is_optional": True}]),
    "optional file that was not taken beside one of its name": (
        ["b.c"],
        [("a.c", "link")],
        [
            {"path": "a.c", "git_blob_id": None},
            {"path": "b.c", "is_optional": True, "git_blob_id": None},
            {"path": "b.c"},
        ],
    ),
    "drop with a name of two bytes a letter": (
        [],
        [("é.c", "link")],
        [{"path": "%C3%A9.c", "git_blob_id": None}],
    ),
}
"""Files, drops and listings of sources of which nothing is lost."""


@pytest.mark.parametrize("name", SOUND_SOURCES)
def test_names_of_a_listing_are_those_of_files_and_drops(name: str) -> None:
    files, dropped, listed = SOUND_SOURCES[name]
    report = collected(files, dropped, listed)

    assert report.measures[CONSERVED] == 0
    assert report.rows_in == len(files) + len(dropped)


@pytest.mark.parametrize("reason", ["bad_line", "withdrawn"])
def test_a_line_that_was_dropped_and_a_file_of_its_number_are_two(reason: str) -> None:
    dropped = [("line 1", reason, "line 1: no text"), ("line 1", "other_language", "line 2")]
    bad = {"path": "a.c", "other_path": "line 1", "git_blob_id": None}
    of_that_name = {"path": "line%201", "other_path": "line 2"}

    for listed in ([bad, of_that_name], [of_that_name, bad]):
        report = collected([], dropped, listed, **LINES)
        assert report.measures[CONSERVED] == 0


def test_a_license_that_a_line_names_beside_a_file_of_its_name_that_was_dropped_loses_nothing() -> None:
    listed = [
        {"path": "a.c", "other_path": "line 1"},
        {"path": "b.c", "other_path": "line 2", "git_blob_id": "0" * 40, "num_bytes": 1 << 40},
        {"path": "b.c", "is_optional": True, "git_blob_id": None},
    ]

    report = collected(["a.c", "b.c"], [("b.c", "too_large", "line 2")], listed, **LINES)
    assert report.measures[CONSERVED] == 0


@pytest.mark.parametrize(
    ("files", "dropped", "listed"),
    [
        ([], [], [{"path": "a.c"}]),
        (["a.c"], [], []),
        (["a.c"], [], [{"path": "a.c", "git_blob_id": "0" * 40}]),
        ([], [("é.c", "too_large")], [{"path": "%C3%A9.c", "num_bytes": 1}]),
        ([], [("é.c", "link")], [{"path": "%C3%A9.c"}]),
    ],
    ids=["lost", "from nowhere", "of another content", "of a size that is allowed", "of a regular file"],
)
def test_a_name_that_a_listing_contradicts_is_counted(
    files: list[str], dropped: list[tuple[str, str]], listed: list[dict[str, Any]]
) -> None:
    assert collected(files, dropped, listed).measures[CONSERVED] == 1


def test_of_a_kind_of_source_that_lists_nothing_every_row_is_taken_to_be_listed() -> None:
    report = collected(["a.c"], [("b.c", "link")], [], listed=[])

    assert (report.rows_in, report.measures[CONSERVED]) == (2, 0)


def test_a_document_without_bytes_of_provenance_is_no_fault() -> None:
    name = {"source": "one", "path": "a.c", "text_sha256": EMPTY_SHA256}
    row = name | {"document_id": document_id(*name.values()), "provenance": "degraded", "provenance_codes": None}
    part = {"after/one": stored("enrich/part", enriched=rows_of(EnrichedDocument, row))}
    identity = {**request_facts([PIN], TINY.params), "stage": "enrich"}
    report = audit(PartJob("audit", Params(), part, identity, {})).report  # type: ignore[arg-type]

    assert report.measures["num_documents_without_provenance"] == 0


def test_a_stage_before_all_files_has_no_rows() -> None:
    first = replace(STAGES["enrich"], name="first", parts=())
    with STAGES.registered(first, before="collect"):
        identity = {**request_facts([PIN], TINY.params), "stage": "first"}
        report = audit(PartJob("audit", Params(), {}, identity, {})).report

    assert (report.rows_in, report.rows_out) == (0, 0)


def test_a_snapshot_that_names_other_held_out_sources_is_counted(tiny_store: Store) -> None:
    verify_id = tiny_store.ref("tiny", "verify")
    assert verify_id
    stored = tiny_store.read(tiny_store.read(verify_id).manifest.inputs["evidence/audit"])
    inputs = {label: tiny_store.read(object_id) for label, object_id in stored.manifest.inputs.items()}
    identity = stored.manifest.identity

    def num_elsewhere(held_out: list[str]) -> float:
        rule = {**identity["held_out"], "sources": held_out}
        job = PartJob("audit", Params(), inputs, {**identity, "held_out": rule}, {})
        return audit(job).report.measures["num_documents_in_another_split"]

    assert num_elsewhere(["heron"]) == 0
    assert num_elsewhere([]) > 1
    assert num_elsewhere(["heron", "of_no_build"]) == 0


@pytest.mark.parametrize(
    ("build", "files", "count"), [(BLOCK, {COMPILER_RECORD: b"{}"}, 0), (BLOCK, {}, 1), (None, {}, 1)]
)
def test_what_a_compiler_says_is_believed_of_a_source_that_was_built_as_asked(
    build: Any, files: dict[str, bytes], count: int
) -> None:
    name = document_id("one", "a.c", EMPTY_SHA256)
    row = {"source": "one", "path": "a.c", "text_sha256": EMPTY_SHA256, "document_id": name}
    row |= {"license": "MIT", "license_class": "allowed"}
    compiled = {"build_context": "{}", **{column: [1] for column in OF_COMPILERS[1:]}}
    enriched = rows_of(EnrichedDocument, row | {"language": "c", "provenance": "build_aware", **compiled})
    inputs: dict[str, Any] = {
        "before/one": stored("normalize/rules", documents=rows_of(Document, row)),
        "after/one": MemoryObject("id", "enrich/part", {}, PartOutput({ENRICHED: enriched}, files=files), Path()),
    }
    facts = request_facts([PIN], TINY.params) | {"stage": "enrich"}
    facts["pins"]["one"]["build"] = build

    assert audit(PartJob("audit", Params(), inputs, facts, {})).report.measures[CONSERVED] == count


def test_a_document_is_compared_with_files_alone() -> None:
    """Parts that hold documents, passed on by a stage of a program, or of a source that was not collected, have none."""
    row = {"source": "one", "path": "a.c", "text_sha256": EMPTY_SHA256, "revision": "r"}
    row |= {"document_id": document_id("one", "a.c", EMPTY_SHA256), "license_evidence": "header"}
    part = stored("normalize/rules", documents=rows_of(Document, row), dropped=rows_of(DroppedRecord))
    facts = request_facts([PIN], TINY.params) | {"stage": "normalize"}

    for before in ({}, {"before/one": part}):
        inputs: dict[str, Any] = {**before, "after/one": part}
        report = audit(PartJob("audit", Params(), inputs, facts, {})).report
        assert report.rows_out == 1
        assert report.measures["max_redacted_fraction"] == 0
