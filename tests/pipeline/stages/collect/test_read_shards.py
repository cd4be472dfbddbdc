"""Shards of a source: where they begin, and what a changed file changes."""

from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.stages.collect.contents import ReadFile, Spill
from pipeline.stages.collect.read_shards import shard_starts

LEAST, MOST = 2_000, 4_000


def _files(paths: list[str]) -> list[ReadFile]:
    return [ReadFile(path, b"x" * (40 + 7 * (index % 9))) for index, path in enumerate(sorted(paths))]


def _shards(files: list[ReadFile]) -> list[tuple[str, ...]]:
    edges = [*shard_starts(files, LEAST, MOST), len(files)]
    return [tuple(file.path for file in files[start:end]) for start, end in pairwise(edges)]


PATHS = [f"folder{number % 17:02}/file{number:04}.cpp" for number in range(1_500)]


def test_shards_are_all_files_in_order_within_the_sizes() -> None:
    files = _files(PATHS)
    shards = _shards(files)
    sizes = {file.path: file.num_bytes for file in files}

    assert [path for shard in shards for path in shard] == [file.path for file in files]
    assert len(shards) > 10
    assert all(LEAST <= sum(map(sizes.__getitem__, shard)) <= MOST for shard in shards[:-1])


@pytest.mark.parametrize("path", ["folder08/file0000.cpp", "a.cpp", "zz.cpp", "folder03/file0700b.cpp"])
def test_a_file_that_comes_changes_its_own_shard_and_at_most_its_neighbors(path: str) -> None:
    before = set(_shards([ReadFile(each, b"x" * 70) for each in sorted(PATHS)]))
    after = set(_shards([ReadFile(each, b"x" * 70) for each in sorted([*PATHS, path])]))

    assert 1 <= len(after - before) <= 3


def test_a_file_larger_than_a_shard_is_one_alone() -> None:
    files = [ReadFile("a.cpp", b"x" * 10), ReadFile("b.cpp", b"x" * 9_000), ReadFile("c.cpp", b"x" * 10)]

    assert shard_starts(files, LEAST, MOST) == [0, 1, 2]


def test_a_sidecar_stays_with_its_file() -> None:
    names = [name for number in range(200) for name in (f"f{number:03}.cpp", f"f{number:03}.cpp.license")]
    shards = _shards([ReadFile(name, b"x" * 400) for name in names])

    assert len(shards) > 10
    assert not any(shard[0].endswith(".license") for shard in shards)


def test_spilled_bytes_are_those_that_were_put(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    places = [spill.put(content) for content in (b"one", b"", b"three" * 1_000)]

    assert [place.read() for place in reversed(places)] == [b"three" * 1_000, b"", b"one"]
    assert not list(tmp_path.iterdir())
