"""The lane over made trees: what a compiler sees, what it costs when one unit goes wrong, and that a rerun says the same."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.build_block import BuildBlock
from pipeline.enrich.lane.lane import Lane, Source, View, cover_headers, read_lane
from pipeline.enrich.lane.params import LaneParams
from pipeline.enrich.lane.tools import ABSENT, tool_versions
from pipeline.errors import StageError
from pipeline.records import Mention

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
BOMBS = {
    "crash.cc": "#pragma clang __debug crash\n",
    "endless.cc": '#include "endless.cc"\n',
    "hungry.cc": "constexpr int f() { char *p = nullptr; for (long i = 0; ; ++i) p = new char[1 << 20]; }\nint x = 1;\n"
    "template <int N> struct T { int a[1 << 20]; T<N - 1> t; };\ntemplate <> struct T<0> {};\nT<900> t;\n"
    + "char big[] = {" + "1," * 3_000_000 + "};\n",
    "zero.cc": '#include "/dev/zero"\n',
    "folder.cc": '#include "sub"\n',
    "outside.cc": '#include "/etc/hostname"\n',
    "gone.cc": '#include "nowhere.h"\nint after;\n',
    "deep.cc": "int x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";\n",
    "tri.cc": "??=define A 1\n%:define B 2\nint t = A + B;\n",
}  # fmt: skip
LIMITS = LaneParams(unit_cpu_seconds=10, unit_memory_megabytes=512)


def database(*paths: str, extra: str = "-DFACTOR=2") -> bytes:
    return json.dumps([{"directory": "/w", "command": f"c++ {extra} {path}", "file": path} for path in paths]).encode()


def lane_of(
    texts: Mapping[str, str], given: bytes, cache: Path | None = None, params: LaneParams | None = None, **block: int
) -> Lane:
    contents = {path: text.encode() for path, text in texts.items()}
    source = Source("made", {**contents, "db.json": given}, contents)
    wanted = BuildBlock(database="db.json", **block)
    return read_lane(source, wanted, params or LaneParams(), tool_versions(cmake=False), cache)


def names(text: str, view: View) -> list[tuple[str, Mention, bool, bool]]:
    content = text.encode()
    return [
        (content[start:end].decode(), Mention(mention), call != 0, type_reference != 0)
        for start, end, _, call, type_reference, mention in view.mentions
    ]


def test_a_compiler_sees_names_calls_types_and_what_is_skipped() -> None:
    lane = lane_of({"a.h": HEADER, "a.cc": UNIT}, database("a.cc"))
    unit, header = lane.view("a.cc"), lane.view("a.h")

    assert (unit.is_seen, unit.detail, header.is_seen) == (True, "", True)
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
        for path, text, view in (("a.h", HEADER, header), ("a.cc", UNIT, unit))
        for start, end, symbol, *_ in view.mentions
    }
    assert len({symbol for _, name, symbol in symbols if name == "twice"}) == 1  # one id in all files
    assert ("twice", Mention.USE, True, False) in names(HEADER, header)  # bodies in headers are read
    assert json.loads(header.context or "")["unit"] == "a.cc"


def test_a_unit_that_kills_its_compiler_costs_itself_alone(tmp_path: Path) -> None:
    texts = {**BOMBS, "good.cc": GOOD, "sub/x.h": "int x;\n"}
    lane = lane_of(texts, database(*sorted({*texts} - {"sub/x.h"})), tmp_path, LIMITS)
    alone = lane_of({"good.cc": GOOD}, database("good.cc"))

    assert lane.view("good.cc").mentions == alone.view("good.cc").mentions
    assert lane.view("crash.cc").detail == "tool_failed: crash"
    assert {path for path in BOMBS if not lane.view(path).is_seen} == {"crash.cc", "hungry.cc"}
    assert lane.view("gone.cc").detail == "partial: 1 errors"
    assert lane.view("endless.cc").detail.startswith("partial")
    assert [name for name, *_ in names(BOMBS["gone.cc"], lane.view("gone.cc"))] == ["after"]
    assert lane.view("sub/x.h").detail == "not_in_database"


def test_a_rerun_says_the_same_and_only_what_changed_is_compiled(tmp_path: Path) -> None:
    texts = {"a.h": HEADER, "a.cc": UNIT, "b.cc": GOOD}
    given = database("a.cc", "b.cc")
    first = lane_of(texts, given, tmp_path)
    kept = sorted(path.name for path in tmp_path.iterdir())

    assert lane_of(texts, given, tmp_path).views == first.views == lane_of(texts, given).views
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    changed = lane_of({**texts, "a.h": HEADER.replace("twice(value)", "value")}, given, tmp_path)
    assert changed.view("b.cc") == first.view("b.cc")
    assert changed.view("a.h").mentions != first.view("a.h").mentions


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"read": {}, "report": {"files": {}}, "digest": "0"}', b"\xff"])
def test_a_damaged_memory_is_no_memory(tmp_path: Path, damage: bytes) -> None:
    first = lane_of({"b.cc": GOOD}, database("b.cc"), tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(damage)

    assert lane_of({"b.cc": GOOD}, database("b.cc"), tmp_path).views == first.views


def test_a_sample_is_the_same_in_any_order_and_the_rest_says_so() -> None:
    texts = {f"{number}.cc": GOOD for number in range(6)}
    lanes = [lane_of(texts, database(*order), max_units=2) for order in (sorted(texts), sorted(texts, reverse=True))]

    assert lanes[0].views == lanes[1].views
    assert sum(lanes[0].view(path).is_seen for path in texts) == 2
    assert {lanes[0].view(path).detail for path in texts} == {"", "not_sampled"}


def test_each_header_has_one_unit_and_few_units_have_all() -> None:
    reads = {"a": ["x", "y", "z"], "b": ["x", "y"], "c": ["w", "z"], "d": ["w"]}

    assert cover_headers(reads, ["w", "x", "y", "z", "v"]) == {"a": ("x", "y", "z"), "c": ("w",)}


def test_a_missing_tool_is_said_and_told_from_a_missing_database() -> None:
    source = Source("made", {"db.json": database("a.cc")}, {"a.cc": b"int a;\n"})
    lane = read_lane(
        source, BuildBlock(database="db.json"), LaneParams(), {"libclang": "18.1.1", "ziglang": ABSENT}, None
    )

    assert lane.view("a.cc").detail == "tool_failed: tool_missing"
    assert "ziglang not installed" in lane.notes[0]


def test_a_pin_that_names_what_the_source_lacks_is_refused() -> None:
    source = Source("made", {}, {"a.cc": b"int a;\n"})
    with pytest.raises(StageError, match=r"build/db\.json"):
        read_lane(source, BuildBlock(database="build/db.json"), LaneParams(), tool_versions(cmake=False), None)
