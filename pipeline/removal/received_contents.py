"""ReceivedContent: a piece of what a store received: a file of an archive or a pack, a commit, a string of a line.

Read without a pin, and whole: what a pin leaves out, and what an earlier or later commit has, is here too. What can be read of an
archive or a pack within another, of a compressed file, and of lines of JSON are pieces too, beside itself, as deep as DEEPEST. What
looks like one and cannot be read to its end is said, by a piece that is `unread`: nothing is passed over in silence.
"""

import codecs
import hashlib
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.core.errors import ArchiveError, SourceError
from pipeline.stages.collect.archives.containers import members_of, refusing_broken
from pipeline.stages.collect.archives.decompression import BLOCKS_OF_BZIP2, decompressed
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.collect.repositories.command import run_git, stream_git
from pipeline.stages.collect.repositories.pack_objects import PackObjects, open_pack

_LIMITS = CollectParams(
    max_members=10_000_000, max_total_bytes=1024**4, max_compression_ratio=10_000, max_file_bytes=1024**3
)
"""A recipe may have raised its own: what a build has read is read again."""
_INNER_LIMITS = CollectParams(max_compression_ratio=10_000, max_file_bytes=1024**3)
"""Limits of an archive within another: nobody has built from it, so that it may be a bomb."""
DEEPEST = 4
_BEGINNING_BYTES = 512
_ZIP, _ZIP_END, _MAX_ZIP_END = (b"PK\x03\x04", b"PK\x05\x06"), b"PK\x05\x06", 65_557
_COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ\0")
"""Beginnings of gzip and xz."""
_PACK = (b"PACK\0\0\0\x02", b"PACK\0\0\0\x03")
_BUNDLE = (b"# v2 git bundle\n", b"# v3 git bundle\n")
"""Beginnings of a pack with the names of its commits, which an empty line ends."""
_UNOPENED = {
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "RAR",
    b"]\0\0\x80\0": "LZMA",
    b"\x04\x22\x4d\x18": "LZ4",
    b"LZIP": "lzip",
    b"\x1f\x9d": "compress",
    b"MSCF\0\0\0\0": "a cabinet",
    b"!<arch>\n": "ar",
    b"070701": "cpio",
    b"070707": "cpio",
    b"\xed\xab\xee\xdb": "RPM",
    b"PAR1": "Parquet",
}
"""Beginnings of archives and compressed files that nothing here opens, and what they are."""
_LOOSE_OBJECT = re.compile(r"(?:.*/)?objects/[0-9a-f]{2}/[0-9a-f]{38,62}")
"""Name of an object in a folder of git, which is compressed alone."""
_LINE_OF_JSON = re.compile(rb'^[ \t\xef\xbb\xbf]*([\[{"].*[\]}"]),?[ \t\r]*$', re.MULTILINE)
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins as the next one does
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ANY_SHA1, _ANY_SHA256 = "0" * 40, "0" * 64
_ENCODING = re.compile(rb"^encoding ([\w.:-]{1,40})$", re.MULTILINE)
_PERSON = re.compile(rb"^(?:author|committer|tagger) ([^\n]*)$", re.MULTILINE)
_Reader = Callable[[Path], Iterator["ReceivedContent"]]


class ReceivedContent:
    """A piece with its name, if it has one; `is_commit` for a commit or a tag, as git stores it.

    One that is `unread` has no content, and says why what its name holds is not among the pieces, or not all of it.
    """

    def __init__(self, content: bytes, name: str = "", is_commit: bool = False, unread: str = "") -> None:
        self.content = content
        self.name = name
        self.is_commit = is_commit
        self.unread = unread

    @cached_property
    def sha256(self) -> str:
        """The digest of a file, or of the subject of a commit."""
        return hashlib.sha256(self._subject.encode() if self.is_commit else self.content).hexdigest()

    @cached_property
    def git_blob_id(self) -> str:
        """The id that git gives to a file with SHA-1."""
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content, usedforsecurity=False).hexdigest()

    @property
    def people(self) -> bytes:
        """The lines of author and committer, without their words."""
        return b"\n".join(_PERSON.findall(self.content.partition(b"\n\n")[0]))

    @property
    def message(self) -> bytes:
        """The message of a commit."""
        return self.content.partition(b"\n\n")[2]

    @property
    def _subject(self) -> str:
        found = _ENCODING.search(self.content.partition(b"\n\n")[0])
        try:
            message = self.message.decode(found[1].decode() if found else "utf-8", "replace")
        except LookupError:
            message = self.message.decode("utf-8", "replace")
        return " ".join(line.strip() for line in message.strip("\n").partition("\n\n")[0].split("\n"))


def received_contents(blob: Path) -> Iterator[ReceivedContent]:
    """Iterate over all pieces of a blob. Raises ArchiveError for one that cannot be read to its end."""
    with blob.open("rb") as file:
        start = file.read(_BEGINNING_BYTES)
    read = _reader_of(start, _LIMITS)
    if read is None:
        yield from _in_file(blob)
        return
    with TemporaryDirectory() as folder:
        for piece in read(_without_bundle(blob, start, Path(folder))):
            yield piece
            yield from _within(piece, 1)


def _in_file(blob: Path) -> Iterator[ReceivedContent]:
    """Iterate over what no reader opens: itself, and what its lines of JSON hold, which may be longer than memory."""
    if blob.stat().st_size <= _LIMITS.max_file_bytes:
        whole = ReceivedContent(blob.read_bytes())
        yield whole
        yield from _within(whole, 1)
        return
    yield ReceivedContent(b"", unread="it is more than a GiB, of which only lines of JSON are read")
    with blob.open("rb") as file:
        for piece in _strings_in(file):
            yield piece
            yield from _within(piece, 1)


def _within(outer: ReceivedContent, depth: int) -> Iterator[ReceivedContent]:
    """Iterate over what can be read of a piece that holds others, and say of what cannot that it is unread."""
    if outer.is_commit or outer.unread:
        return
    read, why = _reader_of_piece(outer), _why_unopened(outer.content)
    if read is not None and depth > DEEPEST:
        read, why = None, f"it lies deeper than {DEEPEST}"
    if read is not None:
        inner = _read_in_scratch(outer, read)
    elif why:
        inner = iter([ReceivedContent(b"", unread=why)])
    else:
        inner = _strings_in([_in_utf_8(outer.content)] if depth <= DEEPEST else [])
    for piece in inner:
        piece.name = f"{outer.name}/{piece.name}" if piece.name else outer.name
        yield piece
        yield from _within(piece, depth + 1)


def _read_in_scratch(outer: ReceivedContent, read: _Reader) -> Iterator[ReceivedContent]:
    """Iterate over what a reader finds in a piece, the end of what is broken or over a limit being unread."""
    with TemporaryDirectory() as folder:
        inner = Path(folder) / "inner"
        inner.write_bytes(outer.content)
        try:
            yield from read(_without_bundle(inner, outer.content[:_BEGINNING_BYTES], Path(folder)))
        except SourceError as error:
            yield ReceivedContent(b"", unread=error.found)


def _without_bundle(file: Path, start: bytes, folder: Path) -> Path:
    """Return the file, or of a bundle its pack alone, as a file of the folder."""
    if not start.startswith(_BUNDLE):
        return file
    pack = folder / "pack"
    pack.write_bytes(file.read_bytes().partition(b"\n\n")[2])
    return pack


def _reader_of_piece(piece: ReceivedContent) -> _Reader | None:
    if piece.content[:1] == b"x" and _LOOSE_OBJECT.fullmatch(piece.name):
        return _in_loose_object
    return _reader_of(piece.content[:_BEGINNING_BYTES], _INNER_LIMITS)


def _why_unopened(content: bytes) -> str:
    """Return why what a piece seems to hold is not opened; nothing for one that holds nothing."""
    for mark, what in _UNOPENED.items():
        if content.startswith(mark):
            return f"it is {what}, which is not opened"
    # A program may stand before a zip, which unpacks it.
    return "it ends as a zip archive and begins otherwise" if content.rfind(_ZIP_END, -_MAX_ZIP_END) >= 0 else ""


def _reader_of(start: bytes, limits: CollectParams) -> _Reader | None:
    """Return what reads what begins so; None for what is of no other pieces, but for lines."""
    if start.startswith(_COMPRESSED) or (start.startswith(b"BZh") and start[4:10] in BLOCKS_OF_BZIP2):
        return partial(_in_compressed, limits=limits)
    # A tar is known by the sum of its first header: the name there may begin as anything does.
    if start.startswith(_ZIP) or (start.strip(b"\0") and _is_tar(start)):
        return partial(_in_archive, limits=limits)
    if start.startswith((*_PACK, *_BUNDLE)):
        return _in_pack
    return None


def _is_tar(start: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _in_compressed(inner: Path, limits: CollectParams) -> Iterator[ReceivedContent]:
    """Iterate over the files of an archive that is compressed, or over the one file, of a broken one up to there."""
    blocks, num_bytes, subject = list[bytes](), 0, "compressed file"
    try:
        for block in _decompressed(inner, limits, subject):
            if not blocks and block.strip(b"\0") and _is_tar(block):
                break
            blocks.append(block)
            num_bytes += len(block)
            if num_bytes > limits.max_file_bytes:
                raise ArchiveError(subject, "it holds more than a GiB", "less")
        else:
            yield ReceivedContent(b"".join(blocks))
            return
    except ArchiveError:
        yield ReceivedContent(b"".join(blocks))
        raise
    yield from _in_archive(inner, limits)


def _decompressed(inner: Path, limits: CollectParams, subject: str) -> Iterator[bytes]:
    """Iterate over the blocks that a file holds which is compressed as a whole, the first of as many bytes as a header of a tar."""
    with inner.open("rb") as file, refusing_broken(subject):
        start = file.read(_BEGINNING_BYTES)
        file.seek(0)
        stream = decompressed(file, start, limits, subject)
        first = b""
        while len(first) < _BEGINNING_BYTES and (block := stream.read(_BEGINNING_BYTES - len(first))):
            first += block
        yield first
        while block := stream.read(1 << 20):
            yield block


def _in_archive(blob: Path, limits: CollectParams) -> Iterator[ReceivedContent]:
    subject = f"archive {blob.name[:12]}"
    with refusing_broken(subject):
        for member in members_of(blob, limits, subject):
            if member.num_bytes > limits.max_file_bytes:
                raise ArchiveError(subject, f"{member.num_bytes} bytes are in one member", "less than a GiB")
            if member.kind == "file":
                yield ReceivedContent(member.read(), member.name)


def _in_loose_object(inner: Path) -> Iterator[ReceivedContent]:
    """Iterate over the file or the commit that an object of git alone holds."""
    with refusing_broken("object of git"):
        inflate = zlib.decompressobj()
        data = inflate.decompress(inner.read_bytes(), _INNER_LIMITS.max_file_bytes)
        kind, _, content = data.partition(b"\0")
        if not inflate.eof:
            raise ValueError("it ends early, or is larger than a GiB")
    if not kind.startswith(b"tree "):
        yield ReceivedContent(content, is_commit=not kind.startswith(b"blob "))


def _strings_in(texts: Iterable[bytes]) -> Iterator[ReceivedContent]:
    """Iterate over the strings of those lines that are JSON, whatever the file is called."""
    for text in texts:
        for line in _LINE_OF_JSON.finditer(text):
            with suppress(ValueError, RecursionError):
                yield from map(ReceivedContent, _strings(json.loads(line[1])))


def _in_utf_8(text: bytes) -> bytes:
    """Return a text of UTF-16 or UTF-32, as its byte-order mark says, in UTF-8; any other as it is."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS.items() if text.startswith(mark)), None)
    return text if encoding is None else text.decode(encoding, "replace").encode("utf-8", "replace")


def _strings(record: Any) -> list[bytes]:
    """Return the strings that a value of JSON holds."""
    found, waiting = list[bytes](), [record]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.append(value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return found


def _in_pack(blob: Path) -> Iterator[ReceivedContent]:
    """Iterate over the files of all commits of a pack, each with one of its names, and the commits."""
    subject = f"pack {blob.name[:12]}"
    try:
        with open_pack(blob, _ANY_SHA1, subject) as objects:
            yield from _objects_of(objects)
    except ArchiveError:  # the ids of a repository that hashes otherwise are longer
        with open_pack(blob, _ANY_SHA256, subject) as objects:
            yield from _objects_of(objects)


def _objects_of(objects: PackObjects) -> Iterator[ReceivedContent]:
    listing = run_git(objects.folder, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"])
    kinds = dict(line.split(" ") for line in listing.decode().splitlines())
    commits = [object_id for object_id, kind in kinds.items() if kind == "commit"]
    names: dict[str, str] = {}
    # A pack of a repository with several names what is in another one.
    walk = ["rev-list", "--objects", "--no-walk", "--missing=allow-any", "--stdin"]
    with stream_git(objects.folder, walk, commits) as lines:
        for line in lines:
            object_id, _, name = line.decode("utf-8", "surrogateescape").rstrip("\n").partition(" ")
            names[object_id] = name
    for object_id, kind in kinds.items():
        if kind == "blob":
            yield ReceivedContent(objects.read(object_id, kind), names.get(object_id, ""))
        elif kind != "tree":
            yield ReceivedContent(objects.read(object_id, kind), is_commit=True)
