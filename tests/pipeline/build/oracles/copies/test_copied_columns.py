"""Columns that a stage copies are compared with what they were copied from, all of them."""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.copies.copied_columns import copied_columns, miscopied_documents, table_of_documents
from pipeline.contracts.stage import StageTable
from pipeline.core.table_names import DOCUMENTS, ENRICHED, FILES, TOKENS
from pipeline.stages.stages import STAGES, kinds_with

TABLES = {table.name: table for stage in STAGES for kind in stage.parts for table in kind.tables}
BEFORE = [(ENRICHED, DOCUMENTS), (TOKENS, ENRICHED)]
ROW = {"document_id": "1", "source": "one", "path": "a.c", "split": "train", "text_sha256": "0", "license": "MIT"}
REST: dict[str, Any] = {"license_class": "allowed", "text": "int a;", "provenance": "change", "commit_hash": None}
CHRONOLOGY = {"filepath_stable_id": None, "file_local_commit_index": None}


def part(table: str, *rows: dict[str, Any]) -> Any:
    content = pa.Table.from_pylist(list(rows))
    return SimpleNamespace(kind=kinds_with(table)[0], table=lambda name, columns: content.select(list(columns)))


def miscopied(table: str, before: str, *rows: dict[str, Any]) -> list[str]:
    known = ROW | REST | CHRONOLOGY
    made_of = part(before, known | {"document_id": "2", "path": "b.c"}, known)
    return [path for _, path in miscopied_documents(part(table, *rows), TABLES[table], [None, made_of])]


@pytest.mark.parametrize(("table", "before"), BEFORE)
def test_every_column_with_the_name_of_one_before_is_copied_or_said_to_be_made(table: str, before: str) -> None:
    names = {field.name for field in fields(TABLES[table].record)} & {
        field.name for field in fields(TABLES[before].record)
    }

    assert {*copied_columns(TABLES[table], TABLES[before]), *TABLES[table].made} == names
    assert {"license", "license_class", "split", *CHRONOLOGY} <= {*copied_columns(TABLES[table], TABLES[before])}


@pytest.mark.parametrize(("table", "before"), BEFORE)
def test_a_document_with_another_value_in_any_of_them_is_seen(table: str, before: str) -> None:
    row = ROW | REST | CHRONOLOGY
    columns = [name for name in copied_columns(TABLES[table], TABLES[before]) if name not in ("document_id", "path")]

    assert miscopied(table, before, row, row | {"document_id": "3"}) == []
    assert [name for name in columns if miscopied(table, before, row | {name: "other"}) != ["a.c"]] == []
    assert miscopied(table, before, row | {"license": None}, row) == ["a.c"]
    assert miscopied(table, before, row | {"path": "b.c"}) == ["b.c"]


def test_files_have_no_documents_to_copy() -> None:
    assert table_of_documents(kinds_with(FILES)[0]) is None
    assert [getattr(table_of_documents(kinds_with(name)[0]), "name", None) for name in (DOCUMENTS, ENRICHED)] == [
        DOCUMENTS,
        ENRICHED,
    ]
    assert miscopied_documents(part(ENRICHED), StageTable(ENRICHED, TABLES[ENRICHED].record), [part(FILES)])
