"""A compile database by cmake, which is asked to configure and never to build. The compiler it tries is that of `ziglang`."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.build_block import BuildBlock
from pipeline.enrich.lane.confined import PLACE
from pipeline.enrich.lane.sandbox import Limits, run_confined
from pipeline.enrich.lane.tools import package_folder, toolchain_folder

DATABASE = "build/compile_commands.json"

_TOOLS = {"clang": "cc", "clang++": "c++", "ar": "ar", "ranlib": "ranlib"}
_ERROR = re.compile(r"^CMake Error.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_MAX_MESSAGE = 300


@dataclass(frozen=True)
class Configured:
    """The database's bytes, or why there are none: a word, and cmake's own first complaint without the scratch folder."""

    database: bytes | None
    failure: str = ""
    message: str = ""


def configure(folder: Path, block: BuildBlock, limits: Limits) -> Configured:
    """Run cmake over `folder/source` into `folder/build`, in the sandbox."""
    root = folder / "source" / block.folder
    if not (root / "CMakeLists.txt").is_file():
        return Configured(None, "failed", f"there is no {Path(block.folder) / 'CMakeLists.txt'}")
    _wrap_compiler(folder / "tools")
    cmake, ninja = package_folder("cmake") / "data/bin/cmake", package_folder("ninja") / "data/bin/ninja"
    if not ninja.is_file():
        ninja = Path(sys.executable).parent / "ninja"
    command = [
        str(cmake),
        *("-S", str(Path(PLACE) / "source" / block.folder), "-B", f"{PLACE}/build", "-G", "Ninja"),
        *block.options,
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        *(f"-DCMAKE_{name}={PLACE}/tools/{tool}" for name, tool in _PROGRAMS),
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",  # a question is answered by compiling; linking would take minutes
        *(f"-DCMAKE_{language}_COMPILER_TARGET=x86_64-linux-gnu" for language in ("C", "CXX")),
        "-DFETCHCONTENT_FULLY_DISCONNECTED=ON",
    ]
    run = run_confined(command, folder, _SEARCH_PATH, limits)
    if run.failure:
        return Configured(None, run.failure, _complaint(run.output))
    made = folder / DATABASE
    return Configured(made.read_bytes()) if made.is_file() else Configured(None, "no_database_made")


_PROGRAMS = (("C_COMPILER", "clang"), ("CXX_COMPILER", "clang++"), ("AR", "ar"), ("RANLIB", "ranlib"))


_SEARCH_PATH = (f"{PLACE}/tools", str(Path(sys.executable).parent), "/usr/bin", "/bin")


def _wrap_compiler(folder: Path) -> None:
    """One program a tool: cmake wants a path, and zig is told by its first word which tool it is."""
    folder.mkdir()
    for name, word in _TOOLS.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{toolchain_folder() / "zig"}" {word} "$@"\n', encoding="utf-8")
        program.chmod(0o755)


def _complaint(output: str) -> str:
    found = _ERROR.search(output)
    text = found[0] if found else output.strip().splitlines()[-1] if output.strip() else ""
    return " ".join(text.replace(f"{PLACE}/", "").split())[:_MAX_MESSAGE]
