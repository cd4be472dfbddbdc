"""Configuring runs what a source says: without network, with one folder to write to, or not at all."""

import socket
import sys
from pathlib import Path

import pytest

from pipeline.build_block import BuildBlock
from pipeline.enrich.lane.lane import Lane, Source, read_lane
from pipeline.enrich.lane.params import LaneParams
from pipeline.enrich.lane.sandbox import Limits, run_confined
from pipeline.enrich.lane.tools import tool_versions

LIMITS = Limits(cpu_seconds=20, wall_seconds=60, memory_bytes=4 << 30)
BEGIN = "cmake_minimum_required(VERSION 3.20)\nproject(made CXX)\n"


def is_granted(folder: Path) -> bool:
    return run_confined(["/bin/true"], folder, ["/bin"], LIMITS).failure != "no_sandbox"


def lane_of(script: str, cache: Path | None = None, **others: str) -> Lane:
    texts = {"src/a.cpp": b'#include "made.h"\nint a = MADE + GIVEN;\n'}
    files = {"CMakeLists.txt": (BEGIN + script).encode(), **{name: text.encode() for name, text in others.items()}}
    block = BuildBlock(cmake=True, options=("-DWANTED=3",))
    return read_lane(Source("made", {**files, **texts}, texts), block, LaneParams(), tool_versions(cmake=True), cache)


def test_a_configured_source_is_compiled_with_what_configuring_made(tmp_path: Path) -> None:
    if not is_granted(tmp_path):
        pytest.skip("this kernel grants no namespaces")
    lane = lane_of(
        'file(WRITE "${CMAKE_BINARY_DIR}/made.h" "#define MADE 1\\n")\nadd_library(made src/a.cpp)\n'
        "target_include_directories(made PRIVATE ${CMAKE_BINARY_DIR})\ntarget_compile_definitions(made PRIVATE GIVEN=${WANTED})\n"
    )

    assert (lane.view("src/a.cpp").is_seen, lane.view("src/a.cpp").detail, lane.notes) == (True, "", [])
    assert lane.view("src/a.cpp").context == (
        '{"compiler": "clang", "defines": ["GIVEN=3"], "include_roots": ["<build>"], "unit": "src/a.cpp"}'
    )
    assert lane.counts["num_local_paths_in_context"] == 0


def test_a_configure_that_fails_says_why_and_costs_the_lane_alone(tmp_path: Path) -> None:
    if not is_granted(tmp_path):
        pytest.skip("this kernel grants no namespaces")
    lane = lane_of("add_subdirectory(examples)\n")

    assert lane.view("src/a.cpp").detail == "tool_failed: failed"
    assert "examples" in lane.notes[0]
    assert "/tmp" not in lane.notes[0]


def test_a_confined_command_reaches_no_network_and_writes_to_its_folder_alone(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    if not is_granted(inside):
        pytest.skip("this kernel grants no namespaces")
    server = socket.create_server(("127.0.0.1", 0))
    script = f"""
import os, socket
for name, act in {{
    "inside": lambda: open({str(inside / "x")!r}, "w"),
    "outside": lambda: open({str(outside / "x")!r}, "w"),
    "temporary": lambda: open("/tmp/sluice-confined", "w"),
    "network": lambda: socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 5),
    "mount": lambda: os.chmod("/", 0o755),
}}.items():
    try:
        act()
        print(name, "done")
    except OSError as error:
        print(name, "refused")
print(sorted(os.environ))
"""
    run = run_confined([sys.executable, "-I", "-c", script], inside, ["/bin"], LIMITS)
    server.close()

    *done, environment = run.output.splitlines()
    assert done == ["inside done", "outside refused", "temporary refused", "network refused", "mount refused"]
    assert "SLUICE_STORE" not in environment
    assert list(outside.iterdir()) == []


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    if not is_granted(tmp_path):
        pytest.skip("this kernel grants no namespaces")
    limits = Limits(cpu_seconds=1, wall_seconds=30, memory_bytes=1 << 30)
    assert run_confined([sys.executable, "-c", "while True: pass"], tmp_path, ["/bin"], limits).failure == "failed"
    asleep = Limits(cpu_seconds=5, wall_seconds=1, memory_bytes=1 << 30)
    assert run_confined(["/bin/sleep", "600"], tmp_path, ["/bin"], asleep).failure == "timeout"


def test_what_was_configured_is_remembered_until_a_file_of_the_source_changes(tmp_path: Path) -> None:
    if not is_granted(tmp_path):
        pytest.skip("this kernel grants no namespaces")
    cache = tmp_path / "units"
    script = (
        'string(RANDOM LENGTH 20 drawn)\nfile(WRITE "${CMAKE_BINARY_DIR}/made.h" "#define MADE 1 // ${drawn}\\n")\n'
        "add_library(made src/a.cpp)\ntarget_include_directories(made PRIVATE ${CMAKE_BINARY_DIR})\n"
        "target_compile_definitions(made PRIVATE GIVEN=${drawn}=${CMAKE_SOURCE_DIR})\n"
    )
    first = lane_of(script, cache)

    assert lane_of(script, cache).views == first.views  # what cmake drew at random stayed
    assert lane_of(script, cache, other="x").views != first.views
    assert "=source" in (first.view("src/a.cpp").context or "")
    assert not any(sys.prefix.encode() in entry.read_bytes() for entry in cache.iterdir())
    for entry in cache.glob("*.configured"):
        entry.write_bytes(entry.read_bytes().replace(b"MADE 1", b"MADE 2"))
    assert lane_of(script, cache).views != first.views  # a damaged memory is none


def test_a_confined_command_finds_no_files_of_the_user(tmp_path: Path) -> None:
    if not is_granted(tmp_path):
        pytest.skip("this kernel grants no namespaces")
    inside, secret = tmp_path / "inside", tmp_path / "secret.txt"
    inside.mkdir()
    secret.write_text("hidden")
    asked = f"os.path.exists({str(secret)!r}), os.listdir(os.path.expanduser('~')), os.listdir('/home'), os.getcwd()"
    look = f"import os; print({asked})"
    run = run_confined([sys.executable, "-I", "-c", look], inside, ["/bin"], LIMITS)

    assert run.output.splitlines() == ["False [] [] /tmp/sluice"]
