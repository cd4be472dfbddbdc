"""Compile database from cmake, which configures and never builds. The compiler that it tries is that of `ziglang`."""

import hashlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pipeline.lexing.languages import LANGUAGES
from pipeline.pins.build_block import BuildBlock
from pipeline.sandbox.sandbox import TOOLS, Limits, run_confined
from pipeline.sandbox.sandbox_child import PLACE
from pipeline.stages.enrich.compiler.result_cache import ResultCache
from pipeline.stages.enrich.compiler.source_tree import BUILD, SOURCE
from pipeline.stages.enrich.compiler.tools import CONFIGURING, ToolFailedError, package_folder, toolchain_folder

DATABASE = f"{BUILD}/compile_commands.json"

_TOOLS = {"clang": "cc", "clang++": "c++", "ar": "ar", "ranlib": "ranlib"}
_PROGRAMS = (("C_COMPILER", "clang"), ("CXX_COMPILER", "clang++"), ("AR", "ar"), ("RANLIB", "ranlib"))
_SEARCH_PATH = (f"{PLACE}/{TOOLS}", str(Path(sys.executable).parent), "/usr/bin", "/bin")
_OWN_NAMES = frozenset({"CMakeCache.txt", "compile_commands.json", ".ninja_log", ".ninja_deps"})
_OWN_SUFFIXES = frozenset({".cmake", ".ninja"})
_ERROR = re.compile(r"^CMake Error.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_MAX_MESSAGE = 300


def configure(
    files: Mapping[str, bytes], block: BuildBlock, limits: Limits, versions: Mapping[str, str], cache: Path | None
) -> dict[str, bytes]:
    """Run cmake over the files of a source, in the sandbox, unless the cache has its result for the same files.

    Return the generated files that a unit can include, by path below `build/` or `source/`, and the database at DATABASE.
    Raises ToolFailedError with the kind of failure and cmake's first error message.
    """
    digests = [(path, hashlib.sha256(files[path]).hexdigest()) for path in sorted(files)]
    key = [dict(versions), block.folder, block.options, limits.memory_bytes, digests]
    results = ResultCache(cache, "configured")
    entry = results.read(key)
    if entry is not None:
        return {path: text.encode("latin-1") for path, text in entry["files"].items()}
    made = _configure(files, block, limits)
    # Latin-1 has a character for each byte.
    results.write(key, {"files": {path: content.decode("latin-1") for path, content in sorted(made.items())}})
    return made


def _configure(files: Mapping[str, bytes], block: BuildBlock, limits: Limits) -> dict[str, bytes]:
    """Run cmake, and return the database and the generated files without cmake's own, by path."""
    tree = {f"{SOURCE}/{path}": content for path, content in files.items()}
    folders = [package_folder(name) for name in ("ziglang", *CONFIGURING)]
    run = run_confined(_command(block), {**tree, **_wrapped_compiler()}, _SEARCH_PATH, limits, folders)
    if run.failure:
        raise ToolFailedError(run.failure, _first_error(run.output))
    if DATABASE not in run.made:
        raise ToolFailedError("no_database_made", "")
    return {path: made for path, made in run.made.items() if path == DATABASE or not _is_of_cmake(PurePosixPath(path))}


def _command(block: BuildBlock) -> list[str]:
    cmake, ninja = package_folder("cmake") / "data/bin/cmake", package_folder("ninja") / "data/bin/ninja"
    if not ninja.is_file():
        ninja = Path(sys.executable).parent / "ninja"
    return [
        str(cmake),
        *("-S", str(PurePosixPath(PLACE) / SOURCE / block.folder), "-B", f"{PLACE}/{BUILD}", "-G", "Ninja"),
        *block.options,
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        *(f"-DCMAKE_{name}={PLACE}/{TOOLS}/{tool}" for name, tool in _PROGRAMS),
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",  # a check only compiles: linking would take minutes
        *(f"-DCMAKE_{language}_COMPILER_TARGET=x86_64-linux-gnu" for language in ("C", "CXX")),
        "-DFETCHCONTENT_FULLY_DISCONNECTED=ON",
    ]


def _wrapped_compiler() -> dict[str, bytes]:
    """Return one script per tool: cmake needs a path, and zig takes the tool as its first argument."""
    zig = toolchain_folder() / "zig"
    return {f"{TOOLS}/{name}": f'#!/bin/sh\nexec "{zig}" {word} "$@"\n'.encode() for name, word in _TOOLS.items()}


def _is_of_cmake(path: PurePosixPath) -> bool:
    """Return whether cmake keeps a file for itself: such files name the machine's tools and hold random names."""
    is_header = path.suffix == ".inc" or any(path.suffix in each.suffixes - each.unit_suffixes for each in LANGUAGES)
    is_note = "CMakeFiles" in path.parts and not is_header
    return is_note or path.name in _OWN_NAMES or path.suffix in _OWN_SUFFIXES


def _first_error(output: str) -> str:
    found = _ERROR.search(output)
    text = found[0] if found else output.strip().splitlines()[-1] if output.strip() else ""
    return " ".join(text.replace(f"{PLACE}/", "").split())[:_MAX_MESSAGE]
