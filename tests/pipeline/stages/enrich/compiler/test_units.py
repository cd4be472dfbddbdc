"""Cached results of units: they depend on everything that could change what a compiler reports, and on nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.stages.enrich.compiler.compile_commands import read_database
from pipeline.stages.enrich.compiler.source_tree import SourceTree, files_below, lay_out
from pipeline.stages.enrich.compiler.tools import tool_versions
from pipeline.stages.enrich.compiler.units import Compiler, UnitRequest, UnitResult
from pipeline.stages.enrich.params import CompilerParams

PLACE = "/w"
TEXTS = {
    "first/.keep": "",
    "second/shadowed.h": "int from_second;\n",
    "pre.h": '#include "inner.h"\n',
    "inner.h": "int inner;\n",
    "macros.h": "#define M 1\n",
    "a.cc": '#include <shadowed.h>\n#include "common.h"\nint a = M;\n',
    "b.cc": '#if __has_include("optional.h")\nint with;\n#else\nint without;\n#endif\n',
    "c.cc": '#include "/w/common.h"\n#include "gone.h"\nint c;\n',
    "common.h": "int common;\n",
    "unread.h": "int unread;\n",
}
OPTIONS = {"a.cc": "-Ifirst -Isecond -include pre.h -imacros macros.h", "b.cc": "-I.", "c.cc": ""}


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    number = 0

    def following() -> Iterator[Path]:
        nonlocal number
        while True:
            number += 1
            folder = tmp_path / str(number)
            folder.mkdir()
            yield folder

    return following()


def compiled(
    folder: Path, cache: Path, options: dict[str, str] | None = None, **changed: str | None
) -> dict[str, UnitResult]:
    """Compile each unit of the texts, some of which are changed, added, or, with None, removed."""
    given = TEXTS | {path.replace("__", "/").replace("_h", ".h"): text for path, text in changed.items()}
    lay_out(folder, {f"source/{path}": text.encode() for path, text in given.items() if text is not None})
    tree = SourceTree(frozenset(files_below(folder)), ((PLACE, "source"),), {})
    entries = [
        {"directory": PLACE, "command": f"c++ {words} {path}", "file": path}
        for path, words in (OPTIONS | (options or {})).items()
    ]
    commands = read_database(json.dumps(entries).encode(), tree).commands
    compiler = Compiler(folder, tree, tool_versions(cmake=False), CompilerParams().unit_limits(), cache)
    results = compiler.compile([UnitRequest(command, (path,), with_bodies=False) for path, command in commands.items()])
    return {path[len("source/") :]: result for path, result in zip(commands, results, strict=True)}


class Rewritten:
    """Units of which a new entry was written since this was created."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._before = self._entries()

    def _entries(self) -> set[tuple[str, int]]:
        """Return name and inode of each: a written entry is a new file, also of the same name."""
        return {(entry.name, entry.stat().st_ino) for entry in self._cache.iterdir()}

    def units(self) -> set[str]:
        new = (json.loads((self._cache / name).read_bytes()) for name, _ in self._entries() - self._before)
        return {path[len("source/") :] for entry in new for path in entry["files"]}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"unread_h": "int other;\n"}, set()),
        ({"common_h": "int other;\n"}, {"a.cc", "c.cc"}),
        ({"second__shadowed_h": "int other;\n"}, {"a.cc"}),
        ({"pre_h": '#include "inner.h"\nint other;\n'}, {"a.cc"}),
        ({"inner_h": "int other;\n"}, {"a.cc"}),
        ({"macros_h": "#define M 2\n"}, {"a.cc"}),
        ({"b.cc": "int b;\n"}, {"b.cc"}),
    ],
)
def test_a_change_recompiles_exactly_the_units_that_read_it(
    folders: Iterator[Path], tmp_path: Path, changed: dict[str, str], expected: set[str]
) -> None:
    compiled(next(folders), tmp_path / "cache")

    rewritten = Rewritten(tmp_path / "cache")
    cached = compiled(next(folders), tmp_path / "cache", **changed)
    assert rewritten.units() == expected
    fresh = compiled(next(folders), tmp_path / "none", **changed)
    assert {path: unit.report["files"] for path, unit in cached.items()} == {
        path: unit.report["files"] for path, unit in fresh.items()
    }


@pytest.mark.parametrize(
    ("changed", "unit"),
    [
        ({"first__shadowed_h": "int from_first;\n"}, "a.cc"),  # found before the one of the same name
        ({"optional_h": ""}, "b.cc"),  # was looked for and missing
        ({"gone_h": "int gone;\n"}, "c.cc"),  # was missing
        ({"second__shadowed_h": None}, "a.cc"),
    ],
)
def test_a_file_that_is_added_or_removed_recompiles_the_unit_that_looked_for_it(
    folders: Iterator[Path], tmp_path: Path, changed: dict[str, str | None], unit: str
) -> None:
    before = compiled(next(folders), tmp_path / "cache")
    rewritten = Rewritten(tmp_path / "cache")
    after = compiled(next(folders), tmp_path / "cache", **changed)

    assert unit in rewritten.units()
    assert (after[unit].report["reads"], after[unit].report["files"]) != (
        before[unit].report["reads"],
        before[unit].report["files"],
    )


def test_another_option_compiles_its_unit_again_and_no_other(folders: Iterator[Path], tmp_path: Path) -> None:
    compiled(next(folders), tmp_path / "cache")

    for unit, options in (("b.cc", "-I. -DX"), ("a.cc", "-Isecond -Ifirst")):
        rewritten = Rewritten(tmp_path / "cache")
        compiled(next(folders), tmp_path / "cache", {unit: options})
        assert rewritten.units() == {unit}


def test_no_entry_holds_a_path_of_this_machine(folders: Iterator[Path], tmp_path: Path) -> None:
    compiled(next(folders), tmp_path / "cache")

    assert not any(str(tmp_path).encode() in entry.read_bytes() for entry in (tmp_path / "cache").iterdir())


def test_an_entry_that_cannot_be_written_loses_no_result(folders: Iterator[Path], tmp_path: Path) -> None:
    expected = compiled(next(folders), tmp_path / "cache")
    for entry in (tmp_path / "cache").iterdir():  # a folder in the way of each entry, and a file in that of all
        (tmp_path / "full" / entry.name).mkdir(parents=True)
    (tmp_path / "none").touch()

    for cache in (tmp_path / "full", tmp_path / "none"):
        assert compiled(next(folders), cache) == expected
    assert not any(path.is_file() for path in (tmp_path / "full").iterdir())
