"""StoreArchive: an archive or another blob of a store, or refused bytes, with the collected sources that were read from it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pipeline.build.withdrawal import from_collected
from pipeline.core.errors import SourceError
from pipeline.removal.received_contents import ReceivedContent, received_contents, what_it_is
from pipeline.storage.checked_text import text_of
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from pipeline.store.store_layout import visible

FoundT = TypeVar("FoundT")
GIVEN = "evaluation items"
"""Word for what builds are given beside their sources."""
_OF_SOURCES = "git/"
"""Beginning of the names of packs; other names are of what builds are given, such as evaluation items."""


@dataclass(frozen=True)
class StoreArchive(Generic[FoundT]):
    """A blob, or refused bytes, and what was asked of its contents."""

    path: Path
    users: tuple[StoredObject, ...]
    """The collected sources that were read from it."""
    found: FoundT | None
    """None where it cannot be read: nobody knows what it holds."""
    num_unread: int = 0
    """Pieces within it that could not be read, or not to their end. Their names may be those of a person."""
    is_refused: bool = False
    is_given: bool = False
    """It is no source, such as evaluation items."""

    @property
    def is_read(self) -> bool:
        """True if all that it holds was read."""
        return self.found is not None and not self.num_unread

    @property
    def sha256(self) -> str:
        """The digest of it."""
        return self.path.name

    @property
    def subject(self) -> str:
        """The words for it in messages: what it is, and the beginning of its digest."""
        what = GIVEN if self.is_given else "refused download" if self.is_refused else what_it_is(self.path)
        return f"{what} {self.sha256[:12]}"


def read_archives(store: Store, read: Callable[[Iterator[ReceivedContent]], FoundT]) -> Iterator[StoreArchive[FoundT]]:
    """Iterate over the blobs and refused bytes of a store with what `read` returns of the contents of each."""
    store.storage.fetch_all("names")
    users: dict[str, list[StoredObject]] = {}
    for part, archives in from_collected(store, lambda part: (part, _called(store, part)))[0]:
        for sha256 in archives:
            users.setdefault(sha256, []).append(part)
    given = {sha256 for name, sha256 in names_of_blobs(store).items() if not name.startswith(_OF_SOURCES)}
    for sha256 in store.storage.names("blobs"):
        store.storage.bring(f"blobs/{sha256}")
        path = store.root / "blobs" / sha256
        is_given = sha256 in given - users.keys()
        yield StoreArchive(path, tuple(users.get(sha256, ())), *_read(path, read), is_given=is_given)
    for path in visible(sorted(store.root.glob("rejected/*"))):
        yield StoreArchive(path, (), *_read(path, read), is_refused=True)


def _read(path: Path, read: Callable[[Iterator[ReceivedContent]], FoundT]) -> tuple[FoundT | None, int]:
    unread = list[ReceivedContent]()
    try:
        return read(_without_unread(received_contents(path), unread)), len(unread)
    except (SourceError, FileNotFoundError):
        return None, 0


def _without_unread(pieces: Iterable[ReceivedContent], unread: list[ReceivedContent]) -> Iterator[ReceivedContent]:
    """Iterate over the pieces that were read, and note the others."""
    for piece in pieces:
        if piece.unread:
            unread.append(piece)
        else:
            yield piece


def names_of_blobs(store: Store) -> dict[str, str]:
    """Return the digest that each name of a blob leads to. Damaged names lead nowhere."""
    root = store.root / "names"
    paths = [path for path in visible(root.glob("**/*")) if path.is_file()]
    found = {path.relative_to(root).as_posix(): (text_of(path) or "").partition(" ")[0] for path in paths}
    return {name: sha256 for name, sha256 in sorted(found.items()) if sha256}


def archives_of(store: Store, part: StoredObject) -> list[str]:
    """List the archives of a collected source that the store has: those of its digest, and of the names that its revision has."""
    return sorted(sha256 for sha256 in _called(store, part) if (store.root / "blobs" / sha256).is_file())


def _called(store: Store, part: StoredObject) -> set[str]:
    revision = str(part.identity["revision"])
    names = [*store.root.glob(f"names/*/{revision}"), *store.root.glob(f"names/*/{revision}.*")]
    return {revision, *((text_of(path) or "").partition(" ")[0] for path in names)} - {""}
