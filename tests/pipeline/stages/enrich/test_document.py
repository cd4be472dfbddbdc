"""Parsed documents: the provenance of a document and of each of its bytes."""

from typing import Any

import pytest

from pipeline.core.records import CHRONOLOGY, Provenance
from pipeline.stages.enrich.compiler.compiler_index import FileIndex
from pipeline.stages.enrich.document import parse_document, record_of
from pipeline.stages.enrich.params import SyntaxParams

COLUMNS = ("document_id", "source", "split", "text_sha256")


def row(text: str) -> dict[str, Any]:
    return {"path": "a.cc", "text": text, **dict.fromkeys(COLUMNS, ""), **dict.fromkeys(CHRONOLOGY)}


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


def test_a_change_is_not_parsed_and_has_a_chunk_for_each_side_of_a_hunk() -> None:
    text = '// commit: A\n// path: a.cc\n//@@ before\n#include "b.h"\n//@@ after\nint a(;\n'
    change = row(text) | {"filepath_stable_id": "a", "file_local_commit_index": 0}
    record = record_of(parse_document(change, SyntaxParams(), FileIndex(True, "")), 0)

    assert (record.provenance, record.provenance_detail, record.language) == ("change", "commit", "cpp")
    assert [
        text[start:end].split("\n")[0] for start, end in zip(record.chunk_starts, record.chunk_ends, strict=True)
    ] == [*("// commit: A", "//@@ before", "//@@ after")]
    assert (record.includes, record.node_starts, record.symbols, list(record.provenance_codes or ())) == (
        (),
        None,
        None,
        [4],
    )
