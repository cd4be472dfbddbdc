"""What configuring made, remembered by all that it could read of its source: a rerun does not run cmake again.

cmake's own notes, which name the machine's tools by their path and draw names at random, are thrown away first: what is left is
what a unit can include.

An entry is one file of JSON. It holds the database and the files below `build/`, and a digest over both: a damaged one is none.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.build_block import BuildBlock
from pipeline.enrich.lane.commands import BUILD
from pipeline.enrich.lane.configure import Configured, configure
from pipeline.enrich.lane.sandbox import Limits
from pipeline.params import digest

FORMAT = 1
_HEADERS = frozenset({".h", ".hh", ".hpp", ".hxx", ".inc"})
_OWN_NAMES = frozenset({"CMakeCache.txt", "compile_commands.json", ".ninja_log", ".ninja_deps"})
_OWN_SUFFIXES = frozenset({".cmake", ".ninja"})
MAX_NUM_BYTES = 256 << 20
"""What makes more is configured again each time."""


def configured(
    folder: Path, block: BuildBlock, limits: Limits, versions: Mapping[str, str], cache: Path | None
) -> Configured:
    """The compile database of the tree in `folder`, with what configuring made laid out below its `build/`."""
    if cache is None:
        return _tidied(folder, configure(folder, block, limits))
    how = [FORMAT, dict(versions), block.folder, block.options, limits.memory_bytes]
    entry = cache / f"{digest([how, _digests(folder / 'source')])}.configured"
    kept = _recall(entry)
    if kept is not None:
        _lay_out(folder / BUILD, kept["files"])
        return Configured(kept["database"].encode("latin-1"))
    made = _tidied(folder, configure(folder, block, limits))
    if made.database is not None:
        _remember(entry, folder, made.database)
    return made


def _tidied(folder: Path, made: Configured) -> Configured:
    """Only headers stay of cmake's own folder, and of the rest no cache, script or list of rules."""
    build = folder / BUILD
    for path in sorted(build.rglob("*")):
        is_own = "CMakeFiles" in path.relative_to(build).parts and path.suffix not in _HEADERS
        if (path.is_file() or path.is_symlink()) and (
            is_own or path.name in _OWN_NAMES or path.suffix in _OWN_SUFFIXES
        ):
            path.unlink()
    return made


def _digests(source: Path) -> list[tuple[str, str]]:
    """Path and content of every file: cmake can look at any of them."""
    files = sorted(path for path in source.rglob("*") if path.is_file())
    return [(str(path.relative_to(source)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def _recall(entry: Path) -> dict[str, Any] | None:
    try:
        kept: dict[str, Any] = json.loads(entry.read_bytes())
        return kept if kept["digest"] == digest([kept["database"], kept["files"]]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _lay_out(build: Path, files: Mapping[str, str]) -> None:
    for path, content in files.items():
        (build / path).parent.mkdir(parents=True, exist_ok=True)
        (build / path).write_bytes(content.encode("latin-1"))


def _remember(entry: Path, folder: Path, database: bytes) -> None:
    """Bytes are kept as Latin-1, which has a sign for each."""
    build = folder / BUILD
    made = sorted(path for path in build.rglob("*") if path.is_file() and not path.is_symlink())
    if sum(path.stat().st_size for path in made) > MAX_NUM_BYTES:
        return
    files = {str(path.relative_to(build)): path.read_bytes().decode("latin-1") for path in made}
    text = database.decode("latin-1")
    entry.parent.mkdir(parents=True, exist_ok=True)
    arriving = entry.with_suffix(f".{os.getpid()}")
    arriving.write_text(
        json.dumps({"database": text, "files": files, "digest": digest([text, files])}), encoding="utf-8"
    )
    arriving.replace(entry)
