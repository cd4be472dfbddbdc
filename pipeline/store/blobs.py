"""Blobs of a store: archives as received, by SHA-256, and by the names of bytes whose digest is not known beforehand."""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from pipeline.core.digests import file_sha256
from pipeline.core.durable import hidden_sibling, make_folder, sync
from pipeline.core.errors import DamagedError, DigestError, MissingError, StoreError
from pipeline.storage.checked_text import read_value, write_value
from pipeline.store.log import BLOBS, Log
from pipeline.store.store_layout import visible


class Blobs(Log):
    """Blobs under `root`/blobs, downloads under `root`/tmp/.blobs, refused bytes under `root`/rejected.

    The log of blobs has a line for each blob, name and removal, so that a missing one is found.
    """

    root: Path

    def blob(self, sha256: str) -> Path | None:
        """Return the path of a blob, or None if it is missing or its bytes changed, so that it is downloaded again."""
        path = self.root / "blobs" / sha256
        self.storage.bring(f"blobs/{sha256}")
        return path if _is_own_file(path) and file_sha256(path) == sha256 else None

    def partial_blob(self, sha256: str) -> Path:
        """Return the path at which an interrupted download of the blob is kept. Never read as a blob."""
        path = self.root / "tmp" / ".blobs" / f"{sha256}.part"
        make_folder(path.parent)
        return path

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        """Store bytes as blob `sha256`. Raises DigestError for other bytes, which are kept under rejected/."""
        arriving = hidden_sibling(self.partial_blob(sha256))
        hasher = hashlib.sha256()
        try:
            with arriving.open("wb") as file:
                for chunk in chunks:
                    hasher.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            found = hasher.hexdigest()
            target = self.root / ("blobs" if found == sha256 else "rejected") / found
            make_folder(target.parent)
            os.replace(arriving, target)
            sync(target.parent)
            if found == sha256:
                self.storage.put(f"blobs/{found}")
        except BaseException:
            arriving.unlink(missing_ok=True)
            raise
        if found != sha256:
            raise DigestError(
                subject,
                f"its bytes have sha256 {found}",
                f"{sha256}, as pinned",
                f"The bytes are kept in rejected/{found[:12]}... and not used. Check the pin, or the index that served them.",
            )
        self.log_blob(sha256)
        return target

    def named_blob(self, name: str) -> Path | None:
        """Return the blob that a name such as `git/<commit>` was last given to, or None, also for a name that is damaged."""
        try:
            sha256 = self._named(name)
        except DamagedError:
            return None
        return self.blob(sha256) if sha256 is not None else None

    def name_blob(self, name: str, sha256: str) -> None:
        """Give a blob a name. Its reader must check the content: the name does not prove it."""
        self.prepare()
        write_value(self.root, f"names/{name}", sha256)
        self.log_blob(sha256, name=name)

    def log_blob(self, sha256: str, name: str = "", is_removed: bool = False) -> None:
        """Record that a blob is stored, has a name, or is about to be removed."""
        self.prepare()
        entry = {"blob": sha256, "name": name, "is_removed": is_removed}
        self.change(lambda: self.append(BLOBS, entry))

    def bad_blobs(self) -> Iterator[str]:
        """Iterate over the blobs, names and refused bytes that are not as written, and the blobs and names that are missing."""
        stored, named = self._recorded()
        blobs = set(self.storage.names("blobs"))
        kept = (sha256 for sha256, is_stored in stored.items() if is_stored)
        for path in visible(self.root.glob("rejected/*")):
            yield from map(str, self._bad_bytes(path, "refused blob"))
        for sha256 in sorted(blobs.union(kept)):
            yield from map(str, self._bad_blob(sha256, sha256 in blobs, stored))
        self.storage.fetch_all("names")
        root = self.root / "names"
        here = {path.relative_to(root).as_posix() for path in visible(root.glob("**/*")) if path.is_file()}
        for name in sorted(here | named):
            yield from map(str, self._bad_name(name, named))

    def verify_blobs(self, places: Iterable[str]) -> set[str]:
        """Return those of these digests of blobs, and names of blobs, of which the store has the blob.

        Raises the error that `fsck` reports for one of them, or for such a name. What was removed by its rules, or never was here,
        is none.
        """
        stored, named = self._recorded()
        here, found = set(self.storage.names("blobs")), set()
        for place in places:
            for error in self._bad_name(place, named) if "/" in place else ():
                raise error
            sha256 = self._named(place) if "/" in place else place
            for error in self._bad_blob(sha256, sha256 in here, stored, is_known=True) if sha256 else ():
                raise error
            if sha256 in here:
                found.add(place)
        return found

    def _recorded(self) -> tuple[dict[str, bool], set[str]]:
        """Return whether each blob is stored, and the names that blobs were given, as the log says."""
        entries = list(self.entries(BLOBS))
        stored = {entry["blob"]: not entry["is_removed"] for entry in entries if not entry["name"]}
        named = {entry["name"]: not entry["is_removed"] for entry in entries if entry["name"]}
        return stored, {name for name, is_given in named.items() if is_given}

    def _bad_blob(
        self, sha256: str, is_here: bool, stored: Mapping[str, bool], is_known: bool = False
    ) -> Iterator[StoreError]:
        """Yield what is wrong with a blob; with `is_known` one that was read before is not read again."""
        if is_here:
            yield from self._bad_bytes(self.root / "blobs" / sha256, "blob", is_known)
        elif stored.get(sha256):
            yield MissingError(f"blob {sha256[:12]}", "it is missing", remedy=_BLOB_REMEDY)

    def _bad_bytes(self, path: Path, kind: str, is_known: bool = False) -> Iterator[StoreError]:
        subject = f"{kind} {path.name[:12]}"
        if not (self.storage.is_shared or _is_own_file(path)):
            yield DamagedError(subject, "it is not a file", remedy="Remove it: the next build downloads it again.")
        elif self.storage.stored_sha256(path, is_known) != path.name:
            yield DamagedError(subject, "its bytes changed", remedy=_BLOB_REMEDY)

    def _bad_name(self, name: str, named: Collection[str]) -> Iterator[StoreError]:
        """Yield what is wrong with a name: it is not as written, or the log knows it and it is missing."""
        try:
            if self._named(name) is None and name in named:
                yield MissingError(f"name {name} of a blob", "it is missing", remedy=_NAME_REMEDY)
        except DamagedError as error:
            yield error

    def _named(self, name: str) -> str | None:
        """Return the digest of the blob that a name was given to, or None. Raises DamagedError."""
        return read_value(self.root, f"names/{name}", f"name {name} of a blob", _NAME_REMEDY)


def _is_own_file(path: Path) -> bool:
    """Return whether a path of a blob is a file of the store, and no link."""
    return path.is_file() and not (path.is_symlink() or path.parent.is_symlink())


_BLOB_REMEDY = "The next build that needs it downloads it again."
_NAME_REMEDY = "The next build that needs what it names fetches it again."
