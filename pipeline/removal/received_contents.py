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
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

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
_INNER_LIMITS = CollectParams(max_compression_ratio=10_000, max_file_bytes=256 * 1024**2)
"""Limits of an archive within another: nobody has built from it, so that it may be a bomb. A file of it is held in memory."""
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
    **{bytes((0x50 + number,)) + b"\x2a\x4d\x18": "LZ4 or Zstandard" for number in range(16)},
    b"\x04\x22\x4d\x18": "LZ4",
    b"\x02\x21\x4c\x18": "LZ4",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "RAR",
    b"LZIP": "lzip",
    b"\x89LZO\0": "lzop",
    b"\xff\x06\0\0sNaPpY": "Snappy",
    b"\x1f\x9d": "compress",
    b"MSCF\0\0\0\0": "a cabinet",
    b"!<arch>\n": "ar",
    **dict.fromkeys((b"070701", b"070702", b"070707", b"\xc7\x71", b"\x71\xc7"), "cpio"),
    b"\xed\xab\xee\xdb": "RPM",
    b"hsqs": "SquashFS",
    b"PAR1": "Parquet",
    b"ARROW1\0\0": "Arrow",
    b"SQLite format 3\0": "SQLite",
    b"%PDF-": "PDF",
}
"""Beginnings of archives and other containers that nothing here opens, and what they are."""
_LZMA = re.compile(rb"\x5d\0[\0-\x80][\0-\xff]{2}(?:\xff{8}|[\0-\xff]{5}\0{3})")
"""Beginning of LZMA without a container, of the usual properties, a dictionary below 4 GiB and a size."""
_SMALL_KINDS = {"folder", "link", "hard link", "FIFO", "device"}
"""Kinds of members that hold nothing but a name and a target."""
_ZLIB = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
_ZLIB_HEADER_BYTES, _ZLIB_CHECKSUM_BYTES, _ZLIB_BLOCK_BYTES = 2, 4, 512
_GIT_OBJECT = re.compile(rb"([a-z]{1,32}) [0-9]{1,20}\0")
_GIT_KINDS = {b"blob", b"commit", b"tag", b"tree"}
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f\x7f]")
"""A byte that is in no text."""
_LINE_OF_JSON = re.compile(rb'(?:^|\n|\r)[ \t\xef\xbb\xbf]*([\[{"][^\n\r]*)')
_STRING_OF_JSON = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)')
"""A string of JSON, or the rest of a line that is cut within one."""
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\)')
"""An escape of JSON, or a backslash that begins none."""
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins as the next one does
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ANY_SHA1, _ANY_SHA256 = "0" * 40, "0" * 64
_ENCODING = re.compile(rb"^encoding ([\w.:-]{1,40})$", re.MULTILINE)
_PERSON = re.compile(rb"^ ?(?:author|committer|tagger) ([^\n]*)$", re.MULTILINE)
"""A line of a header that names a person; one of a tag that was merged is indented."""
_Reader = Callable[[Path], Iterator["ReceivedContent"]]


class ReceivedContent:
    """A piece with its name, if it has one; `is_commit` for a commit or a tag, as git stores it.

    One that is `unread` has no content, and says why what its name holds is not among the pieces, or not all of it. `outer` is the
    piece that this one was read from, None for what an archive or a pack itself holds, and for a blob that is neither.
    """

    outer: "ReceivedContent | None" = None

    def __init__(self, content: bytes, name: str = "", is_commit: bool = False, unread: str = "") -> None:
        self.content = content
        self.name = name
        self.is_commit = is_commit
        self.unread = unread

    @property
    def outermost(self) -> "ReceivedContent":
        """The file that it is in, or itself: what a person would count as one."""
        return self if self.outer is None else self.outer.outermost

    def is_within(self, sha256s: Collection[str]) -> bool:
        """Return whether it, or a piece that it was read from, has one of these digests."""
        return self.sha256 in sha256s or (self.outer is not None and self.outer.is_within(sha256s))

    def without(self, sha256s: Collection[str]) -> bytes:
        """Return the content of a file without the strings of its lines of JSON that have one of these digests; of a commit its
        message, without such a subject, with what its header quotes of tags that were merged, but for who made these."""
        if self.is_commit:
            return self._words_without(sha256s)

        def emptied(string: re.Match[bytes]) -> bytes:
            return b'""' if hashlib.sha256(_unescaped(string[1])).hexdigest() in sha256s else string[0]

        def of_line(line: re.Match[bytes]) -> bytes:
            start = line.start(1) - line.start()
            return line[0][:start] + _STRING_OF_JSON.sub(emptied, line[1])

        return _LINE_OF_JSON.sub(of_line, _in_utf_8(self.content))

    def _words_without(self, sha256s: Collection[str]) -> bytes:
        header, _, message = self.content.partition(b"\n\n")
        quoted = (line for line in header.split(b"\n") if line.startswith(b" ") and not _PERSON.match(line))
        body = message.strip(b"\n").partition(b"\n\n")[2]
        return b"\n".join((*quoted, body if self.sha256 in sha256s else message))

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
        inner = _strings_in([_in_utf_8(outer.content)] if depth <= DEEPEST + 1 else [])
    for piece in inner:
        piece.outer = outer
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
    if piece.content.startswith(_ZLIB) and not _is_text(piece.content):
        return _in_zlib
    return _reader_of(piece.content[:_BEGINNING_BYTES], _INNER_LIMITS)


def _is_text(content: bytes) -> bool:
    """Return whether this is text in UTF-8: one may begin as zlib does, such as by `x^2`."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return not _CONTROL.search(content)


def _why_unopened(content: bytes) -> str:
    """Return why what a piece seems to hold is not opened; nothing for one that holds nothing."""
    for mark, what in _UNOPENED.items():
        if content.startswith(mark):
            return f"it is {what}, which is not opened"
    if _LZMA.match(content):
        return "it is LZMA, which is not opened"
    if not content[:_BEGINNING_BYTES].strip(b"\0") and _is_tar(_after_zeros(content)):
        return "a tar archive follows blocks of zeros"
    # A program may stand before a zip, which unpacks it.
    return "it ends as a zip archive and begins otherwise" if content.rfind(_ZIP_END, -_MAX_ZIP_END) >= 0 else ""


def what_it_is(blob: Path) -> str:
    """Return the word for a blob: an archive, a pack of git, or a file."""
    with blob.open("rb") as file:
        read = _reader_of(file.read(_BEGINNING_BYTES), _LIMITS)
    return "file" if read is None else "pack" if read is _in_pack else "archive"


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


def _after_zeros(content: bytes) -> bytes:
    """Return the first block of a tar that is not of zeros."""
    at = (len(content) - len(content.lstrip(b"\0"))) // _BEGINNING_BYTES * _BEGINNING_BYTES
    return content[at : at + _BEGINNING_BYTES]


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
                raise ArchiveError(subject, f"it holds more than {limits.max_file_bytes} bytes", "less")
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
                raise ArchiveError(subject, f"{member.num_bytes} bytes are in one member", f"{limits.max_file_bytes}")
            if member.kind == "file" or (member.kind == "link" and member.num_bytes):  # a zip stores a target as a file
                yield ReceivedContent(member.read(), member.name)
            elif member.kind not in _SMALL_KINDS:
                yield ReceivedContent(b"", member.name, unread=f"it is a {member.kind}, which is not read")


def _in_zlib(inner: Path) -> Iterator[ReceivedContent]:
    """Iterate over what a file of zlib holds, such as the file or the commit of an object of git, of a broken one up to there.

    The lines of a broken one are read as well: it may be another file that begins so.
    """
    stream = inner.read_bytes()
    data, why = _inflated(stream)
    header = _GIT_OBJECT.match(data)
    kind = header[1] if header else b""
    if header:
        yield ReceivedContent(data[header.end() :], is_commit=kind in (b"commit", b"tag"))
    if kind not in _GIT_KINDS:
        yield ReceivedContent(data)
    if why:
        yield from _strings_in([stream])
        raise ArchiveError("file of zlib", why)


def _inflated(stream: bytes) -> tuple[bytes, str]:
    """Return what a stream of zlib holds, of a broken one as far as it can be read, and what is wrong with it, if something is.

    Its checksum is compared here: the library keeps back what it has read where that is another.
    """
    inflate, blocks, left = zlib.decompressobj(-zlib.MAX_WBITS), list[bytes](), _INNER_LIMITS.max_file_bytes
    end = _ZLIB_HEADER_BYTES
    while end < len(stream) and not inflate.eof:
        block = stream[end : end + _ZLIB_BLOCK_BYTES]
        try:
            blocks.append(inflate.decompress(block, left + 1))
        except zlib.error as error:
            return b"".join(blocks), f"it is broken ({error})"
        left -= len(blocks[-1])
        if left < 0:
            return b"".join(blocks), f"it holds more than {_INNER_LIMITS.max_file_bytes} bytes"
        end += len(block) - len(inflate.unused_data)
    data = b"".join(blocks)
    if not inflate.eof or len(stream) < end + _ZLIB_CHECKSUM_BYTES:
        return data, "it ends early"
    if int.from_bytes(stream[end : end + _ZLIB_CHECKSUM_BYTES]) != zlib.adler32(data):
        return data, "its checksum is another"
    return data, "bytes follow its end" if len(stream) > end + _ZLIB_CHECKSUM_BYTES else ""


def _strings_in(texts: Iterable[bytes]) -> Iterator[ReceivedContent]:
    """Iterate over the strings of lines that begin as JSON does, names too: they need not be JSON to their end, or by its rules."""
    for text in texts:
        for line in _LINE_OF_JSON.finditer(text):
            yield from (ReceivedContent(_unescaped(each[1])) for each in _STRING_OF_JSON.finditer(line[1]))


def _unescaped(string: bytes) -> bytes:
    """Return the text of a string of JSON, without the backslash of what is no escape; bytes that are no UTF-8 stay."""
    if b"\\" not in string:
        return string
    text = string.decode("utf-8", "surrogateescape")
    try:
        unescaped = str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        known = _ESCAPE.sub(lambda found: "" if found[1] else found[0], text)
        unescaped = str(json.loads(f'"{known}"', strict=False))
    try:
        return unescaped.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair, by its escape
        return unescaped.encode("utf-8", "surrogatepass")


def _in_utf_8(text: bytes) -> bytes:
    """Return a text of UTF-16 or UTF-32, as its byte-order mark says, in UTF-8; any other as it is."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS.items() if text.startswith(mark)), None)
    return text if encoding is None else text.decode(encoding, "replace").encode("utf-8", "replace")


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
