"""Compile databases as projects have them: quoted, relative, outdated, with duplicates, and made on other machines."""

import json
import shlex

import pytest

from pipeline.lexing.languages import LANGUAGES, Language
from pipeline.stages.enrich.compiler.compile_commands import (
    MAX_DATABASE_BYTES,
    Command,
    context_of,
    place_of_source,
    read_database,
)
from pipeline.stages.enrich.compiler.local_paths import count_local
from pipeline.stages.enrich.compiler.source_tree import SourceTree

FILES = frozenset(
    {"source/src/a.cc", "source/more.rsp", "source/include/b.h", "source/pre.h", "source/flags.rsp", "build/gen/v.h"}
    | {"source/src/b.c", "source/src/t.tpp", "source/src/k.cu"}
)
TREE = SourceTree(
    FILES,
    (("/home/ann/p/build", "build"), ("/home/ann/p", "source")),
    {"source/flags.rsp": b'-DFROM="a response" @flags.rsp', "source/more.rsp": b"-DB='b c'\n-I include"},
    frozenset({"ann"}),
)


def entry(command: str | list[str], file: str = "src/a.cc", directory: str = "/home/ann/p") -> dict[str, object]:
    key = "command" if isinstance(command, str) else "arguments"
    return {"directory": directory, key: command, "file": file}


def read(*entries: object) -> tuple[dict[str, Command], dict[str, int]]:
    database = read_database(json.dumps(entries).encode(), TREE)
    return database.commands, dict(database.left_out)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("c++ -c src/a.cc -o /tmp/x.o -MD -MF x.d -O3 -Wall -g", []),
        (r"g++ -DNAME=\"a\ b\" -D 'F(x)=x + 1' -D X src/a.cc", ["-D", 'NAME="a b"', "-D", "F(x)=x + 1", "-D", "X"]),
        (["g++", "-DNAME=a b", "src/a.cc"], ["-D", "NAME=a b"]),
        ("c++ -Iinclude -I include -isystem ../p/include -iquote . a", [
            *("-I", "source/include", "-I", "source/include", "-isystem", "source/include", "-iquote", "source"),
        ]),
        ("c++ -I/usr/include -I/home/annabel/x -I../../.. a", []),
        ("c++ -include pre.h -imacros /home/ann/p/build/gen/v.h a", [
            *("-include", "source/pre.h", "-imacros", "build/gen/v.h"),
        ]),
        ("ccache /usr/bin/clang++-18 -std=gnu++20 -x c++ -U X a", ["-std=gnu++20", "-x", "c++", "-U", "X"]),
        ("c++ -std c++17 a", ["-std=c++17"]),
        ("gcc -fno-exceptions -mavx2 -march=native -fsanitize=address -fmodules-ts -fconcepts -Wl,x a",
         ["-fno-exceptions", "-mavx2"]),
        ("c++ -DROOT=/home/ann/p/data -DOTHER=\"/opt/x/y\" -DRATIO=a/b a",
         ["-D", "ROOT=source/data", "-D", "OTHER=elsewhere", "-D", "RATIO=a/b"]),
        ("c++ -DBUILD_USER=ann -DHOSTNAME=box -DUSERS=3 a", ["-D", "USERS=3"]),
        ("c++ -I", []),
        ("c++ -DA @more.rsp @gone.rsp -DC a", ["-D", "A", "-D", "B=b c", "-I", "source/include", "-D", "C"]),
    ],
)  # fmt: skip
def test_only_options_that_change_the_meaning_of_the_text_are_kept(
    command: str | list[str], expected: list[str]
) -> None:
    commands, left_out = read(entry(command))

    assert list(commands["source/src/a.cc"].arguments) == expected
    assert left_out == {}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("c++ -DX='a"), "bad_quoting"),
        (entry("c++ @flags.rsp", directory="/home/ann/p"), "response_files"),
        (entry("c++", file="src/gone.cc"), "missing_file"),
        (entry("c++", file="/usr/src/a.cc"), "outside_the_source"),
        (entry("c++", file="../../../etc/passwd"), "outside_the_source"),
        (entry("c++", directory="/elsewhere"), "outside_the_source"),
        (entry(""), "malformed"),
        (entry([]), "malformed"),
        ({"file": "src/a.cc"}, "malformed"),
        ({"file": 3}, "malformed"),
        ("text", "malformed"),
        (entry("cl.exe /DX /c src/a.cc"), "other_compiler"),
        (entry("nvcc -x cu src/a.cc"), "other_compiler"),
    ],
)
def test_a_bad_entry_is_left_out_and_counted_and_the_others_are_kept(bad: object, reason: str) -> None:
    commands, left_out = read(bad, entry("c++ -DX", file="/home/ann/p/src/a.cc"))

    assert left_out == {reason: 1}
    assert commands["source/src/a.cc"].arguments == ("-D", "X")


def test_of_entries_for_one_file_the_same_is_kept_in_any_order() -> None:
    pair = [entry("c++ -DB"), entry("c++ -DA", file="/home/ann/p/src/a.cc")]

    assert read(*pair)[0] == read(*reversed(pair))[0]
    assert read(*pair)[1] == {"duplicate": 1}


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b"\xff", b'"x"', b"[" * 100_000])
def test_a_file_that_is_not_a_database_has_no_commands(content: bytes) -> None:
    database = read_database(content, TREE)

    assert (database.commands, dict(database.left_out)) == ({}, {"not_a_database": 1})


def test_the_place_of_the_source_is_found_from_the_files() -> None:
    entries = [
        {"directory": "/ci/work/p/build", "file": "../src/a.cc"},
        {"directory": "/ci/work/p/build", "file": "/ci/work/p/src/b.cc"},
        {"directory": "/", "file": "/usr/src/other.cc"},
    ]

    assert place_of_source(json.dumps(entries).encode(), frozenset({"src/a.cc", "src/b.cc", "b.cc"})) == "/ci/work/p"


def test_a_context_has_no_path_of_a_machine_and_the_count_detects_one() -> None:
    words = "-I/home/ann/p/include -I/home/ann/p/build/gen -isystem /usr/include -DROOT=/home/ann/p -o /home/ann/x.o"
    commands, _ = read(entry(shlex.join(["c++", *words.split(), "-std=c++20"])))
    context = context_of(commands["source/src/a.cc"])

    assert json.loads(context) == {
        "compiler": "gcc",
        "defines": ["ROOT=source"],
        "include_roots": ["include", "<build>/gen"],
        "standard": "c++20",
        "unit": "src/a.cc",
    }
    assert count_local([context], ["ann"]) == 0
    for planted in ("/home/x", "C:\\\\Users\\\\x", "~/x", "file:///x", "a@example.org", "by ann", "../x"):
        assert count_local([context.replace("ROOT=source", planted)], ["ann"]) == 1, planted


@pytest.mark.parametrize(
    ("command", "file", "expected"),
    [
        ("clang++ -stdlib=libc++ -std=c++17 a", "src/a.cc", ["-std=c++17"]),
        ("g++ -std=c++29 --std=gnu++20 a", "src/a.cc", ["-std=gnu++20"]),
        ("gcc -std=c++17 -DX a", "src/b.c", ["-D", "X"]),
        ("g++ -std=c11 a", "src/a.cc", []),
        ("g++ -x c -std=c11 a", "src/a.cc", ["-x", "c", "-std=c11"]),
        ("g++ -include-pch pre.h.pch -include pre.h a", "src/a.cc", ["-include", "source/pre.h"]),
        ("g++ -I- -isystem-after x -resource-dir include -working-directory /etc a", "src/a.cc", []),
        ("g++ -fplugin=./evil.so -fpass-plugin=x -Xclang -load -Xclang evil.so -specs=x -wrapper sh,-c a", "src/a.cc", []),
        ("clang++ --config evil.cfg --config=evil.cfg -fmodules -fmodules-cache-path=/x -fmodule-map-file=x a", "src/a.cc", []),
        ("g++ -o /somewhere/x -o/x -MD -MMD -MF /x -MFx -MT y -MJ z -save-temps -dumpdir /x -ftime-trace=/x a", "src/a.cc", []),
        ("g++ -ivfsoverlay o.yaml -vfsoverlay o -imultilib x -B. -Xarch_x86_64 -DX a", "src/a.cc", []),
        ("g++ -U /home/ann/x -U X -D /etc/x -D '1=2' a", "src/a.cc", ["-U", "X"]),
        ("g++ '-DMAIL=\"x@y.org\"' -DUP=../../x '-DSHARE=\\\\\\\\box\\\\ann' -DBY=ann a", "src/a.cc",
         ["-D", 'MAIL="elsewhere"', "-D", "UP=elsewhere", "-D", "SHARE=elsewhere", "-D", "BY=elsewhere"]),
        ("g++ @/etc/passwd @../../x @ a", "src/a.cc", []),
        ("c++ a", "src/t.tpp", ["-x", "c++"]),
    ],
)  # fmt: skip
def test_no_option_runs_writes_or_reads_elsewhere_and_none_loses_its_unit(
    command: str, file: str, expected: list[str]
) -> None:
    commands, left_out = read(entry(command, file))

    assert (list(commands[f"source/{file}"].arguments), left_out) == (expected, {})
    assert count_local([context_of(commands[f"source/{file}"])], ["ann"]) == 0


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("c++ a", "src/k.cu"), "other_language"),
        (entry("c++ -x ast a"), "other_language"),
        (entry("c++ -x ir a"), "other_language"),
        (entry("c++ a", "flags.rsp"), "other_language"),
        (entry(["c++", "-DX=\ud800"]), "malformed"),
        (entry(["c++", "-DX=\0"]), "malformed"),
        (entry(["c++", 3]), "malformed"),  # type: ignore[list-item]
        (entry("c++ " + "-DX " * 300_000), "malformed"),
        (entry("c++ a", "a/" * 30_000), "malformed"),
        (3, "malformed"),
        ([], "malformed"),
    ],
)
def test_an_entry_without_a_valid_command_is_left_out(bad: object, reason: str) -> None:
    assert read(bad) == ({}, {reason: 1})


def test_a_database_that_is_too_large_is_not_read() -> None:
    assert read_database(b"[" + b" " * MAX_DATABASE_BYTES, TREE).left_out == {"not_a_database": 1}


def test_a_long_argument_takes_linear_time() -> None:
    """Quadratic searches would take hours here."""
    word = "a" * 500_000
    commands, _ = read(entry(["c++", f"-DX={word}", f"-DUSER_{word}=1"]))

    assert count_local([context_of(commands["source/src/a.cc"])], ["ann"]) == 0


def test_a_folder_of_the_source_may_have_the_name_of_a_user() -> None:
    tree = SourceTree(frozenset({"source/user/a@b.c/x.cc"}), (("/home/user/p", "source"),), {}, frozenset({"user"}))
    given = {"directory": "/home/user/p", "command": "c++ -Iuser/a@b.c -DBY=user a", "file": "user/a@b.c/x.cc"}
    (command,) = read_database(json.dumps([given]).encode(), tree).commands.values()

    assert json.loads(context_of(command))["include_roots"] == ["user/a@b.c"]
    assert count_local([context_of(command)], ["user"]) == 0
    for planted in ("/x", "../x", "C:/x", "file:x"):
        assert count_local([context_of(command).replace('"user/a@b.c"', f'"{planted}"')], []) == 1, planted


@pytest.mark.parametrize("path", ["~a.c", r"\xe9.c", "src/gcc.c"])
def test_a_file_may_have_any_name_and_a_user_that_of_a_compiler_or_an_option(path: str) -> None:
    users = ["gcc", "builtin", "c", "gnu11", "fno"]
    command = Command(f"source/{path}", ("-x", "c", "-std=gnu11", "-fno-builtin", "-D", "X=1"), "gcc")

    assert count_local([context_of(command)], users) == 0
    assert count_local([context_of(command).replace("X=1", "X=gcc")], users) == 1


def test_a_language_that_is_registered_is_compiled_as_it_declares() -> None:
    tree = SourceTree(frozenset({"source/a.ccx"}), (("/w", "source"),), {})
    database = json.dumps([{"directory": "/w", "command": "c++ -DX a.ccx", "file": "a.ccx"}]).encode()

    assert read_database(database, tree).left_out == {"other_language": 1}
    with LANGUAGES.registered(Language("ccx", frozenset({".ccx"}), one_of=("cpp",), compiled_as="c++")):
        (command,) = read_database(database, tree).commands.values()
    assert command.arguments == ("-D", "X", "-x", "c++")
