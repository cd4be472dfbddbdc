"""A source of all that is bad for a compiler, as a real archive, built by the public way: each fault costs its file alone."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.cli.main import main
from pipeline.contracts.gates import judge
from pipeline.core.table_names import COMPILER_RECORD
from pipeline.pins.build_block import BuildBlock
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.enrich.compiler.tools import missing_tools, tool_versions
from pipeline.stages.enrich.params import EnrichParams
from pipeline.store.store import Store

MISSING = missing_tools(tool_versions(cmake=True))
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the extra `compiler` is not installed: {', '.join(MISSING)}")

WRAP = 60


def lines(text: str) -> str:
    """The text in lines that no filter takes for those of a machine."""
    return "\n".join(text[at : at + WRAP] for at in range(0, len(text), WRAP))


GOOD = (
    '#include "good.h"\n#include <initializer_list>\n'
    "int good(std::initializer_list<int> values) { return twice(*values.begin()); }\n"
)
FILES = {
    "good.cc": GOOD,
    "good.h": "#pragma once\ninline int twice(int value) { return 2 * value; }\n",
    "braces.cc": "int f() { if (1) { while (0) { {\nint g() { return 1; }\n",
    "nested.cc": "int x = " + lines("(" * 100_000 + "1" + ")" * 100_000) + ";\n",
    "unary.cc": "int x = " + lines("!" * 300_000) + "1;\n",
    "array.cc": "long big[] = {\n" + "".join(f"  {number * 7919:#018x},  // {number}\n" for number in range(34_000)) + "};\n",
    "macros.cc": "#define BEGIN {\n#define END }\n#define FN(name) int name() BEGIN return 1; END\n"
    "FN(hidden)\nint seen() BEGIN return hidden(); END\n",
    "trigraphs.cc": "??=define A 1\nint t() ??< return A; ??>\n",
    "digraphs.cc": "%:define B 2\nint d(int x<::>) <% return x<:B:>; %>\n",
    "crlf.cc": 'char const* raw = R"x(one\r\ntwo)x";\r\nint after_raw = 1;\r\n',
    "utf8.cc": "int größe(int ширина) { return ширина; }\nint 変数 = größe(1);\n",
    "itself.cc": '#include "itself.cc"\nint itself;\n',
    "cycle.cc": '#include "cycle_a.h"\nint cycle;\n',
    "cycle_a.h": '#include "cycle_b.h"\nint a_of_cycle;\n',
    "cycle_b.h": '#include "cycle_a.h"\nint b_of_cycle;\n',
    "folder.cc": '#include "sub"\n#include "."\n#include "/"\nint folder;\n',
    "devices.cc": '#include "/dev/zero"\n#include </dev/stdin>\n'
    '#include "/proc/self/environ"\n#include "/proc/self/fd/0"\nint devices;\n',
    "outside.cc": '#include "/etc/passwd"\n#include "../../../../../../etc/passwd"\n#include SECRET\nint outside;\n',
    "links.cc": '#include "loop.h"\n#include "to_passwd.h"\nint links;\n',
    "precompiled.cc": "int precompiled = GIVEN;\n",
    "crash.cc": "#pragma clang __debug crash\nint crash;\n",
    "fatal.cc": "#pragma clang __debug llvm_fatal_error\nint fatal;\n",
    "memory.cc": "int memory[] = {[300000000] = 1};\n",
    "slow.cc": "template <int N> struct T { enum { v = T<N - 1>::v + T<N - 2>::v + N }; };\nconstexpr long spin(long n) "
    "{ long s = 0; for (long i = 0; i < n; ++i) s += i; return s; }\n"
    + "".join(f"constexpr long slow_{n} = spin(1000{n:02});\n" for n in range(99)),
    "changed.cc": "int changed_since_the_database;\n",
    "quoted.cc": "char const* quoted = NAME;\nint quoted_length = F(3);\n",
    "response.cc": "int response = FROM_RESPONSE;\n",
    "new_flags.cc": "int new_flags;\n",
    "flags_of_c.c": "int flags_of_c;\n",
    "poison.cc": '#include "fine.h"\n#include "poison.h"\nint poison;\n',
    "poison.h": "#pragma once\ninline int poisoned() { return\n" + lines("!" * 300_000) + "1; }\n",
    "fine.h": "#pragma once\ninline int fine() { return 1; }\n",
    "sub/inside.h": "int inside;\n",
    "unreached.h": "int unreached;\n",
}  # fmt: skip
PLACE = "/home/ann/project"
OPTIONS = {
    "outside.cc": '-DSECRET="\\"/etc/passwd\\"" -I/etc -I/ -isystem /usr/include',
    "precompiled.cc": "-include pre.h -DBUILD_USER=ann",
    "quoted.cc": r"""-DNAME=\"two\ words\" '-DF(x)=x + 1' -D'UNUSED=a b' -DROOT=/home/ann/project/sub -DAT=/opt/x""",
    "response.cc": "@words.rsp @loop.rsp-gone @/etc/passwd",
    "new_flags.cc": "-std=gnu++47 -fplugin=./evil.so -fmodules-ts -fno-new-ttp-matching --config evil.cfg -stdlib=libc++ "
    "-Xclang -load -Xclang evil.so -o /somewhere/x.o -MD -MF /somewhere/x.d -fmodules-cache-path=/somewhere",
    "flags_of_c.c": "-std=c++17 -fno-rtti",
    "trigraphs.cc": "-trigraphs",
}


def entries() -> list[object]:
    units = [path for path in FILES if path.endswith((".cc", ".c"))]
    given: list[object] = [
        {"directory": PLACE, "file": f"{PLACE}/{path}", "command": f"c++ {OPTIONS.get(path, '')} -c {path}"}
        for path in units
        if path not in ("good.cc", "itself.cc")
    ]
    return [
        *given,
        {
            "directory": f"{PLACE}/build/..",
            "file": "good.cc",
            "arguments": ["c++", "-I", ".", "-DTWO WORDS=1", "good.cc"],
        },
        {"directory": f"{PLACE}/sub", "file": "../itself.cc", "command": "c++ ../itself.cc"},
        {"directory": PLACE, "file": "good.cc", "command": "c++ -Iz good.cc"},
        {"directory": PLACE, "file": "gone.cc", "command": "c++ gone.cc"},
        {"directory": "/etc", "file": "passwd", "command": "c++ passwd"},
        {"directory": PLACE, "file": "unreached.h", "command": "c++ 'open"},
        {"directory": PLACE, "file": "unreached.h", "command": "c++ @loop.rsp"},
        {"directory": PLACE, "file": "unreached.h", "arguments": ["c++", None]},
        {"directory": 3, "file": ["x"], "command": {}},
        *(None, 3, "text", [], {}),
    ]


def archive(folder: Path) -> Path:
    """With links and files that only a build needs beside the sources."""
    others = {
        "compile_commands.json": json.dumps(entries()),
        "words.rsp": "-DFROM_RESPONSE=5",
        "loop.rsp": "@loop.rsp",
        "pre.h.gch": "CPCH and nothing that a compiler should ever load",
        "pre.h.pch": "CPCH and nothing that a compiler should ever load",
        "pre.h": "#define GIVEN 4\n",
        "evil.cfg": "-DEVIL",
        "LICENSE": "SPDX-License-Identifier: MIT\n",
    }
    links = {"loop.h": "loop.h", "to_passwd.h": "sub/../sub/inside.h"}
    path = folder / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, text in {**{name: _tagged(name) for name in FILES}, **others}.items():
            member = tarfile.TarInfo(f"bad-1/{name}")
            content = text.encode()
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        for name, target in links.items():
            member = tarfile.TarInfo(f"bad-1/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            made.addfile(member)
    return path


def _tagged(name: str) -> str:
    """Return the text with a license, so that it is not a duplicate: text after the fault could be swallowed by it."""
    own = "".join(f"extern int own_{hashlib.sha256(f'{name}{n}'.encode()).hexdigest()[:12]}(int);\n" for n in range(6))
    text = FILES[name]
    return "// SPDX-License-Identifier: MIT\n" + (f"{text}{own}" if text.startswith("#") else f"{own}{text}")


def build(store: Store, path: Path, num_workers: int) -> StageResult:
    pin = ArchivePin(
        name="bad",
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        declared_license="MIT",
        build=BuildBlock(database="compile_commands.json"),
    )
    enrich = EnrichParams.model_validate({"compiler": {"unit_cpu_seconds": 4, "unit_memory_megabytes": 2048}})
    params = CorpusParams(held_out=()).model_copy(update={"enrich": enrich})
    with open_build(BuildRequest("made", params, (pin,), "a test", num_workers), store) as opened:
        return list(run_stages(opened, until="enrich"))[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, StageResult, Path]:
    folder = tmp_path_factory.mktemp("bad")
    path = archive(folder)
    store = Store(folder / "store")
    return store, build(store, path, 1), path


@pytest.fixture(scope="module")
def rows(built: tuple[Store, StageResult, Path]) -> dict[str, dict[str, Any]]:
    store, result, _ = built
    table = store.read(result.parts["bad"]).table("enriched.parquet")
    return {row["path"]: row for row in table.to_pylist()}


def names(row: dict[str, Any]) -> list[str]:
    """Return the names that the compiler saw in a file, without those of every file."""
    content = row["text"].encode()
    seen = [
        content[start:end].decode().strip() for start, end in zip(row["symbol_starts"], row["symbol_ends"], strict=True)
    ]
    return [name for name in seen if not name.startswith("own_")]


EXPECTED = {
    "good.cc": ("", ["good", "std", "initializer_list", "values", "twice", "values", "begin"]),
    "good.h": ("", ["twice", "value", "value"]),
    "macros.cc": ("", ["seen", "hidden"]),
    "trigraphs.cc": ("", ["t"]),
    "digraphs.cc": ("", ["d", "x", "x"]),
    "crlf.cc": ("", ["raw", "after_raw"]),
    "utf8.cc": ("", ["größe", "ширина", "ширина", "変数", "größe"]),
    "changed.cc": ("", ["changed_since_the_database"]),
    "quoted.cc": ("", ["quoted", "quoted_length"]),
    "response.cc": ("", ["response"]),
    "precompiled.cc": ("", ["precompiled"]),
    "new_flags.cc": ("", ["new_flags"]),
    "flags_of_c.c": ("", ["flags_of_c"]),
    "braces.cc": ("partial: 5 errors", ["f"]),
    "itself.cc": ("partial: 1 errors", ["itself"]),
    "cycle.cc": ("partial: 18 errors", ["cycle"]),
    "folder.cc": ("partial: 3 errors", ["folder"]),
    "devices.cc": ("partial: 4 errors", ["devices"]),
    "outside.cc": ("partial: 3 errors", ["outside"]),
    "links.cc": ("partial: 2 errors", ["links"]),
    "poison.cc": ("", ["poison"]),
    "fine.h": ("partial: without bodies: crash", ["fine"]),
}
FAILED = {
    "crash.cc": "crash",
    "fatal.cc": "crash",
    "memory.cc": "out_of_memory",
    "slow.cc": "timeout",
    "unary.cc": "crash",
}


@pytest.mark.parametrize("path", sorted(EXPECTED))
def test_what_a_compiler_can_make_of_a_bad_file_is_had(rows: dict[str, dict[str, Any]], path: str) -> None:
    row = rows[path]

    assert (row["provenance"], row["provenance_detail"]) == ("build_aware", EXPECTED[path][0])
    assert names(row) == EXPECTED[path][1]


def test_what_kills_its_compiler_is_named_with_its_reason(
    built: tuple[Store, StageResult, Path], rows: dict[str, dict[str, Any]]
) -> None:
    store, result, _ = built
    record = store.read(result.parts["bad"]).json(COMPILER_RECORD)

    assert record["failed"] == FAILED
    assert record["failed_with_bodies"] == {"poison.cc": "crash"}
    for path in FAILED.keys() & rows.keys():
        assert (rows[path]["provenance"], rows[path]["provenance_detail"]) == (
            "degraded",
            f"tool_failed: {FAILED[path]}",
        )
        assert rows[path]["chunk_ends"][-1] == len(rows[path]["text"].encode())
    bad = {
        "malformed": 7,
        "bad_quoting": 1,
        "response_files": 1,
        "duplicate": 1,
        "missing_file": 1,
        "outside_the_source": 1,
    }
    counts = record["counts"]
    assert {word: counts[f"num_entries_{word}"] for word in bad} == bad
    assert counts["num_units"] == len(EXPECTED.keys() | FAILED.keys() | {"array.cc", "nested.cc"}) - len(
        {"good.h", "fine.h"}
    )


def test_nothing_of_the_machine_is_in_a_context(
    built: tuple[Store, StageResult, Path], rows: dict[str, dict[str, Any]]
) -> None:
    _, result, _ = built
    measures = {**result.report.measures, "num_rows_not_conserved": 0}
    contexts = "".join(row["build_context"] or "" for row in rows.values())

    assert [verdict.sentence for verdict in judge("enrich", measures, EnrichParams()) if not verdict.passed] == []
    assert not any(word in contexts for word in ("/home", "ann", "/opt", "/etc", "passwd", "somewhere", "evil"))
    assert '"ROOT=source/sub"' in contexts
    assert '"NAME=\\"two words\\""' in contexts


def test_one_process_at_a_time_makes_the_same_bytes(built: tuple[Store, StageResult, Path], tmp_path: Path) -> None:
    store, result, path = built
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        other = Store(tmp_path / "store")
        again = build(other, path, 1)
    finally:
        os.sched_setaffinity(0, before)

    assert again.object_id == result.object_id
    for name in ("enriched.parquet", COMPILER_RECORD):
        first, second = (
            ((one.locate(part.parts["bad"]) or tmp_path) / name).read_bytes()
            for one, part in ((store, result), (other, again))
        )
        assert first == second, name


def shown(
    built: tuple[Store, StageResult, Path], capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    store = built[0]
    capsys.readouterr()
    code = main(["show", *arguments, "--structure", "--corpus", "made", "--store", str(store.root)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("good.cc", "compiled as a unit of its own\n"),
        ("good.h", "read by a compiler in the context of unit good.cc\n"),
        ("braces.cc", "compiled as a unit of its own, with errors"),
        ("crash.cc", "to be compiled as a unit of its own, which gave nothing: crash"),
        ("memory.cc", "to be compiled as a unit of its own, which gave nothing: out_of_memory"),
        ("unreached.h", "not read by a compiler: it is not a unit of the compile database"),
    ],
)
def test_show_says_what_became_of_a_file(
    built: tuple[Store, StageResult, Path], capsys: pytest.CaptureFixture[str], path: str, sentence: str
) -> None:
    code, text = shown(built, capsys, "bad", path)

    assert code == 0
    assert sentence in text
    assert "\x1b" not in text
    assert "chunks:" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bad", "nested.cc"), "normalize dropped it: "),
        (("bad", "LICENSE"), "it is license evidence, not a document"),
        (("bad", "god.cc"), "Did you mean good.cc"),
        (("god", "good.cc"), "one of bad"),
    ],
)
def test_show_says_why_there_is_nothing_to_show(
    built: tuple[Store, StageResult, Path],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, str],
    sentence: str,
) -> None:
    code, text = shown(built, capsys, *arguments)

    assert code != 0
    assert sentence in " ".join(text.split())
    assert "Traceback" not in text
