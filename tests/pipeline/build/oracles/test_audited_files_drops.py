"""The reason of a drop holds, as the filters say, and a drop has the size and the name of its file."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_files import (
    miscalled_drops,
    misjudged_drops,
    mismeasured_drops,
    misstated_drops,
)
from pipeline.core.digests import document_id
from pipeline.stages.normalize.filters.filters import first_broken, score
from pipeline.stages.normalize.params import FilterParams
from tests.pipeline.build.oracles.test_audited_files import ASKED, LIMITS, Files


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
    shifted = b"\x1b$B" + b"a" * 2_000

    assert _is_accepted("long_line", content=few)
    assert _is_accepted("too_small", content=few)
    assert _is_accepted("long_line", content=many)
    assert not _is_accepted("too_small", content=many)
    assert _is_accepted("repeated_lines", content=shifted)
    assert not _is_accepted("too_small", content=shifted)


def test_comments_are_judged_in_languages_that_mark_them_like_c_alone() -> None:
    assert _is_accepted("mostly_comments", content=b"int a;\n" * 20, commented_like_c=[".h"])
    assert not _is_accepted("mostly_comments", content=b"int a;\n" * 20)
    assert not _is_accepted("long_line", content=b"int a;\n" * 20, commented_like_c=[".h"])


def test_only_drops_as_too_large_are_compared_with_listed_sizes() -> None:
    sizes = {("one", "a.c"): 5, ("one", "b.c"): 5}
    rows = [
        {"source": "one", "path": path, "reason": reason} for path, reason in (("a.c", "link"), ("b.c", "too_large"))
    ]

    assert list(mismeasured_drops(rows, sizes, 100)) == [("one", "b.c")]
