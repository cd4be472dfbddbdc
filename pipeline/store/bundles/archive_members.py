"""Members of an archive of objects: an uncompressed tar in which all but names, sizes and bytes is fixed.

A reader is told which member comes next, and compares every byte around its content with what a writer writes there. So a link,
a path with `..`, a changed mode, a flipped bit and one byte more are refused without a rule for each, and nothing in the archive
decides where anything is written.
"""

import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from pipeline.core.durable import sync
from pipeline.core.errors import DamagedError, MissingError, StoreError

_CHUNK_SIZE = 1 << 20
_USTAR_SIZES = 8 << 30
"""Size from which on a header needs the numbers of GNU tar."""
_MAX_FIRST = 64 << 20
"""Bytes of a first member that a reader holds in memory."""
_END = 2 * tarfile.BLOCKSIZE


class _Writable(Protocol):
    def write(self, content: bytes, /) -> object: ...


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class ArchiveWriter:
    """A writer of members, one after another."""

    def __init__(self, file: _Writable) -> None:
        self._file = file
        self._num_bytes = 0

    def add(self, name: str, num_bytes: int, chunks: Iterable[bytes]) -> None:
        """Write a member. Raises DamagedError unless the chunks have as many bytes together."""
        self._write(_header(name, num_bytes))
        before = self._num_bytes
        for chunk in chunks:
            self._write(chunk)
        if (found := self._num_bytes - before) != num_bytes:
            raise DamagedError(
                f"file {name}", f"it has {found} bytes", f"{num_bytes}", "`python -m pipeline fsck` lists all damage."
            )
        self._write(bytes(-num_bytes % tarfile.BLOCKSIZE))

    def finish(self) -> None:
        """Write the end of the archive."""
        self._write(bytes(_end_size(self._num_bytes)))

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self._num_bytes += len(content)


@contextmanager
def written_archive(target: Path) -> Iterator[ArchiveWriter]:
    """Yield the writer of an archive that is at its place, whole, once the block ends, and nowhere if it raises.

    One that is there is replaced. Raises MissingError where its folder is missing, StoreError for what is no regular file there.
    """
    if target.is_symlink() or (target.exists() and not target.is_file()):
        kind = "a link" if target.is_symlink() else "a folder" if target.is_dir() else "a pipe or a device"
        raise StoreError(f"file {target}", f"it is {kind}, which would be replaced", "a file", "Name another place.")
    if not target.parent.is_dir():
        remedy = "Make it first, or name a file in another one."
        raise MissingError(f"file {target.name}", f"there is no folder {target.parent}", "one to write it into", remedy)
    temporary = target.with_name(f".{target.name}.part")
    try:
        with temporary.open("wb") as file:
            writer = ArchiveWriter(file)
            yield writer
            writer.finish()
        sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync(target.parent)


@contextmanager
def opened_archive(source: Path, subject: str) -> Iterator[BinaryIO]:
    """Yield an archive to read. Raises StoreError for a pipe or a device, which may never end."""
    if source.exists() and not (source.is_file() or source.is_dir()):
        raise StoreError(subject, "it is no regular file", "a file", "Write it to a file first, and name that.")
    with source.open("rb") as file:
        yield file


class ArchiveReader:
    """A reader of the members that a writer has written, in their order. Every other byte raises DamagedError about `subject`."""

    def __init__(self, file: _Readable, subject: str, remedy: str) -> None:
        self._file = file
        self._subject = subject
        self._remedy = remedy
        self._num_bytes = 0

    def first(self) -> tuple[str, bytes]:
        """Read the first member, whose name and size its header says: the caller judges both."""
        header = self._read(tarfile.BLOCKSIZE, "its first header")
        try:
            found = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
            expected = _header(found.name, found.size)
        except (tarfile.HeaderError, ValueError) as error:
            raise self._damaged(f"it does not begin as an archive ({error})", "an exported one") from error
        if not 0 <= found.size <= _MAX_FIRST:
            raise self._damaged(f"its first member has {found.size} bytes", f"at most {_MAX_FIRST}")
        self._compare(header, expected, found.name)
        return found.name, b"".join(self._content(found.name, found.size))

    def member(self, name: str, num_bytes: int) -> Iterator[bytes]:
        """Iterate over the content of the next member, which must be this one."""
        expected = _header(name, num_bytes)
        self._compare(self._read(len(expected), f"the header of {name}"), expected, name)
        yield from self._content(name, num_bytes)

    def finish(self) -> None:
        """Read the end of the archive."""
        size = _end_size(self._num_bytes)
        if any(self._read(size, "its end")) or self._file.read(1):
            raise self._damaged("something follows its last member", "the end of the archive")

    def _content(self, name: str, num_bytes: int) -> Iterator[bytes]:
        for start in range(0, num_bytes, _CHUNK_SIZE):
            yield self._read(min(_CHUNK_SIZE, num_bytes - start), name)
        if any(self._read(-num_bytes % tarfile.BLOCKSIZE, name)):
            raise self._damaged(f"bytes follow {name}", "zeros up to the next member")

    def _read(self, size: int, what: str) -> bytes:
        found = self._file.read(size) if size else b""
        self._num_bytes += size
        if len(found) < size:
            raise self._damaged(f"it is cut off in {what}", f"{size - len(found)} bytes more at least")
        return found

    def _compare(self, found: bytes, expected: bytes, name: str) -> None:
        if found != expected:
            named = found[:100].rstrip(b"\0").decode("utf-8", "backslashreplace")
            is_named = f"the header of {named[:120]!r} is not as an export writes it"
            found_name = is_named if named == name else f"it has the member {named[:120]!r}"
            raise self._damaged(found_name, f"{name}, as an export writes it")

    def _damaged(self, found: str, expected: str) -> DamagedError:
        return DamagedError(self._subject, found, expected, self._remedy)


def file_chunks(file: _Readable) -> Iterator[bytes]:
    """Iterate over the bytes of a file."""
    while chunk := file.read(_CHUNK_SIZE):
        yield chunk


def compared(chunks: Iterable[bytes], sha256: str, subject: str, remedy: str) -> Iterator[bytes]:
    """Iterate over the chunks of a file. Raises DamagedError after the last unless they have that digest."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
        yield chunk
    if (found := hasher.hexdigest()) != sha256:
        raise DamagedError(subject, f"sha256 {found[:12]}", f"{sha256[:12]}, as written", remedy)


def _header(name: str, num_bytes: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = num_bytes, 0o644, 0
    return member.tobuf(tarfile.USTAR_FORMAT if num_bytes < _USTAR_SIZES else tarfile.GNU_FORMAT)


def _end_size(num_bytes: int) -> int:
    """Return the number of zeros after so many bytes: two blocks, and what fills the last record, as tar has it."""
    return _END + -(num_bytes + _END) % tarfile.RECORDSIZE
