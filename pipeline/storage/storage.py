"""Storage: the place where the files of a store are kept. `Storage` is that of a folder, in which everything is where it is read.

Of another storage the folder is a cache. What is read is brought into it first, what was written is put from it, and the files
in it are those of a store: a table, a map of memory and a link are of files in either. The file `bucket` there says which storage
it is, so that every process that is given the folder finds the same one.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.digests import file_sha256, known_sha256
from pipeline.core.durable import remove
from pipeline.core.errors import SluiceError

CACHE_MARK = "bucket"
"""The file of a cache that says which bucket it is of."""
Lines = Mapping[str, list[bytes]]
"""Name of a log -> its lines."""
DAMAGE_REMEDY = "Build again: damaged objects are replaced. `python -m pipeline fsck` lists all damage."


class LogConflictError(SluiceError):
    """Another writer has appended to a log meanwhile: what was judged is judged again."""


class Storage:
    """Storage of a folder."""

    is_shared = False
    """True where other machines write too, and this folder has a copy of the logs and refs."""

    max_cache_bytes: int | None = None
    """Bound of what is kept here of a storage elsewhere; None where the files are."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def address(self) -> str:
        """The text that `--store` takes."""
        return str(self.root)

    def fetch(self, place: str) -> None:
        """Fetch a file that can be replaced, as it is now."""

    def fetch_all(self, folder: str) -> list[str]:
        """Fetch all files of a folder that can be replaced; of `objects` the manifests. Returns what is wrong with these."""
        return []

    def fetch_object(self, object_id: str) -> None:
        """Fetch the manifest of an object; one that is no longer stored goes."""

    def bring(self, place: str) -> None:
        """Fetch a file that is never replaced, unless it is here."""

    def bring_all(self, sizes: Mapping[str, int]) -> None:
        """Fetch the files of a table, which are never replaced, at once. `sizes` are their bytes, by place."""

    @property
    def fetched(self) -> str:
        """Amount that `bring_all` has fetched, and its time, in words; empty where it was nothing."""
        return ""

    def put(self, place: str) -> None:
        """Store a file that was written here."""

    def put_object(self, path: Path) -> None:
        """Store an object that was written here."""

    def hand_over(self, folder: Path, object_id: str, place: str) -> None:
        """Give some files of an object to the process that has the others and the manifest, in the folder `place`.

        They are no object before that process has stored the manifest. The folder is gone then.
        """
        for path in sorted(folder.iterdir()):
            os.replace(path, self.root / place / path.name)
        folder.rmdir()

    def remove(self, place: str) -> None:
        """Remove a file."""
        remove(self.root / place)

    def remove_object(self, object_id: str) -> None:
        """Remove what is stored of an object elsewhere."""

    def remove_leftovers(self) -> None:
        """Remove what a killed writer or removal has left of objects elsewhere. The caller holds the store alone."""

    def has(self, place: str) -> bool:
        """Return whether there is such a file."""
        return (self.root / place).exists()

    def names(self, folder: str) -> list[str]:
        """List the names in a folder, sorted, without hidden ones: a killed write leaves one, which is not stored."""
        return sorted(path.name for path in (self.root / folder).glob("*") if not path.name.startswith("."))

    def all_names(self, folder: str) -> list[str]:
        """List the names in the folder of an object, sorted, hidden ones too."""
        return sorted(path.name for path in (self.root / folder).iterdir())

    def sha256(self, path: Path, expected: str) -> str:
        """Return the digest of a file of an object, which is here then; one that was read before is not read again."""
        return known_sha256(path)

    def stored_sha256(self, path: Path, is_known: bool = False) -> str:
        """Return the digest of a file as it is stored; with `is_known` one that was read before is not read again."""
        return known_sha256(path) if is_known else file_sha256(path)

    def to_verify(self, object_id: str, sizes: Mapping[str, int]) -> Collection[str]:
        """Return the files of an object that must be read to know whether it is sound. Raises OSError for one that is missing."""
        return sizes

    def prepare(self) -> None:
        """Make the storage ready for a new store."""

    def pull(self, known: Callable[[], Lines], take: Callable[[Lines], None]) -> None:
        """Give `take` the lines of all logs, unless those in the folder, which `known` reads, are the newest."""

    def publish(self, log: str, number: int, line: bytes) -> None:
        """Append the line of that number to a log. Raises LogConflictError if another writer has appended one of it."""

    @contextmanager
    def lease(self, name: str, who: str, wait_seconds: float, on_wait: Callable[[str], None]) -> Iterator[None]:
        """Hold a name against writers on other machines. Raises LockedError."""
        yield

    def leased(self, folder: str) -> list[str]:
        """List the names below `folder` that writers on any machine hold, also one that has died lately."""
        return []

    @contextmanager
    def in_use(self, alone: bool, wait_seconds: float) -> Iterator[None]:
        """Hold the store beside users on other machines, or alone. Raises LockedError."""
        yield

    def trim(self) -> None:
        """Remove the files of a cache that were not read for longest, down to its bound. No other process reads them."""

    def refresh(self) -> None:
        """Remove what is in the folder where it is a cache of a store that is gone."""

    def refuse(self, what: str) -> None:
        """Raise StoreError for what this storage does not support."""
