"""Cache of cmake's results, by all files of the source that it could read: a rerun does not run cmake again.

An entry is one JSON file: the database, the generated files, and a digest over both. A damaged entry is ignored.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pipeline.core.params import digest
from pipeline.enrich.compiler.cache_entry import remember
from pipeline.enrich.compiler.cmake import Configured, configure
from pipeline.pins.build_block import BuildBlock
from pipeline.sandbox.sandbox import Limits

FORMAT = 3


def configured(
    files: Mapping[str, bytes], block: BuildBlock, limits: Limits, versions: Mapping[str, str], cache: Path | None
) -> Configured:
    """Return the compile database of a source by cmake, and the generated files."""
    if cache is None:
        return configure(files, block, limits)
    how = [FORMAT, dict(versions), block.folder, block.options, limits.memory_bytes]
    digests = [(path, hashlib.sha256(files[path]).hexdigest()) for path in sorted(files)]
    entry = cache / f"{digest([how, digests])}.configured"
    kept = _recall(entry)
    if kept is not None:
        return kept
    made = configure(files, block, limits)
    if made.database is not None:
        _remember(entry, made.database, made.made)
    return made


def _recall(entry: Path) -> Configured | None:
    try:
        kept = json.loads(entry.read_bytes())
        if kept["digest"] != digest([kept["database"], kept["files"]]):
            return None
        made = {path: content.encode("latin-1") for path, content in kept["files"].items()}
        return Configured(kept["database"].encode("latin-1"), made=made)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _remember(entry: Path, database: bytes, made: Mapping[str, bytes]) -> None:
    """Store bytes as Latin-1, which has a character for each."""
    files = {path: content.decode("latin-1") for path, content in sorted(made.items())}
    text = database.decode("latin-1")
    remember(entry, {"database": text, "files": files, "digest": digest([text, files])})
