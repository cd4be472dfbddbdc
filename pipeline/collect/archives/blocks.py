"""A file of any size, block by block."""

from collections.abc import Iterator
from pathlib import Path

_BLOCK_BYTES = 1024**2


def file_blocks(path: Path) -> Iterator[bytes]:
    """A file's bytes, a MiB at a time."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
