"""Listings of sources: the names that bytes hold, by readers of their own, to compare with what collect read.

They share no code with the readers of files: tar headers and zip directories are walked here by their specifications (POSIX pax,
GNU tar, PKWARE's APPNOTE), a commit is listed by `git ls-tree`, lines are parsed one by one. Hostile bytes are refused before: they
are listed once they were read.
"""

import bz2
import gzip
import json
import lzma
import os
import re
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

from pipeline.core.errors import ArchiveError
from pipeline.stages.collect.repositories.command import create_repository, run_git

_BLOCK = 512
_READ_BYTES = 1024**2
_DECOMPRESSORS = {b"\x1f\x8b": gzip.open, b"\xfd7": lzma.open, b"BZ": bz2.open}
_PAX_RECORD = re.compile(rb"(\d+) ([^=]+)=")
_END, _END_64, _ENTRY = b"PK\x05\x06", b"PK\x06\x06", b"PK\x01\x02"


class ListedName(NamedTuple):
    """A name in a source, as bytes. `other_path` is what a drop of it may be called; an optional one need not be collected."""

    name: bytes
    other_path: str | None = None
    is_optional: bool = False


def list_archive(path: Path) -> Iterator[ListedName]:
    """Yield the files and links of a tar or zip archive, below its top folder if it has one."""
    with path.open("rb") as file:
        start = file.read(4)
        names = list(_zip_names(file) if start == b"PK\x03\x04" else _tar_names(path, start))
    tops = {name.split(b"/")[0] if b"/" in name else b"" for name in names}
    num_top_bytes = len(tops.pop()) + 1 if len(tops) == 1 and tops != {b""} else 0
    yield from (ListedName(name[num_top_bytes:]) for name in names)


def list_commit(pack: Path, commit: str) -> Iterator[ListedName]:
    """Yield the files, links and submodules of a commit whose objects are in a pack."""
    with TemporaryDirectory() as folder:
        repository = Path(folder, "listed.git")
        create_repository(repository, commit)
        place = repository / "objects" / "pack" / "pack-listed.pack"
        place.symlink_to(pack.absolute())
        run_git(repository, ["index-pack", "--threads=1", str(place)])
        names = run_git(repository, ["ls-tree", "-r", "-z", "--full-tree", "--name-only", commit])
    yield from (ListedName(name) for name in names.split(b"\0") if name)


def list_folder(root: Path) -> Iterator[ListedName]:
    """Yield everything below a folder that is not a folder, without what is named `.git`."""
    folders = [os.fsencode(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name == b".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield ListedName(os.path.relpath(entry.path, os.fsencode(root)))


def list_lines(path: Path, path_field: str, license_field: str | None) -> Iterator[ListedName]:
    """Yield a name for each line of JSON that is not blank: its path, or the number that a drop of the line is called by."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            other = f"line {number}"
            try:
                record = json.loads(line)
                name = record[path_field].encode()
                yield ListedName(name, other)
                if license_field and record.get(license_field):
                    yield ListedName(name + b".license", is_optional=True)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                yield ListedName(other.encode())


def _tar_names(path: Path, start: bytes) -> Iterator[bytes]:
    with closing(_DECOMPRESSORS.get(start[:2], open)(path, "rb")) as stream:  # type: ignore[operator]
        extended: dict[bytes, bytes] = {}
        common: dict[bytes, bytes] = {}
        while (header := stream.read(_BLOCK)).strip(b"\0"):
            kind = header[156:157]
            num_bytes = int(extended.get(b"size", b"0")) or _tar_number(header[124:136])
            if kind in b"xXgLK":
                content = stream.read(-num_bytes % _BLOCK + num_bytes)[:num_bytes]
                if kind in b"xX":
                    extended |= _pax_records(content)
                elif kind == b"g":
                    common |= _pax_records(content)
                elif kind == b"L":
                    extended[b"path"] = content.partition(b"\0")[0]
                continue
            name = (common | extended).get(b"path") or _tar_name(header)
            extended = {}
            if kind != b"5" and not (kind in b"0\0" and name.endswith(b"/")):
                yield b"/".join(part for part in name.split(b"/") if part not in (b"", b"."))
            if kind not in b"123456":
                _skip(stream, -num_bytes % _BLOCK + num_bytes)


def _tar_name(header: bytes) -> bytes:
    name, prefix = header[:100].partition(b"\0")[0], header[345:500].partition(b"\0")[0]
    return prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name


def _tar_number(field: bytes) -> int:
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")  # GNU tar: sizes from 8 GiB on
    return int(field.strip(b" \0") or b"0", 8)


def _pax_records(content: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = 0
    while match := _PAX_RECORD.match(content, at):
        found[match[2]] = content[match.end() : at + int(match[1]) - 1]
        at += int(match[1])
    return found


def _skip(stream: BinaryIO, num_bytes: int) -> None:
    while num_bytes > 0 and (block := stream.read(min(num_bytes, _READ_BYTES))):
        num_bytes -= len(block)


def _zip_names(file: BinaryIO) -> Iterator[bytes]:
    num_bytes = file.seek(0, os.SEEK_END)
    file.seek(max(0, num_bytes - 65_600))
    tail = file.read()
    end = tail.rfind(_END)
    size, end_64 = struct.unpack("<I", tail[end + 12 : end + 16])[0], tail.rfind(_END_64, 0, end)
    if end_64 >= 0:
        size, end = struct.unpack("<Q", tail[end_64 + 40 : end_64 + 48])[0], end_64
    file.seek(num_bytes - len(tail) + end - size)
    entries, at = file.read(size), 0
    while entries[at : at + 4] == _ENTRY:
        flags, *lengths = struct.unpack("<8xH18x3H", entries[at : at + 34])
        name = entries[at + 46 : at + 46 + lengths[0]]
        at += 46 + sum(lengths)
        if not name.endswith(b"/"):
            text = name.decode("utf-8" if flags & 0x800 else "cp437")
            yield b"/".join(part for part in text.encode().split(b"/") if part not in (b"", b"."))
    if at != size:
        raise ArchiveError(
            "listing of a zip archive", f"its directory ends at byte {at}", f"{size}", "Report it as a defect."
        )
