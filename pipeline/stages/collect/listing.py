"""Listings of sources: the names that bytes hold and the ids of their contents, by readers of their own.

They share no code with the readers of files: tar headers are walked here by their specifications (POSIX pax, GNU tar), a zip
by the headers of its members and not by its directory (PKWARE's APPNOTE), a commit by `git ls-tree`, lines one by one.
Sources are listed once they were read, so that their sizes are within the limits.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

from pipeline.core.errors import ArchiveError
from pipeline.stages.collect.repositories.command import create_repository, run_git
from pipeline.stages.collect.repositories.listed_history import (
    CommitChange,
    CommitFile,
    list_changes,
    list_license_files,
)

_BLOCK = 512
_READ_BYTES = 1024**2
_COMPRESSED: tuple[tuple[re.Pattern[bytes], Any], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), gzip.open),
    (re.compile(rb"\xfd7zXZ\0"), lzma.open),
    (re.compile(rb"BZh[1-9](?:\x31\x41\x59\x26\x53\x59|\x17\x72\x45\x38\x50\x90)"), bz2.open),
)
"""Beginnings of compressed files (RFC 1952, the formats of xz and bzip2), and their readers. A name can begin with less."""
_PAX_RECORD = re.compile(rb"([1-9][0-9]*) ([^=]+)=")
_MEMBER, _ENTRY, _END, _DESCRIPTOR = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x07\x08"
_NUM_ENTRY_BYTES = 46
_DOS = 0
_STORED, _ZIP64 = 0, 0x0001
_NUM_SHA1_DIGITS = 40


class ListedName(NamedTuple):
    """A name in a source, as bytes, and what is known of it."""

    name: bytes
    other_path: str | None = None
    """Another path by which a drop may name it."""
    member: bytes | None = None
    """Name of the member or line that holds it, as the bytes have it. None: the name itself."""
    is_optional: bool = False
    """It need not be collected."""
    git_blob_id: str | None = None
    """Id of the content, as git computes it; None for what is no regular file."""
    num_bytes: int | None = None
    """Bytes of the content; None for what is no regular file."""
    of_commit: CommitChange | CommitFile | None = None
    """Facts of a commit about a file of this name, which is then no name that is collected."""


class _Content(NamedTuple):
    git_blob_id: str | None
    num_bytes: int | None


class _ArchiveMember(NamedTuple):
    given_name: bytes
    content: _Content | None
    """None for a folder."""

    @property
    def name(self) -> bytes:
        return _without_empty_parts(self.given_name)


_NO_CONTENT = _Content(None, None)
_NO_DOCUMENT = frozenset({"not_modified", "binary_change", "small_change", "large_change"})
"""Reasons that leave no doubt: the change is no link of a chain."""


def list_archive(path: Path, max_num_bytes: int) -> Iterator[ListedName]:
    """Yield the files and links of a tar or zip archive, below its top folder if it has one.

    Raises ArchiveError for an archive of more bytes than that, and for one that readers could understand in more ways than one.
    """
    with path.open("rb") as file:
        start = file.read(_BLOCK)
        file.seek(0)
        is_zip = start.startswith(_MEMBER)
        members = list(_zip_members(file, max_num_bytes) if is_zip else _tar_members(path, start))
    found = [(each.name, each) for each in members if each.content is not None]
    folders = {each.name for each in members if each.content is None}
    if both := sorted(folders.intersection(name for name, _ in found)):
        raise ArchiveError("archive", f"{both[0][:200]!r} is a file and a folder", "one of both")
    tops = {name.split(b"/")[0] if b"/" in name else b"" for name, _ in found}
    num_top_bytes = len(tops.pop()) + 1 if len(tops) == 1 and tops != {b""} else 0
    for name, member in found:
        yield _listed(name[num_top_bytes:], member.content or _NO_CONTENT)._replace(member=member.given_name)


def list_commit(
    pack: Path, commit: str, suffixes: Collection[str] = (), with_documents: bool = True
) -> Iterator[ListedName]:
    """Yield the files, links and submodules of a commit whose objects are in a pack.

    Then, with suffixes, what each commit without a second parent did to each of those that is a regular file with one of them, and
    the files about licenses that differ at commits that may have documents. With documents of changes these are named first, as
    `COMMIT:NAME`. A listing has no contents of these.
    """
    with TemporaryDirectory() as folder:
        repository = Path(folder, "listed.git")
        create_repository(repository, commit)
        place = repository / "objects" / "pack" / "pack-listed.pack"
        place.symlink_to(pack.absolute())
        run_git(repository, ["index-pack", "--threads=1", str(place)])
        names = list(_names_in_tree(repository, commit))
        files = {each.name for each in names if each.num_bytes is not None and _has_suffix(each.name, suffixes)}
        if suffixes and with_documents:
            names += _changes_of(files, repository, commit)
        if suffixes:
            names += _history_of(files, repository, commit, suffixes)
    yield from names


def _history_of(
    files: Collection[bytes], repository: Path, commit: str, suffixes: Collection[str]
) -> Iterator[ListedName]:
    listed = list_changes(repository, commit, [os.fsencode(suffix) for suffix in suffixes])
    found: list[CommitChange | CommitFile] = [each for each in listed if each.name in files]
    commits = {each.commit for each in found if isinstance(each, CommitChange) and _may_be_document(each)}
    found += list_license_files(repository, commit, commits)
    yield from (ListedName(each.name, of_commit=each) for each in found)


def _may_be_document(change: CommitChange) -> bool:
    return _NO_DOCUMENT.isdisjoint(change.reasons)


def _names_in_tree(repository: Path, commit: str) -> Iterator[ListedName]:
    lines = run_git(repository, ["ls-tree", "-r", "-l", "-z", "--full-tree", commit]).split(b"\0")
    for facts, _, name in (line.partition(b"\t") for line in lines if line):
        mode, _, object_id, num_bytes = facts.split()
        is_file = mode.startswith(b"100")
        has_id = is_file and len(object_id) == _NUM_SHA1_DIGITS
        yield _listed(name, _Content(object_id.decode() if has_id else None, int(num_bytes) if is_file else None))


def _changes_of(files: Collection[bytes], repository: Path, commit: str) -> Iterator[ListedName]:
    log = ["log", "--no-merges", "--root", "--raw", "--no-renames", "--no-show-signature", "-z", "--format=%x01%H"]
    at, is_name = b"", False
    for field in run_git(repository, [*log, commit]).split(b"\0"):
        if is_name:
            is_name = False
            if field in files:
                yield ListedName(at + b":" + field)
            continue
        start = field.lstrip(b"\n")
        at = start[1:] if start.startswith(b"\x01") else at
        is_name = start.startswith(b":")


def _has_suffix(name: bytes, suffixes: Collection[str]) -> bool:
    """Return whether a name ends in one of the suffixes, as written or in lower case."""
    last = os.fsdecode(name.rpartition(b"/")[2])
    suffix = os.path.splitext(last)[1]
    return suffix in suffixes or suffix.lower() in suffixes


def list_folder(root: Path, accepts: Callable[[bytes], bool] = lambda name: True) -> Iterator[ListedName]:
    """Yield everything below a folder that is accepted by its name and is not a folder, without what is named `.git`."""
    folders = [os.fsencode(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name == b".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif accepts(name := os.path.relpath(entry.path, os.fsencode(root))):
                    is_file = entry.is_file(follow_symlinks=False)
                    yield _listed(name, _content_of(Path(os.fsdecode(entry.path))) if is_file else _NO_CONTENT)


def list_lines(path: Path, path_field: str, text_field: str, license_field: str | None) -> Iterator[ListedName]:
    """Yield a name for each line of JSON that is not blank: its path, or the number that a drop of the line is called by."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            other = f"line {number}"
            try:
                record = json.loads(line)
                name = _without_empty_parts(record[path_field].encode())
                text = record.get(text_field)
                content = text.encode() if isinstance(text, str) else None
                listed = _listed(name, _NO_CONTENT if content is None else _content(len(content), [content]))
                yield listed._replace(other_path=other, member=other.encode())
                if license_field and record.get(license_field):
                    yield ListedName(name + b".license", is_optional=True, member=other.encode())
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                yield ListedName(other.encode())


def _listed(name: bytes, content: _Content) -> ListedName:
    return ListedName(name, git_blob_id=content.git_blob_id, num_bytes=content.num_bytes)


def _without_empty_parts(name: bytes) -> bytes:
    return b"/".join(part for part in name.split(b"/") if part not in (b"", b"."))


def _content_of(path: Path) -> _Content:
    with path.open("rb") as file:
        num_bytes = os.fstat(file.fileno()).st_size
        return _content(num_bytes, _blocks(file, num_bytes))


def _content(num_bytes: int, blocks: Iterable[bytes]) -> _Content:
    """Return the id of a content as git computes it, while it is read, and its size."""
    found = hashlib.sha1(b"blob %d\0" % num_bytes, usedforsecurity=False)
    for block in blocks:
        found.update(block)
    return _Content(found.hexdigest(), num_bytes)


def _blocks(stream: BinaryIO, num_bytes: int) -> Iterator[bytes]:
    """Yield the next bytes of a stream. Raises EOFError if it ends before."""
    while num_bytes > 0:
        block = stream.read(min(num_bytes, _READ_BYTES))
        if not block:
            raise EOFError("the archive ends within a member")
        num_bytes -= len(block)
        yield block


def _tar_members(path: Path, start: bytes) -> Iterator[_ArchiveMember]:
    """Yield the members of a tar."""
    opened = next((opener for beginning, opener in _COMPRESSED if beginning.match(start)), open)
    with closing(opened(path, "rb")) as stream:
        extended: dict[bytes, bytes] = {}
        common: dict[bytes, bytes] = {}
        while (header := stream.read(_BLOCK)).strip(b"\0"):
            kind = header[156:157]
            declared = (common | extended).get(b"size")
            num_bytes = _tar_number(header[124:136]) if declared is None else _pax_number(declared)
            if kind in b"xXgLK":
                more = stream.read(-num_bytes % _BLOCK + num_bytes)[:num_bytes]
                if kind in b"xX":
                    extended |= _pax_records(more)
                elif kind == b"g":
                    common |= _pax_records(more)
                elif kind == b"L":
                    extended[b"path"] = more.partition(b"\0")[0]
                continue
            name = (common | extended).get(b"path") or _tar_name(header)
            extended = {}
            is_file = kind in b"0\x007" and not name.endswith(b"/")
            content_blocks = _blocks(stream, num_bytes) if kind not in b"123456" else iter(())
            content = _content(num_bytes, content_blocks) if is_file else _NO_CONTENT
            is_folder = kind == b"5" or (kind in b"0\0" and name.endswith(b"/"))
            yield _ArchiveMember(name, None if is_folder else content)
            _consume(content_blocks)
            _consume(_blocks(stream, -num_bytes % _BLOCK) if kind not in b"123456" else ())


def _consume(blocks: Iterable[bytes]) -> None:
    for _ in blocks:
        pass


def _tar_name(header: bytes) -> bytes:
    name, prefix = header[:100].partition(b"\0")[0], header[345:500].partition(b"\0")[0]
    return prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name


def _tar_number(field: bytes) -> int:
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")  # GNU tar: sizes from 8 GiB on
    return int(field.strip(b" \0") or b"0", 8)


def _pax_number(value: bytes) -> int:
    if not value.isdigit():
        raise ArchiveError("tar archive", f"a pax header has the size {value[:40]!r}", "decimal digits")
    return int(value[:20])


def _pax_records(content: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = 0
    while match := _PAX_RECORD.match(content, at):
        end = at + int(match[1][:10])
        if not match.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise ArchiveError(
                "tar archive", f"a pax record says that it has {match[1][:40].decode()} bytes", "its own"
            )
        found[match[2]] = content[match.end() : end - 1]
        at = end
    if content[at:].strip(b"\0"):
        raise ArchiveError(
            "tar archive", f"a pax header has {content[at : at + 40]!r}", "records of length, name and value"
        )
    return found


def _zip_members(file: BinaryIO, max_num_bytes: int) -> Iterator[_ArchiveMember]:
    """Yield the members of a zip as a reader of streams finds them: one after the other, up to the directory.

    Only the directory says which of them are links and the like; these have no id of a content.
    """
    found = []
    while (header := file.read(30))[:4] == _MEMBER:
        flags, method, crc, packed, num_bytes, *lengths = struct.unpack("<2x2H4x3I2H", header[4:])
        name, extra = file.read(lengths[0]), file.read(lengths[1])
        if num_bytes == 0xFFFFFFFF or packed == 0xFFFFFFFF:
            num_bytes, packed = _zip64_sizes(extra)
        content = _zip_content(file, method, packed, max_num_bytes)
        if flags & 0x8:
            _pass_descriptor(file, content)
        elif len(content.data) != num_bytes:
            raise ArchiveError(
                "zip archive", f"{name[:200]!r} has {len(content.data)} bytes", f"{num_bytes}, as declared"
            )
        elif zlib.crc32(content.data) != crc:
            raise ArchiveError("zip archive", f"{name[:200]!r} has another checksum", f"{crc:08x}, as declared")
        max_num_bytes -= len(content.data)
        text = name.decode("utf-8" if flags & 0x800 else "cp437")
        known = None if text.endswith("/") else _content(len(content.data), [content.data])
        found.append((name, _ArchiveMember(text.encode(), known)))
    if header[:4] not in (_ENTRY, _END):
        raise ArchiveError("zip archive", f"{header[:4]!r} follows a member", "a member, or the directory")
    irregular = set(_irregular_members(header, file))
    for name, member in found:
        yield member._replace(content=_NO_CONTENT) if member.content and name in irregular else member


def _irregular_members(start: bytes, file: BinaryIO) -> Iterator[bytes]:
    """Yield the names of the directory's entries whose mode is neither absent nor a regular file's. `start` was read of it.

    What was made by DOS has no mode.
    """
    header = start + file.read(_NUM_ENTRY_BYTES - len(start))
    while header[:4] == _ENTRY:
        *lengths, attributes = struct.unpack("<28x3H4xI4x", header)
        name = file.read(lengths[0])
        file.seek(lengths[1] + lengths[2], os.SEEK_CUR)
        if header[5] != _DOS and stat.S_IFMT(attributes >> 16) not in (0, stat.S_IFREG):
            yield name
        header = file.read(_NUM_ENTRY_BYTES)


def _zip64_sizes(extra: bytes) -> tuple[int, int]:
    """Return the size of a member, and its packed size, from its extra field."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == _ZIP64:
            num_bytes, packed = struct.unpack("<2Q", extra[4:20])
            return num_bytes, packed
        extra = extra[4 + length :]
    raise ArchiveError("zip archive", "a member has no sizes", "an extra field of zip64")


class _ZipContent(NamedTuple):
    data: bytes
    num_packed: int


def _zip_content(file: BinaryIO, method: int, packed: int, max_num_bytes: int) -> _ZipContent:
    """Decompress the member that begins at the offset of the file, and leave the file after it."""
    if method == _STORED:
        return _ZipContent(file.read(packed), packed)
    start, inflate, blocks = file.tell(), zlib.decompressobj(-zlib.MAX_WBITS), list[bytes]()
    while not inflate.eof and max_num_bytes >= 0 and (block := file.read(_READ_BYTES)):
        blocks.append(inflate.decompress(block, max_num_bytes + 1))
        max_num_bytes -= len(blocks[-1])
    if not inflate.eof:
        found = "its members hold more bytes than its directory says" if max_num_bytes < 0 else "a member does not end"
        raise ArchiveError("zip archive", found, "the members of its directory, one directly after the other")
    file.seek(-len(inflate.unused_data), os.SEEK_CUR)
    return _ZipContent(b"".join(blocks), file.tell() - start)


def _pass_descriptor(file: BinaryIO, content: _ZipContent) -> None:
    """Read past the data descriptor of a member. Raises ArchiveError if its checksum and sizes are not those of the content."""
    start, crc, sizes = file.tell(), zlib.crc32(content.data), (content.num_packed, len(content.data))
    following = file.read(24)
    for mark in (_DESCRIPTOR, b""):
        for layout in ("<I2Q", "<3I") if max(sizes) < 2**32 else ("<I2Q",):
            descriptor = mark + struct.pack(layout, crc, *sizes)
            if following.startswith(descriptor):
                file.seek(start + len(descriptor))
                return
    raise ArchiveError("zip archive", "a member is not followed by its checksum and sizes", "those of its content")
