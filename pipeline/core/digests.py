"""SHA-256 digests of files, texts and the code of the pipeline, and the ids of documents."""

import hashlib
import os
import time
from functools import cache
from pathlib import Path
from typing import IO

_SETTLED_NS = 20_000_000
"""Age of the last change from which on a file is remembered: more than a tick of any file system's clock."""
_PIPELINE = Path(__file__).parents[1]
_KNOWN: dict[tuple[int, ...], str] = {}
"""Digests of files that this process has read, by device, inode, size and times."""


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_sha256(path: Path) -> str:
    """Return the SHA-256 of a file; one that this process has read, and that has not changed since, is not read again."""
    with path.open("rb", buffering=0) as file:
        before = _state(file)
        if before not in _KNOWN:
            started = time.time_ns()
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if _state(file) != before or started - before[-1] < _SETTLED_NS:
                return found  # a write within one tick of the clock of the file system would leave the same times
            _KNOWN[before] = found
        return _KNOWN[before]


def text_sha256(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def document_id(source: str, path: str, content_sha256: str) -> str:
    """Return the SHA-256 over source, path and the digest of the content, each as UTF-8 after its length in bytes and a colon.

    Length-prefixed, so that no two different triples share a byte string. The content of a Document is its normalized
    text; of a file that was dropped before it had one, the raw bytes.
    """
    parts = [part.encode("utf-8", "surrogateescape") for part in (source, path, content_sha256)]
    return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).hexdigest()


@cache
def code_digest(package: Path = _PIPELINE) -> str:
    """Return the SHA-256 of the names and bytes of the modules of a package, unless given the pipeline, as they are on disk now."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _state(file: IO[bytes]) -> tuple[int, ...]:
    status = os.fstat(file.fileno())
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
