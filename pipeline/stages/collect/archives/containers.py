"""Tar and zip archives as a sequence of members. Nothing is extracted; a broken container is an error, never an early end.

`tarfile` on its own takes a damaged header for the end of the archive, and ignores what follows the end. Both are
refused here.
"""

import io
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, ClassVar

from pipeline.stages.collect.archives.decompression import MIN_BYTES_FOR_RATIO, MeteredStream, decompressed
from pipeline.stages.collect.archives.pax_records import Replayed, require_records
from pipeline.stages.collect.contents import broken, is_of_disk, over_limit
from pipeline.stages.collect.params import CollectParams

MAX_HEADER_BYTES = 1024**2
"""Longest extended header (a long name, a pax record, the target of a link in a zip) that is read into memory."""

_ZIP_HEADER_BYTES = 30
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", 22
_ZIP_END_64, _ZIP_LOCATOR, _ZIP_LOCATOR_BYTES = b"PK\x06\x06", b"PK\x06\x07", 20
_ZIP_END_64_BYTES = 56
_ZIP_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_DESCRIPTORS, _DESCRIPTOR_MARK = {12: "<3I", 16: "<4I", 20: "<I2Q", 24: "<2I2Q"}, 0x08074B50
"""Records after a member by their bytes, with or without their mark, of sizes of four or of eight bytes."""
MAX_SIZE_32 = 2**32 - 1
"""A size in the header of a zip's member that is in an extra field."""
_DOS, _UNIX, _FOLDER_OF_DOS = 0, 3, 0x10
"""Systems that a zip's member is made by, whose attributes it has: DOS has no modes; and its attribute of a folder."""
_SIZES_64, _UNICODE_PATH = 0x0001, 0x7075
"""Extra fields that give a member other sizes, and another name."""


@dataclass(frozen=True, slots=True)
class Member:
    """An entry of an archive, unchanged. `name` may hold surrogates for bytes that are not UTF-8."""

    name: str
    kind: str
    """`file`, `folder`, `link` (a symbolic one), `hard link` or another type."""
    num_bytes: int
    target: str
    """Target of a link, unchanged."""
    read: Callable[[], bytes]
    """Read the bytes. Call it before the next member is requested, if at all."""


def members_of(archive: Path, limits: CollectParams, subject: str) -> Iterator[Member]:
    """Yield the members in stored order, then check that the archive ends there. Use it within `refusing_broken`."""
    with archive.open("rb") as file:
        start = file.read(512)
        file.seek(0)
        if start.startswith((b"PK\x03\x04", _ZIP_END)):  # one without members begins with its end
            yield from _zip_members(file, limits, subject)
        else:
            yield from _tar_members(decompressed(file, start, limits, subject), start, subject)


@contextmanager
def refusing_broken(subject: str) -> Iterator[None]:
    """Convert what the readers raise on invalid data into an ArchiveError about `subject`. A disk error stays an OSError."""
    try:
        yield
    except _INVALID_DATA as error:
        raise broken(subject, str(error) or type(error).__name__) from error
    except OSError as error:
        if is_of_disk(error):
            raise
        raise broken(subject, str(error)) from error


_INVALID_DATA = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,  # thousands of extended headers in a row
    NotImplementedError,  # a compression method unknown to zipfile
    struct.error,  # a record that ends early
)


class _BadHeader(tarfile.TarError):
    """An invalid tar header. Unlike the standard library's header errors it is never taken for the end of the archive."""


class _StrictTarInfo(tarfile.TarInfo):
    """A header of one archive, whose class is made for it: `extended` are the types of extended headers before the next member."""

    extended: ClassVar[set[bytes]]
    num_bytes: ClassVar[int]
    """The size in the last header of a member itself, whatever an extended header says."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> "_StrictTarInfo":
        try:
            member = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]  # the stub omits None
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the block of zeros at the end
            raise
        except tarfile.HeaderError as error:
            raise _BadHeader(str(error)) from error
        is_header = member.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, *_PAX_TYPES)
        if member.size < 0 or (is_header and member.size > MAX_HEADER_BYTES):
            raise _BadHeader(f"a header declares {member.size} bytes")
        field = bytes(buf[124:136])
        if not field[0] & 0x80 and not _OCTAL.fullmatch(field):
            raise _BadHeader(f"a header has the size {field!r}, which is not octal")
        if buf[257:263] != tarfile.POSIX_MAGIC[:6] and member.type not in tarfile.GNU_TYPES and any(buf[345:500]):
            raise _BadHeader("a header has the beginning of a name where its format has none")
        cls._follow(member)
        return member

    def _proc_pax(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        stream = archive.fileobj
        block = stream.read(self._block(self.size))  # type: ignore[attr-defined]
        require_records(block[: self.size])
        archive.fileobj = Replayed(block, archive)  # type: ignore[assignment]
        return super()._proc_pax(archive)  # type: ignore[misc,no-any-return]

    @classmethod
    def _follow(cls, member: tarfile.TarInfo) -> None:
        """Refuse a second extended header of a kind, and kinds beside each other: of two names each reader takes its own."""
        if member.type in _PAX_TYPES or member.type in _GNU_TYPES:
            is_second = member.type in cls.extended or (cls.extended and member.type not in _GNU_TYPES)
            if is_second or cls.extended & set(_PAX_TYPES):
                raise _BadHeader("a member has two extended headers")
            if member.type != tarfile.XGLTYPE:
                cls.extended.add(member.type)
        else:
            cls.extended.clear()
            cls.num_bytes = member.size


_GNU_TYPES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_OF_ONE_MEMBER = ("path", "linkpath", "size", "GNU.sparse.")
"""Names of pax records that some readers ignore in a header of all members."""
MAX_OCTAL = 8**11 - 1
"""Most bytes that the size in a header can be: larger ones are in an extended header alone."""
_OCTAL = re.compile(rb" *[0-7]+[ \0]*")
_PAX_TYPES = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


def _tar_members(stream: MeteredStream, start: bytes, subject: str) -> Iterator[Member]:
    class HeaderOfArchive(_StrictTarInfo):
        extended, num_bytes = set(), 0

    try:
        archive = tarfile.open(  # type: ignore[call-overload]  # only `read` is used of a stream  # noqa: SIM115
            fileobj=stream, mode="r|", tarinfo=HeaderOfArchive, encoding="utf-8", errors="surrogateescape"
        )
    except (_BadHeader, tarfile.ReadError) as error:
        raise broken(subject, f"{error}; it begins with {start[:16]!r}") from error
    with archive:
        for info in archive:
            if info.pax_headers.get("path", "").endswith("/") and not info.isdir():
                raise broken(subject, f"{info.name[:200]!r} is a {_tar_kind(info)} with the name of a folder")
            if info.size and not info.isreg():
                # Some readers skip these bytes, others read headers there.
                raise broken(subject, f"{info.name[:200]!r} is a {_tar_kind(info)} and declares {info.size} bytes")
            if "size" in info.pax_headers and info.size != HeaderOfArchive.num_bytes and info.size <= MAX_OCTAL:
                found = f"{info.name[:200]!r} has {info.size} bytes by one header and {HeaderOfArchive.num_bytes} by another"
                raise broken(subject, found)
            if any(name.startswith(_OF_ONE_MEMBER) for name in archive.pax_headers):
                raise broken(subject, "a global header sets a field that only one member can have")
            yield Member(info.name, _tar_kind(info), info.size, info.linkname, partial(_tar_bytes, archive, info))
        _require_zeros(archive, subject)


def _tar_kind(info: tarfile.TarInfo) -> str:
    if info.issparse():
        return "sparse file"
    kinds = ((info.isreg(), "file"), (info.isdir(), "folder"), (info.issym(), "link"), (info.islnk(), "hard link"))
    special = ((info.isfifo(), "FIFO"), (info.isdev(), "device"))
    return next((kind for holds, kind in kinds + special if holds), f"member of type {info.type!r}")


def _tar_bytes(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(info)
    return file.read() if file else b""


def _require_zeros(archive: tarfile.TarFile, subject: str) -> None:
    """Require zeros after the last member of a tar; reading to the end also makes gzip check its checksum."""
    stream = archive.fileobj
    while stream and (block := stream.read(io.DEFAULT_BUFFER_SIZE)):
        if block.strip(b"\0"):
            raise broken(subject, "data follows the end of the tar archive")


def _zip_members(file: BinaryIO, limits: CollectParams, subject: str) -> Iterator[Member]:
    with _BoundedZip(file, limits.max_members, subject) as archive:
        infos = archive.infolist()
        packed = file.seek(0, io.SEEK_END)
        declared = sum(info.file_size for info in infos)
        if declared > max(MIN_BYTES_FOR_RATIO, limits.max_compression_ratio * packed):
            found = f"{declared} bytes are declared in {packed} packed ones"
            raise over_limit(subject, found, f"{limits.max_compression_ratio} bytes for each packed byte")
        _require_one_end(file, archive, subject)
        for info in infos:
            _require_one_meaning(info, subject)
            _require_one_name(info.orig_filename, info.extra, info.orig_filename, subject)
            _require_same_header(file, info, subject)
            kind = _zip_kind(info)
            target = _zip_bytes(archive, info).decode("utf-8", "surrogateescape") if kind == "link" else ""
            # orig_filename: `filename` ends at a NUL, which must be seen to be refused
            yield Member(info.orig_filename, kind, info.file_size, target, partial(_zip_bytes, archive, info))
        _require_no_gap(file, archive, subject)


class _BoundedZip(zipfile.ZipFile):
    """A zip whose list of members is read only up to the limit: the base class reads all of it into memory at once."""

    def __init__(self, file: BinaryIO, max_members: int, subject: str) -> None:
        self._members = _BoundedList(max_members, subject)
        super().__init__(file)

    @property
    def filelist(self) -> list[zipfile.ZipInfo]:
        return self._members

    @filelist.setter
    def filelist(self, members: list[zipfile.ZipInfo]) -> None:
        self._members.extend(members)


class _BoundedList(list[zipfile.ZipInfo]):
    def __init__(self, max_members: int, subject: str) -> None:
        super().__init__()
        self._max_members = max_members
        self._subject = subject

    def append(self, info: zipfile.ZipInfo) -> None:
        if len(self) >= self._max_members:
            limit = f"{self._max_members} members"
            raise over_limit(self._subject, f"has more members than {self._max_members}", limit)
        super().append(info)


def _require_one_end(file: BinaryIO, archive: zipfile.ZipFile, subject: str) -> None:
    """Require one end record, at the end, that says of the directory what was read: no reader finds another."""
    num_bytes, comment = file.seek(0, io.SEEK_END), archive.comment
    at = num_bytes - _ZIP_END_BYTES - len(comment)
    record = _bytes_at(file, at, _ZIP_END_BYTES)
    if record[:4] != _ZIP_END or int.from_bytes(record[20:22], "little") != len(comment) or _ZIP_END in comment:
        raise broken(subject, "data follows the end of the zip archive")
    disk, first_disk, num_here, num_members, size, start = struct.unpack("<4H2I", record[4:20])
    locator_at = at - _ZIP_LOCATOR_BYTES
    locator = _bytes_at(file, locator_at, _ZIP_LOCATOR_BYTES)
    if locator[:4] == _ZIP_LOCATOR:
        locator_disk, at, num_disks = struct.unpack("<IQI", locator[4:])
        record = _bytes_at(file, at, _ZIP_END_64_BYTES) if at + _ZIP_END_64_BYTES <= locator_at else b""
        if record[:4] != _ZIP_END_64 or locator_disk or num_disks > 1:
            raise broken(subject, "its zip64 end record is not at the offset that its locator gives")
        num_declared, num_bytes = int.from_bytes(record[4:12], "little") + 12, locator_at - at
        if num_declared != num_bytes:
            raise broken(subject, f"its zip64 end record says to be {num_declared} bytes long, and is {num_bytes}")
        disk, first_disk, num_here, num_members, size, start = struct.unpack("<2I4Q", record[16:])
    if disk or first_disk:
        raise broken(subject, f"it is disk {disk} of a split archive")
    if not num_here == num_members == len(archive.filelist):
        raise broken(subject, f"it declares {num_here} of {num_members} members, and lists {len(archive.filelist)}")
    if start != archive.start_dir or start + size != at:
        raise broken(subject, f"its directory is said to be at byte {start}, and is at {archive.start_dir}")


def _require_no_gap(file: BinaryIO, archive: zipfile.ZipFile, subject: str) -> None:
    """Require contiguous members up to the central directory, as readers of streams find them."""
    members = sorted(archive.filelist, key=lambda each: each.header_offset)
    first = members[0].header_offset if members else archive.start_dir
    if first:
        raise broken(subject, f"{first} bytes of no member are before its first")
    for info, following in zip(
        members, [*(each.header_offset for each in members[1:]), archive.start_dir], strict=False
    ):
        name_bytes, extra_bytes = struct.unpack("<2H", _bytes_at(file, info.header_offset + 26, 4))
        end = info.header_offset + _ZIP_HEADER_BYTES + name_bytes + extra_bytes + info.compress_size
        has_descriptor = bool(info.flag_bits & 0x8)
        if following - end not in (_DESCRIPTORS if has_descriptor else (0,)):
            raise broken(subject, f"{following - end} bytes of no member follow {info.orig_filename[:200]!r}")
        if has_descriptor:
            form = _DESCRIPTORS[following - end]
            *mark, crc, packed, size = struct.unpack(form, _bytes_at(file, end, following - end))
            if mark not in ([], [_DESCRIPTOR_MARK]) or (crc, packed, size) != (
                info.CRC,
                info.compress_size,
                info.file_size,
            ):
                raise broken(
                    subject, f"{info.orig_filename[:200]!r} is followed by another record than the directory has"
                )


def _bytes_at(file: BinaryIO | IO[bytes], at: int, num_bytes: int) -> bytes:
    """Return the bytes at a place that the archive names; none where it is outside of the file."""
    if at < 0:
        return bytes(num_bytes)
    file.seek(at)
    return file.read(num_bytes).ljust(num_bytes, b"\0")


def _require_one_meaning(info: zipfile.ZipInfo, subject: str) -> None:
    """Require that every reader finds the same member: a name, a known method, and this disk."""
    name = info.orig_filename[:200]
    if not name:
        raise broken(subject, "a member has no name")
    if info.compress_type not in _ZIP_METHODS:
        raise broken(subject, f"{name!r} has the compression method {info.compress_type}")
    if info.volume:
        raise broken(subject, f"{name!r} is on disk {info.volume} of a split archive")


def _require_one_name(name: str, extra: bytes, listed: str, subject: str) -> None:
    """Require the listed name in a header, and in the extra fields of it that give a member another one; and sizes once."""
    names, num_sizes = [name], 0
    while len(extra) >= 4:
        kind, num_bytes = struct.unpack("<HH", extra[:4])
        names += [extra[9 : 4 + num_bytes].decode("utf-8", "replace")] if kind == _UNICODE_PATH else []
        num_sizes += kind == _SIZES_64
        extra = extra[4 + num_bytes :]
    if any(each != listed for each in names):
        raise broken(subject, f"{listed[:200]!r} has a second name")
    if num_sizes > 1:
        raise broken(subject, f"{listed[:200]!r} has sizes in {num_sizes} extra fields")


def _zip_kind(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 0x1:
        return "encrypted file"
    if info.is_dir():
        return "folder with content" if info.file_size else "folder"
    if info.create_system == _DOS and info.external_attr & _FOLDER_OF_DOS:
        return "file with the mark of a folder"
    type_bits = 0 if info.create_system == _DOS else stat.S_IFMT(info.external_attr >> 16)
    if type_bits == stat.S_IFLNK and info.create_system != _UNIX:
        return f"link by a system with the number {info.create_system}"
    if type_bits == stat.S_IFLNK and info.file_size > MAX_HEADER_BYTES:
        return "link with an overlong target"
    return {0: "file", stat.S_IFREG: "file", stat.S_IFLNK: "link"}.get(type_bits, "special file")


def _require_same_header(file: BinaryIO, info: zipfile.ZipInfo, subject: str) -> None:
    """Require that the header before a member says of it what the directory says: some readers take one, some the other."""
    header = _bytes_at(file, info.header_offset, _ZIP_HEADER_BYTES)
    flags, method, _, _, crc, packed, size, *lengths = struct.unpack("<4H3I2H", header[6:])
    name, extra = (file.read(num_bytes) for num_bytes in lengths)
    _require_one_name(name.decode("utf-8" if flags & 0x800 else "cp437"), extra, info.orig_filename, subject)
    declared = (info.CRC, info.compress_size, info.file_size)
    is_later = info.flag_bits & 0x8
    same = all(
        one == other or (one == MAX_SIZE_32 and place) or (is_later and not one)
        for place, (one, other) in enumerate(zip((crc, packed, size), declared, strict=True))
    )
    if (flags, method) != (info.flag_bits, info.compress_type) or not same:
        raise broken(subject, f"{info.orig_filename[:200]!r} has another header than the directory says")
    if method == zipfile.ZIP_STORED and info.compress_size != info.file_size and not flags & 0x1:
        raise broken(
            subject, f"{info.orig_filename[:200]!r} is stored in {info.compress_size} bytes of {info.file_size}"
        )


def _zip_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Decompress no more than declared and one byte, which makes an empty member's checksum be checked too."""
    with archive.open(info) as file:
        is_deflated = info.compress_type == zipfile.ZIP_DEFLATED
        content = _inflated(archive, info) if is_deflated else file.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise zipfile.BadZipFile(f"{len(content)} bytes of {info.file_size} that {info.filename!r} declares")
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {info.filename!r}")
    return content


def _inflated(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member, up to one more than declared: `zipfile` stops at the declared ones."""
    file = archive.fp
    assert file is not None
    header = _bytes_at(file, info.header_offset, _ZIP_HEADER_BYTES)
    file.seek(info.header_offset + _ZIP_HEADER_BYTES + sum(struct.unpack("<2H", header[26:])))
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    content = decompressor.decompress(file.read(info.compress_size), info.file_size + 1)
    if len(content) == info.file_size and (not decompressor.eof or decompressor.unused_data):
        raise zipfile.BadZipFile(f"{info.filename!r} ends elsewhere than at its {info.compress_size} compressed bytes")
    return content
