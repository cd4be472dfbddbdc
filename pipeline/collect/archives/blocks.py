"""A file of any size, block by block."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

_BLOCK_BYTES = 1024**2


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_blocks(path: Path) -> Iterator[bytes]:
    """A file's bytes, a MiB at a time."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
