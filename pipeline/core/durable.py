"""Durable writes: files synced before they are named and replaced whole, and kernel locks, released when a process dies."""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipeline.core.errors import LockedError

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
    make_folder(path.parent)
    temporary = hidden_sibling(path)
    try:
        write_synced(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a folder, a file or a link; the target of a link stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def hidden_sibling(path: Path) -> Path:
    """Return an unused hidden name beside `path`. A file written there has the usual permissions of the user."""
    return path.with_name(f".{secrets.token_hex(8)}")


def make_folder(path: Path) -> None:
    """Make a folder and its parents, each synced into its parent, so that it survives a power cut."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def cut_torn_line(file: BinaryIO) -> None:
    """Remove an incomplete last line that a power cut left: everything after the last line end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_SIZE))
    tail = file.read()
    file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)


def sync(path: Path) -> None:
    """Sync a file that a library wrote, or a folder, so that the names in it survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a file against every other process; wait until it is free."""
    with path.open("a") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def acquire(
    handle: int,
    path: Path,
    subject: str,
    wait_seconds: float,
    on_wait: Callable[[str], None],
    mode: int = fcntl.LOCK_EX,
) -> None:
    """Take a flock, exclusive unless `mode` is shared, on an open file that contains the holder of `subject`.

    Raises LockedError after `wait_seconds`.
    """
    deadline = time.monotonic() + wait_seconds
    notified = False
    while True:
        try:
            fcntl.flock(handle, mode | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = path.read_text(errors="replace").strip() or "another writer"
            if time.monotonic() >= deadline:
                raise LockedError(
                    subject,
                    f"it is being written by {holder}",
                    "",
                    "Wait until that has ended, then run again.",
                ) from None
        if not notified:
            on_wait(holder)
            notified = True
        time.sleep(_POLL_SECONDS)
