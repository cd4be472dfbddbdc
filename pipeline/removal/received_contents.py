"""ReceivedContent: a piece of what a store received: a file of an archive or a pack, a commit, a string of a line.

Read without a pin, and whole: what a pin leaves out, and what an earlier or later commit has, is here too. What can be read of an
archive or a pack within another, or of a compressed file, are pieces too, beside itself, as deep as DEEPEST.
"""

import hashlib
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.core.errors import ArchiveError, SourceError
from pipeline.stages.collect.archives.containers import members_of, refusing_broken
from pipeline.stages.collect.archives.decompression import decompressed
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.collect.repositories.command import run_git, stream_git
from pipeline.stages.collect.repositories.pack_objects import PackObjects, open_pack

_LIMITS = CollectParams(
    max_members=10_000_000, max_total_bytes=1024**4, max_compression_ratio=10_000, max_file_bytes=1024**3
)
"""A recipe may have raised its own: what a build has read is read again."""
_INNER_LIMITS = CollectParams(max_compression_ratio=10_000, max_file_bytes=1024**3)
"""Limits of an archive within another: nobody has built from it, so that it may be a bomb. One that is over them is named."""
_OF_LIMITS = ("at most", "less than")
"""Beginnings of what an error about a limit expects."""
DEEPEST = 4
_COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ\0", b"BZh", b"PK\x03\x04", b"PK\x05\x06")
"""Beginnings of gzip, xz, bzip2 and zip. Of what is none, and no tar, all is one piece."""
_PACK, _BEGINNING_BYTES = b"PACK", 512
_BUNDLE = (b"# v2 git bundle\n", b"# v3 git bundle\n")
"""Beginnings of a pack with the names of its commits, which an empty line ends."""
_LINES = (".jsonl", ".ndjson")
_ANY_SHA1, _ANY_SHA256 = "0" * 40, "0" * 64
_ENCODING = re.compile(rb"^encoding ([\w.:-]{1,40})$", re.MULTILINE)
_PERSON = re.compile(rb"^(?:author|committer|tagger) ([^\n]*)$", re.MULTILINE)


class ReceivedContent:
    """A piece with its name, if it has one; `is_commit` for a commit or a tag, as git stores it."""

    def __init__(self, content: bytes, name: str = "", is_commit: bool = False) -> None:
        self.content = content
        self.name = name
        self.is_commit = is_commit

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
    """Iterate over all pieces of a blob. Raises ArchiveError for one that cannot be read to its end, or holds one over a limit."""
    with blob.open("rb") as file:
        start = file.read(_BEGINNING_BYTES)
    # A tar is known by the sum of its first header: the name there may begin as anything does.
    if _is_archive(start):
        pieces = _in_archive(blob, _LIMITS)
    elif start.startswith(_PACK):
        pieces = _in_pack(blob)
    elif start.lstrip().startswith((b"{", b"[")):
        pieces = _in_lines(blob)
    else:
        pieces = iter([ReceivedContent(blob.read_bytes())])
    for piece in pieces:
        yield piece
        yield from _within(piece, 1)


def _within(outer: ReceivedContent, depth: int) -> Iterator[ReceivedContent]:
    """Iterate over what can be read of a piece that is an archive, a pack or a compressed file, and of a broken one up to there."""
    content = outer.content.partition(b"\n\n")[2] if outer.content.startswith(_BUNDLE) else outer.content
    read = None if outer.is_commit or depth > DEEPEST else _reader_of(content[:_BEGINNING_BYTES], outer.name)
    if read is None:
        return
    with TemporaryDirectory() as folder:
        inner = Path(folder) / "inner"
        inner.write_bytes(content)
        try:
            for piece in read(inner):
                piece.name = f"{outer.name}/{piece.name}" if piece.name else outer.name
                yield piece
                yield from _within(piece, depth + 1)
        except SourceError as error:
            if error.expected.startswith(_OF_LIMITS):
                raise ArchiveError(f"{outer.name} in it", error.found, error.expected) from error


def _reader_of(start: bytes, name: str) -> Callable[[Path], Iterator[ReceivedContent]] | None:
    """Return what reads a piece that begins so; None for one that is of no other pieces."""
    if start.strip(b"\0") and _is_archive(start):
        return partial(_in_inner_archive, start=start)
    if start.startswith(_PACK):
        return _in_pack
    return _in_lines if name.endswith(_LINES) else None


def _in_inner_archive(inner: Path, start: bytes) -> Iterator[ReceivedContent]:
    """Iterate over the files of an archive, or over the one file that is compressed."""
    if start.startswith(_COMPRESSED) and not start.startswith(b"PK"):
        content = _decompressed(inner, start)
        beginning = content[:_BEGINNING_BYTES]
        if not (beginning.strip(b"\0") and _is_archive(beginning)):
            yield ReceivedContent(content)
            return
    yield from _in_archive(inner, _INNER_LIMITS)


def _decompressed(inner: Path, start: bytes) -> bytes:
    """Return what a file holds that is compressed as a whole. Raises ArchiveError for more than a member may hold."""
    subject, blocks, num_bytes = "compressed file", list[bytes](), 0
    with inner.open("rb") as file, refusing_broken(subject):
        stream = decompressed(file, start, _INNER_LIMITS, subject)
        while block := stream.read(1 << 20):
            blocks.append(block)
            num_bytes += len(block)
            if num_bytes > _INNER_LIMITS.max_file_bytes:
                raise ArchiveError(subject, "it holds more", "less than a GiB")
    return b"".join(blocks)


def _is_archive(start: bytes) -> bool:
    if start.startswith(_COMPRESSED):
        return True
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # zeros: an empty archive
        return True
    except tarfile.HeaderError:
        return False
    return True


def _in_archive(blob: Path, limits: CollectParams) -> Iterator[ReceivedContent]:
    subject = f"archive {blob.name[:12]}"
    with refusing_broken(subject):
        for member in members_of(blob, limits, subject):
            if member.num_bytes > limits.max_file_bytes:
                raise ArchiveError(subject, f"{member.num_bytes} bytes are in one member", "less than a GiB")
            if member.kind == "file":
                yield ReceivedContent(member.read(), member.name)


def _in_lines(blob: Path) -> Iterator[ReceivedContent]:
    """Iterate over the strings of lines of JSON; a line that is none is a piece."""
    with blob.open("rb") as file:
        for line in file:
            try:
                found = _strings(json.loads(line))
            except (ValueError, RecursionError):
                found = [line]
            yield from map(ReceivedContent, found)


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
    with stream_git(objects.folder, ["rev-list", "--objects", "--no-walk", "--stdin"], commits) as lines:
        for line in lines:
            object_id, _, name = line.decode("utf-8", "surrogateescape").rstrip("\n").partition(" ")
            names[object_id] = name
    for object_id, kind in kinds.items():
        if kind == "blob":
            yield ReceivedContent(objects.read(object_id, kind), names.get(object_id, ""))
        elif kind != "tree":
            yield ReceivedContent(objects.read(object_id, kind), is_commit=True)
