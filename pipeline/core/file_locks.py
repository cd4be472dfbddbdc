"""Locks of files that the kernel holds, and releases when a process dies."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.errors import LockedError

WAIT_REMEDY = "Wait until that has ended, then run again."
_POLL_SECONDS = 0.1


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a file against every other process; wait until it is free."""
    with path.open("a", encoding="utf-8") as file:
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
            holder = path.read_text(encoding="utf-8", errors="replace").strip() or "another writer"
            if time.monotonic() >= deadline:
                raise LockedError(subject, f"it is being written by {holder}", "", WAIT_REMEDY) from None
        if not notified:
            on_wait(holder)
            notified = True
        time.sleep(_POLL_SECONDS)
