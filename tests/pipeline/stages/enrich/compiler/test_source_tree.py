"""Source tree to compile: files that cannot be written, what is removed from a definition, and the overlay file system."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from pipeline.core.errors import StageError
from pipeline.stages.enrich.compiler.source_tree import SourceTree, files_below, lay_out, write_overlay

TREE = SourceTree(frozenset(), (("/src", "source"),), {})


@contextmanager
def files_of_at_most(num_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_name_that_the_file_system_refuses_is_left_out_and_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    for name in ("names", "room"):
        (tmp_path / name).mkdir()
    lay_out(tmp_path / "names", {"source/a": b"a", "source/a/b": b"b", "source/" + "x" * 260: b"x", "source/c": b"c"})

    assert list(files_below(tmp_path / "names")) == ["source/a", "source/c"]
    with files_of_at_most(100), pytest.raises(StageError, match=r"source/large"):
        lay_out(tmp_path / "room", {"source/large": b"x" * 1000})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("X=/src/a", "X=source/a"),
        ('X="/src"', 'X="source"'),
        ("X=-I/src/a:/src", "X=-Isource/a:source"),
        ("X=-Wl,-T/src/a -isystem/src", "X=-Wl,-Tsource/a -isystemsource"),
        ("X=tests/src/data", "X=tests/src/data"),
        ("X=test-a/src/data", "X=test-a/src/data"),
        ("X=/src2/b", "X=elsewhere"),
        ("X=file:///src/a", "X=elsewhere"),
    ],
)
def test_the_place_of_the_tree_is_found_by_its_whole_name(value: str, expected: str) -> None:
    assert TREE.scrubbed(value) == expected


def test_a_million_backslashes_take_linear_time() -> None:
    """A search that starts again at each of them would take hours."""
    value = "X=" + "\\" * 1_000_000 + "!"

    assert TREE.scrubbed(value) == value


def test_the_compiler_reads_the_name_of_any_place(tmp_path: Path) -> None:
    """Its YAML joins no halves of a surrogate pair, as the one here does not, and takes no control sign as it is."""
    place = "/w/\U0001f600\x7f\x85\ufeff"
    description = yaml.safe_load(write_overlay(tmp_path, [(place, "source")], Path("/tools")).read_text("utf-8"))

    assert place in [root["name"] for root in description["roots"]]
