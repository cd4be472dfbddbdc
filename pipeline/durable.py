"""Durable writes: synced before they are named, replaced whole, and locked by the kernel, which lets go when a process dies."""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import LockedError

_TAIL_SIZE = 1 << 20
_POLL_SECONDS = 0.1


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and sync it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: a hidden sibling, synced, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    os.close(handle)
    try:
        write_synced(Path(name), content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def cut_torn_line(file: BinaryIO) -> None:
    """Cut what a power cut left of a line: everything behind the last line end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_SIZE))
    tail = file.read()
    file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)


def sync_folder(path: Path) -> None:
    """Sync a folder, so that the names in it survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Sync a file that a library wrote."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def acquire(handle: int, path: Path, wait_seconds: float, on_wait: Callable[[str], None]) -> None:
    """Take an exclusive flock on an open file that says who holds it. Raises LockedError when the wait is over."""
    deadline = time.monotonic() + wait_seconds
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = path.read_text().strip() or "another writer"
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"corpus {path.name}",
                    f"it is being written by {holder}",
                    "",
                    "Wait until that has ended, then run again.",
                ) from None
        if not told:
            on_wait(holder)
            told = True
        time.sleep(_POLL_SECONDS)
