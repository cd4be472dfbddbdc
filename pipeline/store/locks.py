"""Locks of a store: one for each corpus that is written, one for refs, one for objects, one for the store as a whole."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pipeline.core.durable import make_folder
from pipeline.core.errors import LockedError
from pipeline.core.file_locks import acquire
from pipeline.storage.storage import Storage
from pipeline.store.store_layout import refuse_bad_corpus

REFS_LOCK, OBJECTS_LOCK = ".refs", ".objects"
"""No name of a corpus begins with a dot, so no corpus has one of these."""
_STORE_LOCK = ".use"
_READER_SECONDS = 60.0
"""Time to wait until one that holds the store alone has ended."""
_POLL_SECONDS = 0.05


class Locks:
    """Locks under `root`/locks. The kernel releases them when the process dies."""

    root: Path
    storage: Storage

    def prepare(self) -> None:
        """Make the store ready to be written."""

    def is_removing(self) -> bool:
        """Return whether a garbage collection was killed before it had removed all that it had marked."""
        return False

    def finish_removal(self) -> None:
        """Remove what is marked. The caller holds the store alone."""

    @contextmanager
    def writer(
        self, corpus: str, who: str, wait_seconds: float = 0.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[Path]:
        """Hold a corpus for writing; yields its empty temporary folder.

        `on_wait` is called once with the holder. Raises LockedError after `wait_seconds`.
        """
        refuse_bad_corpus(corpus)
        with (
            self.in_use(),
            self.lock(corpus, who, wait_seconds, on_wait),
            self.storage.lease(corpus, who, wait_seconds, on_wait),
        ):
            self.prepare()
            folder = self.root / "tmp" / corpus
            shutil.rmtree(folder, ignore_errors=True)  # the previous holder of the corpus is dead
            folder.mkdir(parents=True)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def in_use(self, alone: bool = False, wait_seconds: float | None = None) -> Iterator[None]:
        """Hold the store beside other readers and writers, or `alone`. While anyone holds it, nothing is removed.

        Whoever comes first after a garbage collection that was killed finishes it. Raises LockedError if `alone` and another
        process holds the store, or if another has held it alone for a minute; `wait_seconds` sets another time.
        """
        path = self.root / "locks" / _STORE_LOCK
        file = _opened(path, must_write=alone)
        if file is None:  # of a store that this user cannot write
            yield
            return
        with file:
            mode, seconds = (fcntl.LOCK_EX, 0.0) if alone else (fcntl.LOCK_SH, _READER_SECONDS)
            self._hold(file, path, mode, seconds if wait_seconds is None else wait_seconds)
            while not self.storage.is_shared and self.is_removing() and file.writable():
                try:  # those who hold the store beside this process come past this line once one of them has finished
                    self._hold(file, path, fcntl.LOCK_EX, 0.0)
                    self.finish_removal()
                except LockedError:
                    time.sleep(_POLL_SECONDS)
                self._hold(file, path, mode, _READER_SECONDS)
            with self.storage.in_use(alone, seconds if wait_seconds is None else wait_seconds):
                yield
            if self.storage.is_shared:
                with suppress(LockedError):  # another process of this machine reads what is here
                    self._hold(file, path, fcntl.LOCK_EX, 0.0)
                    self.storage.trim()

    def _hold(self, file: IO[str], path: Path, mode: int, wait_seconds: float) -> None:
        acquire(file.fileno(), path, f"store {self.storage.address}", wait_seconds, lambda holder: None, mode)

    @contextmanager
    def lock(
        self, name: str, who: str = "", wait_seconds: float = 60.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[None]:
        """Hold one lock and write into it who holds it. Its file goes where what held it ends with an error. Raises LockedError."""
        path = self.root / "locks" / name
        make_folder(path.parent)
        while True:
            with path.open("a+") as file:
                acquire(file.fileno(), path, _subject(name), wait_seconds, on_wait)
                if not _is_there(path, file):  # who held it before has removed it: another file may be locked by now
                    continue
                file.truncate(0)
                file.write(who)
                file.flush()
                try:
                    yield
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
                return


def _opened(path: Path, must_write: bool) -> IO[str] | None:
    """Open the file of a lock; one that this user may not write is opened for reading. None where there is none then."""
    try:
        make_folder(path.parent)
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        if must_write or error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
    return path.open(encoding="utf-8") if path.exists() else None


def _is_there(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _subject(name: str) -> str:
    if name.startswith("."):
        return f"the store's {name[1:]}"
    return f"run {name.rpartition('/')[2]}" if "/" in name else f"corpus {name}"
