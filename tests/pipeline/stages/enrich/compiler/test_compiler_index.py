"""Compiler index of small trees: what it holds of each file, what a failing unit costs, and that a rerun gives the same."""

import json
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.gates import GATES
from pipeline.core.errors import StageError
from pipeline.core.records import Mention
from pipeline.pins.build_block import BuildBlock
from pipeline.stages.enrich.compiler.compiler_index import (
    CompilerIndex,
    FileIndex,
    IndexRequest,
    assign_headers,
    index_source,
)
from pipeline.stages.enrich.compiler.source_tree import SourceTree
from pipeline.stages.enrich.compiler.tools import ABSENT, tool_versions
from pipeline.stages.enrich.params import CompilerParams, EnrichParams

HEADER = "#pragma once\nint twice(int value);\ninline int thrice(int value) { return twice(value) + value; }\n"
UNIT = """#include "a.h"
#include <cstdint>
#ifdef NEVER
int gone;
#endif
struct Größe { int wert; };
int twice(int value) { return value * FACTOR; }
int use(Größe it) { return twice(it.wert) + thrice(1); }
"""
GOOD = "int good() { return 1; }\n"


def database(*paths: str, extra: str = "-DFACTOR=2") -> bytes:
    return json.dumps([{"directory": "/w", "command": f"c++ {extra} {path}", "file": path} for path in paths]).encode()


def index_of(
    texts: Mapping[str, str],
    given: bytes,
    cache: Path | None = None,
    params: CompilerParams | None = None,
    **block: int,
) -> CompilerIndex:
    contents = {path: text.encode() for path, text in texts.items()}
    wanted = BuildBlock(database="db.json", **block)
    how = (wanted, params or CompilerParams(), tool_versions(cmake=False), cache)
    return index_source(IndexRequest("made", {**contents, "db.json": given}, contents, *how))


def names(text: str, file: FileIndex) -> list[tuple[str, Mention, bool, bool]]:
    content = text.encode()
    return [
        (content[start:end].decode(), Mention(mention), call != 0, type_reference != 0)
        for start, end, _, call, type_reference, mention in file.mentions
    ]


def test_the_index_has_names_calls_types_and_the_skipped_ranges() -> None:
    index = index_of({"a.h": HEADER, "a.cc": UNIT}, database("a.cc"))
    unit, header = index.file("a.cc"), index.file("a.h")

    assert (unit.is_indexed, unit.detail, header.is_indexed) == (True, "", True)
    assert names(UNIT, unit) == [
        ("Größe", Mention.DEFINITION, False, False),
        ("wert", Mention.DEFINITION, False, False),
        ("twice", Mention.DEFINITION, False, False),
        ("value", Mention.DEFINITION, False, False),
        ("value", Mention.USE, False, False),
        ("use", Mention.DEFINITION, False, False),
        ("Größe", Mention.USE, False, True),
        ("it", Mention.DEFINITION, False, False),
        ("twice", Mention.USE, True, False),
        ("it", Mention.USE, False, False),
        ("wert", Mention.USE, False, False),
        ("thrice", Mention.USE, True, False),
    ]
    assert [UNIT.encode()[start:end].decode() for start, end in unit.inactive] == ["#ifdef NEVER\nint gone;\n#endif"]
    symbols = {
        (path, text.encode()[start:end].decode(), symbol)
        for path, text, file in (("a.h", HEADER, header), ("a.cc", UNIT, unit))
        for start, end, symbol, *_ in file.mentions
    }
    assert len({symbol for _, name, symbol in symbols if name == "twice"}) == 1  # one id in all files
    assert ("twice", Mention.USE, True, False) in names(HEADER, header)  # bodies in headers are read
    assert json.loads(header.context or "")["unit"] == "a.cc"


def test_a_cursor_kind_that_the_binding_does_not_know_fails_no_unit() -> None:
    text = (
        "struct Pair { int a; int b; };\nint both() { return Pair(1, 2).a; }\n"  # an aggregate in parentheses, of C++20
    )

    file = index_of({"a.cc": text}, database("a.cc", extra="-std=c++20")).file("a.cc")

    assert file.is_indexed
    assert [name for name, *_ in names(text, file)].count("Pair") == 2


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"reads": {}, "files": {}, "digest": "0"}', b"\xff"])
def test_a_damaged_cache_entry_is_ignored(tmp_path: Path, damage: bytes) -> None:
    first = index_of({"b.cc": GOOD}, database("b.cc"), tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(damage)

    assert index_of({"b.cc": GOOD}, database("b.cc"), tmp_path).files == first.files


def test_a_sample_is_the_same_in_any_order_and_the_rest_is_marked() -> None:
    texts = {f"{number}.cc": GOOD for number in range(6)}
    indexes = [index_of(texts, database(*order), max_units=2) for order in (sorted(texts), sorted(texts, reverse=True))]

    assert indexes[0].files == indexes[1].files
    assert sum(indexes[0].file(path).is_indexed for path in texts) == 2
    assert {indexes[0].file(path).detail for path in texts} == {"", "not_sampled"}


def test_each_header_is_assigned_to_one_unit_and_few_units_read_all() -> None:
    reads = {"a": ["x", "y", "z"], "b": ["x", "y"], "c": ["w", "z"], "d": ["w"]}

    assert assign_headers(reads, ["w", "x", "y", "z", "v"]) == {"a": ("x", "y", "z"), "c": ("w",)}


def test_a_missing_tool_is_reported_apart_from_a_missing_database() -> None:
    how = (BuildBlock(database="db.json"), CompilerParams(), {"libclang": "18.1.1", "ziglang": ABSENT}, None)
    index = index_source(IndexRequest("made", {"db.json": database("a.cc")}, {"a.cc": b"int a;\n"}, *how))

    assert index.file("a.cc").detail == "tool_failed: tool_missing"
    assert "ziglang not installed" in index.notes[0]


def test_a_pin_that_names_a_missing_file_is_refused() -> None:
    how = (BuildBlock(database="build/db.json"), CompilerParams(), tool_versions(cmake=False), None)
    with pytest.raises(StageError, match=r"build/db\.json"):
        index_source(IndexRequest("made", {}, {"a.cc": b"int a;\n"}, *how))


MEMORY = "int table[] = {{[{0}] = 1}};\n"


@pytest.mark.parametrize(
    ("num_elements", "megabytes", "detail"),
    [
        (300_000_000, 2048, "tool_failed: out_of_memory"),  # one piece of 2.4 GB
        (2_000_000, 2048, ""),
        (2_000_000, 256, "tool_failed: out_of_memory"),
    ],
)
def test_the_memory_limit_ends_only_the_unit_that_exceeds_it(num_elements: int, megabytes: int, detail: str) -> None:
    texts = {"a.cc": MEMORY.format(num_elements), "b.cc": GOOD}
    index = index_of(texts, database("a.cc", "b.cc"), params=CompilerParams(unit_memory_megabytes=megabytes))

    assert (index.file("a.cc").detail, index.file("b.cc").detail) == (detail, "")
    assert index.counts["num_units_failed_out_of_memory"] == bool(detail)
    assert index.failures == ({"a.cc": "out_of_memory"} if detail else {})


def test_a_crash_of_a_unit_named_memory_is_a_crash() -> None:
    index = index_of({"memory.cc": "#pragma clang __debug crash\n"}, database("memory.cc"))

    assert index.failures == {"memory.cc": "crash"}


def test_a_unit_whose_process_is_killed_from_outside_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"{number}.cc": f"{GOOD}int n{number};\n" for number in range(4)}
    given = database(*texts)
    undisturbed = index_of(texts, given)
    start, numbers = subprocess.Popen, count()

    def start_and_kill_two(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        process: subprocess.Popen[bytes] = start(*arguments, **options)
        if "unit_worker" in str(arguments[0]) and next(numbers) < 2:
            process.kill()
        return process

    monkeypatch.setattr(subprocess, "Popen", start_and_kill_two)
    index = index_of(texts, given)

    assert next(numbers) == len(texts) + 2
    assert index.files == undisturbed.files
    assert index.failures == {}


def test_a_header_that_cannot_be_read_with_bodies_is_read_by_another_unit_or_without() -> None:
    texts = {
        "a.cc": '#include "shared.h"\n#include "poison.h"\n#include "more.h"\nint a;\n',
        "b.cc": '#include "shared.h"\nint b;\n',
        "shared.h": "inline int shared() { int inside_shared = 1; return inside_shared; }\n",
        "more.h": "inline int more() { int inside_more = 1; return inside_more; }\n",
        "poison.h": "inline int poison() { return " + "!" * 300_000 + "1; }\n",
    }
    index = index_of(texts, database("a.cc", "b.cc"))

    assert (index.failures, index.failures_with_bodies) == ({}, {"a.cc": "crash"})
    assert [index.file(path).detail for path in ("a.cc", "b.cc", "shared.h")] == ["", "", ""]
    assert "inside_shared" in [name for name, *_ in names(texts["shared.h"], index.file("shared.h"))]
    assert json.loads(index.file("shared.h").context or "")["unit"] == "b.cc"
    assert {index.file(path).detail for path in ("more.h", "poison.h")} == {"partial: without bodies: crash"}
    assert [name for name, *_ in names(texts["more.h"], index.file("more.h"))] == ["more"]


@pytest.mark.parametrize("given", [b"[1, 2, 3]", b"{}", b"no JSON", b"[]", b"\xff\xfe"])
def test_a_database_without_a_command_is_reported(given: bytes) -> None:
    index = index_of({"a.cc": GOOD}, given)

    assert (index.file("a.cc").detail, index.files) == ("not_in_database", {})
    assert "has no command for any file of the source" in index.notes[0]


def test_a_path_that_the_scrubber_leaves_turns_the_gate_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path after an option inside a definition. The gate is asked with a scrubber that does nothing, and with the real one."""
    given = database("a.cc", extra="'-DFLAGS=\"-I/opt/zanzibar/include\"'")
    gate = next(gate for gate in GATES if gate.name == "no_local_path_in_a_build_context")
    files = {"a.cc": GOOD, "b.cc": GOOD}
    measures = [index_of(files, given).counts]
    monkeypatch.setattr(SourceTree, "scrubbed", lambda tree, value: value)
    measures.append(index_of(files, given).counts)

    sources = {"num_sources_built": 1}
    assert [gate.judge({**counts, **sources}, EnrichParams()).passed for counts in measures] == [True, False]
