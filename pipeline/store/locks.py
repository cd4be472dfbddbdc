"""Locks of a store: one for each corpus that is written, one for refs, one for objects, one for the store as a whole."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.durable import make_folder
from pipeline.core.file_locks import acquire
from pipeline.store.store_layout import refuse_bad_corpus

REFS_LOCK, OBJECTS_LOCK = ".refs", ".objects"
"""No name of a corpus begins with a dot, so no corpus has one of these."""
_STORE_LOCK = ".use"


class Locks:
    """Locks under `root`/locks. The kernel releases them when the process dies."""

    root: Path

    def prepare(self) -> None:
        """Make the store ready to be written."""

    @contextmanager
    def writer(
        self, corpus: str, who: str, wait_seconds: float = 0.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[Path]:
        """Hold a corpus for writing; yields its empty temporary folder.

        `on_wait` is called once with the holder. Raises LockedError after `wait_seconds`.
        """
        refuse_bad_corpus(corpus)
        with self.in_use(), self.lock(corpus, who, wait_seconds, on_wait):
            self.prepare()
            folder = self.root / "tmp" / corpus
            shutil.rmtree(folder, ignore_errors=True)  # the previous holder of the corpus is dead
            folder.mkdir(parents=True)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def in_use(self, alone: bool = False) -> Iterator[None]:
        """Hold the store beside other writers, or `alone`. While a writer holds it, objects without a ref are safe.

        Raises LockedError if `alone` and a writer holds it, or if another process has held it alone for a minute.
        """
        path = self.root / "locks" / _STORE_LOCK
        make_folder(path.parent)
        with path.open("a+") as file:
            wait_seconds, mode = (0.0, fcntl.LOCK_EX) if alone else (60.0, fcntl.LOCK_SH)
            acquire(file.fileno(), path, f"store {self.root}", wait_seconds, lambda holder: None, mode)
            yield

    @contextmanager
    def lock(
        self, name: str, who: str = "", wait_seconds: float = 60.0, on_wait: Callable[[str], None] = lambda holder: None
    ) -> Iterator[None]:
        """Hold one lock and write into it who holds it. Raises LockedError."""
        path = self.root / "locks" / name
        make_folder(path.parent)
        with path.open("a+") as file:
            acquire(file.fileno(), path, _subject(name), wait_seconds, on_wait)
            file.truncate(0)
            file.write(who)
            file.flush()
            yield


def _subject(name: str) -> str:
    if name.startswith("."):
        return f"the store's {name[1:]}"
    return f"run {name.rpartition('/')[2]}" if "/" in name else f"corpus {name}"
