"""One-line files of a store (refs, keys, names, heads of logs, the format): a value and a checksum over place and value.

A flipped bit, a cut, an added byte, a link, or a file at another's place is found by every reader.
"""

import os
from pathlib import Path

from pipeline.core.digests import text_sha256
from pipeline.core.durable import replace
from pipeline.core.errors import DamagedError
from pipeline.storage.open_storage import storage_of


def checked_line(place: str, value: str) -> str:
    """Return the content of the one-line file that holds `value` at `place`, its path below the root of the store."""
    checksum = text_sha256(f"{place}\0{value}")
    return f"{value} {checksum}\n"


def read_value(root: Path, place: str, subject: str, remedy: str) -> str | None:
    """Return the value at `place`, or None if there is no such file. Raises DamagedError about `subject`."""
    path = f"{root}/{place}"  # no Path: these files are read more often than all others
    storage_of(root).fetch(place)
    try:
        refuse_link(path, place.count("/") + 1, subject, remedy)
        with open(path, "rb") as file:
            found = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(subject, error.strerror or str(error), "a file of one line", remedy) from error
    value = found.decode("utf-8", "replace").rpartition(" ")[0]
    if found != checked_line(place, value).encode():
        raise DamagedError(subject, f"it holds {text_of(root / place)!r:.80}", "a value and its checksum", remedy)
    return value


def write_value(root: Path, place: str, value: str) -> None:
    """Write a one-line file whole or not at all."""
    replace(root / place, checked_line(place, value).encode())
    storage_of(root).put(place)


def refuse_link(path: str | Path, num_levels: int, subject: str, remedy: str) -> None:
    """Raise DamagedError for a path of which one of the last parts is a link: what it leads to is not the store's."""
    part = os.fspath(path)
    for _ in range(num_levels):
        if os.path.islink(part):
            found = f"{os.path.basename(part)} is a link to {os.readlink(part)}"
            raise DamagedError(subject, found, "what was stored itself", remedy)
        part = os.path.dirname(part)


def text_of(path: Path) -> str | None:
    """Return the text of a one-line file as it is, sound or not, without its line end; None if there is no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
