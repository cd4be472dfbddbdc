"""A file is what its columns say, a document has its own name, and only what a compiler read says what compilers know."""

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_files import (
    OF_COMPILERS,
    is_code,
    misbuilt_documents,
    misnamed_documents,
    misread_files,
    misread_tree,
    misrevised_documents,
    misstated_evidence,
    uncompiled_documents,
)
from pipeline.core.digests import document_id
from pipeline.lexing.languages import is_source, source_suffixes
from pipeline.stages.normalize.params import FilterParams
from tests.support.made.whole_part import WholePart

LIMITS = {"max_file_bytes": 100, **FilterParams().model_dump(mode="json")}
ASKED: dict[str, Any] = {
    "suffixes": [".c", ".C", ".h"],
    "commented_like_c": [".c", ".h"],
    "limits": LIMITS,
    "withdrawn": ["other/a.c"],
    "listed": ["archive", "jsonl"],
    "pins": {
        "one": {"kind": "archive", "include": [], "exclude": []},
        "two": {"kind": "archive", "include": ["src/**"], "exclude": []},
        "other": {"kind": "archive"},
        "lines": {"kind": "jsonl"},
        "of a program": {"kind": "of_a_program"},
    },
}


class Files(WholePart):
    """The files that a stage read."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.object_id, self.kind = "0" * 64, "collect/part"
        self.identity: dict[str, Any] = {}
        self._table = pa.table({"path": list(contents), "content": list(contents.values())})

    def table(self, name: str, columns: Any = None) -> pa.Table:
        """Return the columns."""
        return self._table if columns is None else self._table.select(columns)

    def has(self, name: str) -> bool:
        """Return that there are no other files."""
        return False

    def json(self, name: str) -> Any:
        """Return nothing."""

    def file(self, name: str) -> Path:
        """Return a name."""
        return Path(name)


@pytest.mark.parametrize("path", ["a.c", "x/a.C", "a.H", "a.txt", ".c", "x/.c", "a.", "c", "a.c/b", "a.tar.c", "a. c"])
def test_code_is_what_collect_reads_as_a_source_file(path: str) -> None:
    assert is_code(path, source_suffixes()) == is_source(path)


@pytest.mark.parametrize(
    "other", [{}, {"num_bytes": 4}, {"is_evidence": True}, {"blob_sha256": "0"}, {"content": b"xyz"}]
)
def test_a_file_is_what_its_columns_say(other: dict[str, Any]) -> None:
    git_blob_id = "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"  # printf abc | git hash-object --stdin
    sha256 = hashlib.sha256(b"abc").hexdigest()
    row = {
        "source": "one",
        "path": "a.c",
        "content": b"abc",
        "git_blob_id": git_blob_id,
        "blob_sha256": sha256,
        "num_bytes": 3,
        "is_evidence": False,
    }
    assert list(misread_files(pa.Table.from_pylist([row | other]), [".c"])) == ([("one", "a.c")] if other else [])


@pytest.mark.parametrize(
    ("listed", "holds"),
    [
        ({("one", "a.c"): {"f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f", "0"}}, True),
        ({("one", "a.c"): {"0"}}, False),
        ({("one", "b.c"): {"0"}, ("two", "a.c"): {"0"}}, True),
    ],
)
def test_a_file_of_a_build_has_bytes_that_are_listed_under_its_name(listed: Any, holds: bool) -> None:
    assert list(misread_tree("one", Files({"a.c": b"abc"}), listed)) == ([] if holds else [("one", "a.c")])


@pytest.mark.parametrize("field", ["", "source", "path", "text_sha256", "document_id"])
def test_a_document_has_its_own_name(field: str) -> None:
    named = {"source": "one", "path": "a.c", "text_sha256": "1" * 64}
    row = named | {"document_id": document_id(*named.values())} | ({field: "2" * 64} if field else {})

    assert list(misnamed_documents(pa.Table.from_pylist([row]))) == ([(row["source"], row["path"])] if field else [])


def test_a_document_is_of_the_revision_of_its_file() -> None:
    tables = (pa.table({"source": ["one"], "path": ["a.c"], "revision": [each]}) for each in "112")
    files, same, other = (SimpleNamespace(table=lambda _, names, found=each: found.select(names)) for each in tables)

    assert list(misrevised_documents(files, same)) == []
    assert list(misrevised_documents(files, other)) == [("one", "a.c")]


def test_a_suffix_counts_as_written_too() -> None:
    assert is_code("a.C", [".C"])
    assert not is_code("a.c", [".C"])


def test_a_document_that_no_compiler_read_says_nothing_that_only_a_compiler_knows() -> None:
    sound: dict[str, Any] = {"path": "a.c", "provenance": "degraded", "build_context": None}
    names = ("symbols", "calls", "type_references", "definitions_and_uses", "symbol_starts", "symbol_ends")
    sound |= dict.fromkeys(names) | {"provenance_detail": "max_error_fraction", "provenance_codes": [2, 3]}
    changes: list[dict[str, Any]] = [
        {"provenance": "build_aware"},
        {"provenance_detail": "tool_failed: no compiler"},
        {"provenance_detail": "x"},
        {"build_context": "{}"},
        {"provenance_codes": [3, 1]},
        *({name: []} for name in names),
    ]
    text, numbers = pa.string(), pa.list_(pa.uint64())
    kinds = {
        name: text if name in ("path", "provenance", "provenance_detail", "build_context") else numbers
        for name in sound
    }
    tables = (pa.Table.from_pylist([sound | change], schema=pa.schema(kinds)) for change in ({}, *changes))

    assert [len(list(uncompiled_documents("one", table))) for table in tables] == [0, *[1] * len(changes)]
    silent = pa.Table.from_pylist([sound | {"provenance_codes": None}], schema=pa.schema(kinds))
    assert list(uncompiled_documents("one", silent)) == []
    change = sound | {"provenance": "change", "provenance_detail": "commit"}
    assert list(uncompiled_documents("one", pa.Table.from_pylist([change], schema=pa.schema(kinds)))) == []


@pytest.mark.parametrize(
    ("evidence", "flaws"),
    [
        ({"LICENSE": b"MIT\n", "x/REUSE.toml": b"version = 1\n"}, []),
        ({"LICENSE": b"MIT\n"}, ["x/REUSE.toml"]),
        ({"LICENSE": b"GPL\n", "x/REUSE.toml": b"version = 1\n"}, ["LICENSE"]),
        ({"LICENSE": b"MIT\n", "x/REUSE.toml": b"version = 1\n", "COPYING": b"MIT\n"}, ["COPYING"]),
        ({"LICENSE": b"MIT\n", "x/REUSE.toml": b"version = 1\n", "a.c.license": b"tag\n"}, []),
    ],
)
def test_evidence_beside_shards_is_that_of_the_files(evidence: dict[str, bytes], flaws: list[str]) -> None:
    stored = {"LICENSE": b"MIT\n", "a.c": b"int a;\n", "a.c.license": b"tag\n", "x/REUSE.toml": b"version = 1\n"}
    shards = [_digested(dict(list(stored.items())[:2])), _digested(dict(list(stored.items())[2:]))]

    assert list(misstated_evidence("one", Files(evidence), shards, [".c"])) == [("one", path) for path in flaws]


def _digested(contents: dict[str, bytes]) -> Any:
    rows = {"path": list(contents), "blob_sha256": [hashlib.sha256(each).hexdigest() for each in contents.values()]}
    return SimpleNamespace(table=lambda name, columns: pa.table(rows).select(columns))


COMPILED = {
    "path": "a.cpp",
    "provenance": "build_aware",
    "provenance_codes": [1],
    "file_local_commit_index": None,
    "build_context": "{}",
    **{name: [1, 2] for name in OF_COMPILERS[1:5]},
    "symbol_starts": [0, 4],
    "symbol_ends": [4, 5],
}
UNREAD = dict.fromkeys(OF_COMPILERS)


@pytest.mark.parametrize(
    ("change", "is_sound"),
    [
        ({}, True),
        ({"provenance": "syntax_only", "provenance_codes": [2], **UNREAD}, True),
        ({"provenance": "syntax_only", "provenance_codes": None, **UNREAD}, True),
        ({"provenance": "syntax_only", "file_local_commit_index": 0, "provenance_codes": [2], **UNREAD}, False),
        ({"provenance": "change", "file_local_commit_index": 0, "provenance_codes": [4], **UNREAD}, True),
        ({"provenance": "change", "provenance_codes": [4], **UNREAD}, False),
        ({"provenance": "degraded", "provenance_codes": [3]}, True),
        ({"provenance": "degraded", "provenance_codes": None}, True),
        (UNREAD, False),
        ({"build_context": None}, False),
        ({"calls": None}, False),
        ({"calls": [1]}, False),
        ({"symbol_starts": [0, 3]}, False),
        ({"provenance": "syntax_only", "provenance_codes": [2]}, False),
        ({"provenance": "syntax_only", **UNREAD}, False),
        ({"provenance": "degraded"}, False),
        ({"provenance": "change"}, False),
    ],
)
def test_a_compiled_document_has_all_that_a_compiler_says_and_others_nothing(
    change: dict[str, Any], is_sound: bool
) -> None:
    table = pa.Table.from_pylist([COMPILED | change])
    stored: Any = SimpleNamespace(table=lambda name, columns: table.select(columns), has=lambda name: True)

    assert list(misbuilt_documents("one", stored, {"cmake": True})) == ([] if is_sound else [("one", "a.cpp")])
