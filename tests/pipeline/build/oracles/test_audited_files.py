"""A file is what its columns say, a document has its own name, and the reason of a drop holds, as the filters say."""

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
    miscalled_drops,
    misjudged_copies,
    misjudged_drops,
    mismeasured_drops,
    misnamed_documents,
    misread_files,
    misrevised_documents,
    misstated_drops,
    misstated_evidence,
    uncompiled_documents,
    unlike_copies,
)
from pipeline.core.digests import document_id
from pipeline.lexing.languages import is_source, source_suffixes
from pipeline.stages.normalize.filters.filters import first_broken, score
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


@pytest.mark.parametrize("field", ["", "source", "path", "text_sha256", "document_id"])
def test_a_document_has_its_own_name(field: str) -> None:
    named = {"source": "one", "path": "a.c", "text_sha256": "1" * 64}
    row = named | {"document_id": document_id(*named.values())} | ({field: "2" * 64} if field else {})

    assert list(misnamed_documents(pa.Table.from_pylist([row]))) == ([(row["source"], row["path"])] if field else [])


@pytest.mark.parametrize(
    ("source", "path", "reason", "num_bytes", "holds"),
    [
        ("one", "a.py", "other_language", 1, True),
        ("one", "a.c", "other_language", 1, False),
        ("one", "a.c", "too_large", 101, True),
        ("one", "a.c", "too_large", 100, False),
        ("one", "a.c", "excluded", 1, False),
        ("two", "a.c", "excluded", 1, True),
        ("one", "a.c", "withdrawn", 1, False),
        ("other", "a.c", "withdrawn", 1, True),
        ("one", "a.c", "link", 1, True),
        ("one", "a.c", "bad_line", 1, False),
        ("lines", "line 3", "bad_line", 1, True),
        ("one", "a.c", "vanished", 1, False),
        ("of a program", "a.c", "of_its_own", 1, True),
        ("of a program", "line 3", "bad_line", 1, True),
    ],
)
def test_a_drop_of_a_source_holds(source: str, path: str, reason: str, num_bytes: int, holds: bool) -> None:
    row = {"source": source, "path": path, "reason": reason, "num_bytes": num_bytes}

    assert list(misjudged_drops([row], None, ASKED)) == ([] if holds else [(source, path)])


TEXTS = {
    "too_small": b"int a;\r\n" * 12,
    "too_large": b"int a;\n" * 150_000,
    "long_line": b"int a; " * 200 + b"\n",
    "long_mean_line": b"int abc = 1; " * 50 + b"\n" + b"int b;\n",
    "few_alphanumerics": b"+ - * / ( ) [ ] { };\r" * 20,
    "repeated_lines": b"int value = 1;\n" * 30,
}


@pytest.mark.parametrize("reason", TEXTS)
@pytest.mark.parametrize("given", TEXTS)
def test_a_drop_by_size_or_lines_holds_where_the_filter_of_that_name_breaks(reason: str, given: str) -> None:
    content = TEXTS[given]
    text = content.decode().replace("\r\n", "\n").replace("\r", "\n")
    open_limits = {name: 0 if name.startswith("min") else 10**9 for name in LIMITS if name != "max_file_bytes"}
    limit = {
        "too_small": "min_num_bytes",
        "too_large": "max_num_bytes",
        "long_line": "max_longest_line",
        "long_mean_line": "max_mean_line",
        "few_alphanumerics": "min_alphanumeric_fraction",
        "repeated_lines": "min_unique_line_fraction",
    }[reason]
    params = FilterParams.model_construct(**open_limits | {limit: LIMITS[limit]})
    broken = first_broken(score("a.c", text), params)

    row = {"source": "one", "path": "a.c", "reason": reason}
    found = list(misjudged_drops([row], Files({"a.c": content}), ASKED))

    assert (found == []) == (broken is not None and broken.reason == reason)
    assert reason != given or found == []


@pytest.mark.parametrize("reason", ["exact_duplicate", "near_duplicate", "contained"])
def test_a_copy_without_a_keeper_does_not_hold(reason: str) -> None:
    row = {"source": "one", "path": "a.c", "reason": reason}

    assert list(misjudged_drops([row], Files({"a.c": b"int a;\n"}), ASKED)) == [("one", "a.c")]


def test_a_small_file_that_is_not_ascii_is_judged_by_its_size() -> None:
    row = {"source": "one", "path": "a.c", "reason": "too_small"}

    assert list(misjudged_drops([row], Files({"a.c": b"\xff" * 799}), ASKED)) == []
    assert list(misjudged_drops([row], Files({"a.c": b"\xff" * 800}), ASKED)) == [("one", "a.c")]


@pytest.mark.parametrize(
    ("reasons", "listed", "holds"),
    [
        (["link"], 1, True),
        (["link"], 0, False),
        (["special", "link"], 1, False),
        (["submodule"], 0, False),
        (["too_large"], 0, True),
    ],
)
def test_a_drop_as_no_regular_file_holds_where_it_is_listed_as_such(
    reasons: list[str], listed: int, holds: bool
) -> None:
    rows = [{"source": "one", "path": "a.c", "reason": reason} for reason in reasons]

    found = list(miscalled_drops(rows, {("one", "a.c"): listed}, {"one"}))
    assert found == ([] if holds else [("one", "a.c")])
    assert list(miscalled_drops(rows, {}, {"other"})) == []


@pytest.mark.parametrize(
    ("reason", "keeper", "holds"),
    [
        ("exact_duplicate", "same", True),
        ("exact_duplicate", "other", False),
        ("exact_duplicate", "lost", False),
        ("near_duplicate", "other", True),
        ("near_duplicate", "lost", False),
        ("contained", "other", True),
        ("contained", "lost", False),
        ("container", "other", True),
        ("container", "lost", False),
        ("copyleft_copy", "lost", True),
    ],
)
def test_a_copy_has_a_keeper_that_is_kept(reason: str, keeper: str, holds: bool) -> None:
    row = COPY | {"keeper_id": keeper, "keeper_path": f"{keeper}.c", "cluster_id": keeper, "reason": reason}

    assert list(misjudged_copies([row], DOCUMENTS, {"same", "other"})) == ([] if holds else [("one", "copy.c")])


DOCUMENTS = {
    name: {"source": "one", "path": f"{name}.c", "text_sha256": text, "num_bytes": 9}
    for name, text in (("copy", "1"), ("same", "1"), ("other", "2"), ("lost", "1"))
}
COPY: dict[str, Any] = {
    "source": "one",
    "path": "copy.c",
    "num_bytes": 9,
    "document_id": "copy",
    "keeper_id": "same",
    "keeper_source": "one",
    "keeper_path": "same.c",
    "cluster_id": "same",
    "reason": "near_duplicate",
    "jaccard": 0.8,
    "num_keepers": 1,
}


@pytest.mark.parametrize(
    "change",
    [
        {"path": "other.c"},
        {"source": "two"},
        {"keeper_path": "other.c"},
        {"keeper_source": "two"},
        {"document_id": "none"},
        {"document_id": "same", "path": "same.c"},
        {"jaccard": 0.0},
        {"jaccard": 1.1},
        {"num_keepers": 0},
        {"num_keepers": 0, "reason": "exact_duplicate"},
        {"cluster_id": "other"},
        {"cluster_id": "other", "reason": "copyleft_copy"},
        {"num_bytes": 8},
        {"num_bytes": 8, "reason": "copyleft_copy"},
        {"path": "other.c", "reason": "copyleft_copy"},
        {"keeper_path": "other.c", "reason": "copyleft_copy"},
    ],
    ids=str,
)
def test_a_copy_and_its_keeper_are_called_as_their_documents_are(change: dict[str, Any]) -> None:
    assert list(misjudged_copies([COPY], DOCUMENTS, {"same"})) == []
    assert len(list(misjudged_copies([COPY | change], DOCUMENTS, {"same"}))) == 1


@pytest.mark.parametrize(
    ("changes", "num_unlike"),
    [
        ([{}], 1),
        ([{"jaccard": 0.9}], 0),
        ([{"keeper_source": "two"}], 0),
        ([{"keeper_source": "two", "jaccard": 0.6}], 1),
        ([{"reason": "copyleft_copy"}], 1),
        ([{"reason": "copyleft_copy", "keeper_source": "two"}], 0),
        ([{"reason": "contained"}], 0),
        ([{"reason": "contained", "jaccard": 0.7}], 1),
        ([{"reason": "contained", "jaccard": 0.7}, {"reason": "contained"}], 0),
        ([{"reason": "container", "jaccard": 0.57}, {"reason": "contained"}], 0),
        ([{}, {"document_id": "lost", "keeper_source": "two"}], 0),
        ([{}, {"document_id": "other", "keeper_source": "two"}], 1),
        ([{}, {"document_id": "lost", "keeper_source": "two", "jaccard": 0.7}], 1),
    ],
    ids=str,
)
def test_a_near_copy_is_as_like_as_the_limit_of_its_kind_says(changes: list[dict[str, Any]], num_unlike: int) -> None:
    limits = {"min_jaccard_inside_source": 0.9, "min_jaccard_between_sources": 0.7, "min_containment": 0.8}

    assert len(list(unlike_copies([COPY | each for each in changes], DOCUMENTS, limits))) == num_unlike


def test_siblings_are_of_one_split() -> None:
    limits = {"min_jaccard_inside_source": 0.9, "min_jaccard_between_sources": 0.7, "min_containment": 0.8}
    documents = {"copy": DOCUMENTS["copy"] | {"split": "train"}, "same": DOCUMENTS["same"] | {"split": "held_out"}}

    assert list(unlike_copies([COPY], documents, limits)) == []


def test_copyleft_copies_of_what_is_not_stored_are_not_judged() -> None:
    row = COPY | {"reason": "copyleft_copy", "keeper_id": "none", "cluster_id": "none", "document_id": "none"}

    assert list(misjudged_copies([row], DOCUMENTS, set())) == []


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({"path": "of no file.c", "num_bytes": 1, "record_id": "1"}, True),
        ({"text_sha256": "2", "record_id": document_id("one", "a.c", "2")}, True),
        ({"reason": "too_small"}, True),
        ({"license": "GPL-2.0-only"}, True),
        ({"license": "GPL-2.0-only", "reason": "too_small"}, False),
        ({"detail": ""}, False),
        ({"num_bytes": 4}, False),
        ({"record_id": "1"}, False),
        ({"text_sha256": "2"}, False),
        ({"text_sha256": "2", "record_id": document_id("one", "a.c", "2"), "reason": "too_small"}, False),
    ],
    ids=str,
)
def test_a_drop_has_the_size_and_the_name_of_its_file(change: dict[str, Any], holds: bool) -> None:
    files: Any = SimpleNamespace(
        table=lambda name, columns: pa.table({"path": ["a.c"], "num_bytes": [3], "blob_sha256": ["1"]}).select(columns)
    )
    row = {"source": "one", "path": "a.c", "num_bytes": 3, "reason": "license_refused", "text_sha256": None}
    row |= {"detail": "GPL", "license": None}
    row |= {"record_id": document_id("one", "a.c", "1")} | change

    assert list(misstated_drops([row], files)) == ([] if holds else [("one", row["path"])])


def test_a_document_is_of_the_revision_of_its_file() -> None:
    tables = (pa.table({"source": ["one"], "path": ["a.c"], "revision": [each]}) for each in "112")
    files, same, other = (SimpleNamespace(table=lambda _, names, found=each: found.select(names)) for each in tables)

    assert list(misrevised_documents(files, same)) == []
    assert list(misrevised_documents(files, other)) == [("one", "a.c")]


def test_a_file_is_too_large_by_the_size_that_the_source_lists() -> None:
    rows = [
        {"source": "one", "path": path, "reason": "too_large", "num_bytes": 10**9} for path in ("a.c", "b.c", "c.c")
    ]
    sizes = {("one", "a.c"): 100, ("one", "b.c"): 101}

    assert list(mismeasured_drops(rows, sizes, 100)) == [("one", "a.c")]


def _is_accepted(reason: str, path: str = "a.c", content: bytes | None = None, **asked: Any) -> bool:
    """Return whether a drop of the source `one` is taken for sound."""
    row = {"source": "one", "path": path, "reason": reason, "num_bytes": 1}
    files = None if content is None else Files({path: content})
    return list(misjudged_drops([row], files, {**ASKED, **asked})) == []


def test_each_of_several_causes_of_a_drop_suffices() -> None:
    pins = {"one": {"kind": "archive", "include": [], "exclude": ["src/**"]}}

    assert _is_accepted("excluded", pins=pins)
    assert _is_accepted("withdrawn", withdrawn=[f"sha256:{'0' * 64}"])
    assert not _is_accepted("withdrawn", withdrawn=["other/a.c"])


def test_what_is_not_ascii_is_judged_by_its_size_alone() -> None:
    few, many = "é".encode(), "é".encode() * 1_000

    assert _is_accepted("long_line", content=few)
    assert _is_accepted("too_small", content=few)
    assert _is_accepted("long_line", content=many)
    assert not _is_accepted("too_small", content=many)


def test_comments_are_judged_in_languages_that_mark_them_like_c_alone() -> None:
    assert _is_accepted("mostly_comments", content=b"int a;\n" * 20, commented_like_c=[".h"])
    assert not _is_accepted("mostly_comments", content=b"int a;\n" * 20)
    assert not _is_accepted("long_line", content=b"int a;\n" * 20, commented_like_c=[".h"])


def test_a_suffix_counts_as_written_too() -> None:
    assert is_code("a.C", [".C"])
    assert not is_code("a.c", [".C"])


def test_only_drops_as_too_large_are_compared_with_listed_sizes() -> None:
    sizes = {("one", "a.c"): 5, ("one", "b.c"): 5}
    rows = [
        {"source": "one", "path": path, "reason": reason} for path, reason in (("a.c", "link"), ("b.c", "too_large"))
    ]

    assert list(mismeasured_drops(rows, sizes, 100)) == [("one", "b.c")]


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
        ({"provenance": "degraded", "provenance_codes": [3]}, True),
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
