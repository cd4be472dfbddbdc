"""Durable writes: files synced before they are named and replaced whole."""

import os
import secrets
import shutil
from pathlib import Path
from typing import BinaryIO

_TAIL_SIZE = 1 << 20


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


def move_in(folder: Path, target: Path) -> bool:
    """Rename a finished folder; False if the target exists, perhaps made at the same time."""
    try:
        folder.rename(target)
    except OSError:
        if not os.path.lexists(target):
            raise
        return False
    return True
