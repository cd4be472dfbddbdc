"""Parsed documents: the provenance of a document and of each of its bytes."""

from typing import Any

import pytest

from pipeline.core.records import Provenance
from pipeline.stages.enrich.compiler.compiler_index import FileIndex
from pipeline.stages.enrich.document import parse_document, record_of
from pipeline.stages.enrich.params import SyntaxParams

COLUMNS = ("document_id", "source", "split", "text_sha256", "filepath_stable_id", "file_local_commit_index")


def row(text: str) -> dict[str, Any]:
    return {"path": "a.cc", "text": text, **dict.fromkeys(COLUMNS, "")}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (None, (Provenance.SYNTAX_ONLY, "no_database")),
        (FileIndex(True, ""), (Provenance.BUILD_AWARE, "")),
        (FileIndex(False, "not_sampled"), (Provenance.SYNTAX_ONLY, "not_sampled")),
        (FileIndex(False, "tool_failed: crash"), (Provenance.DEGRADED, "tool_failed: crash")),
    ],
)
def test_the_index_of_a_file_decides_its_provenance(index: FileIndex | None, expected: tuple[Provenance, str]) -> None:
    parsed = parse_document(row("int a;\n"), SyntaxParams(), index)

    assert (parsed.provenance, parsed.provenance_detail) == expected


def test_bytes_that_were_skipped_or_did_not_parse_have_their_own_provenance() -> None:
    index = FileIndex(True, "", mentions=[(4, 5, 7, 0, 0, 1)], inactive=[(7, 14)])
    record = record_of(parse_document(row("int a;\nint b;\n@@@@\n"), SyntaxParams(), index), 0)

    assert (record.provenance_starts, record.provenance_codes) == ([0, 7, 14, 18], [1, 2, 3, 1])
    assert (record.symbol_starts, record.symbol_ends, record.symbols) == ((3,), (5,), (7,))
