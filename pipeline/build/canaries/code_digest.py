"""Digest of the code that judges: every module of the pipeline."""

import hashlib
from functools import cache
from pathlib import Path

_PIPELINE = Path(__file__).parents[2]


@cache
def code_digest() -> str:
    """Return the SHA-256 of the names and bytes of the modules of the package, as they are on disk now."""
    digest = hashlib.sha256()
    for path in sorted(_PIPELINE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PIPELINE).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
