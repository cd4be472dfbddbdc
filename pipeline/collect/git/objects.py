"""The objects of a pack, read by id and judged by their hash: a commit id stands for every byte that is reached from it.

Nothing is checked out, so no hook, filter or attribute has a say, and paths that would collide on a disk do not matter.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from pipeline.collect.archives.containers import over_limit
from pipeline.collect.archives.unpack import Contents, ReadFile, SkippedFile, keeps_content, reason_to_skip
from pipeline.collect.git.command import converse, create_repository, run_git, started
from pipeline.collect.params import CollectParams
from pipeline.core.errors import ArchiveError, SourceError
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection

_FOLDER, _LINK, _SUBMODULE = "40000", "120000", "160000"
_FILES = frozenset({"100644", "100755", "100664"})  # the last is found in very old trees
_MAX_TARGET_BYTES = 4096


@dataclass(frozen=True, slots=True)
class TreeFile:
    """What a tree holds at a path, folders apart: its mode as git has it, and the id of its object."""

    path: str
    mode: str
    object_id: str


class Objects:
    """The objects of one pack, in a bare repository made for them."""

    def __init__(self, folder: Path, asked: IO[bytes], answered: IO[bytes], subject: str) -> None:
        self.folder = folder
        self._asked = asked
        self._answered = answered
        self._subject = subject

    def read(self, object_id: str, kind: str) -> bytes:
        """The content of an object. Raises ArchiveError unless it is there, of that kind, and hashes to its id."""
        self._asked.write(f"{object_id}\n".encode())
        self._asked.flush()
        found, _, rest = self._answered.readline().decode().strip().partition(" ")
        if found != object_id or rest in ("", "missing") or rest.partition(" ")[0] != kind:
            raise self.broken(f"{kind} {object_id} is {rest or 'missing'}")
        num_bytes = int(rest.partition(" ")[2])
        content = self._answered.read(num_bytes + 1)[:-1]
        if object_hash(kind, content, object_id) != object_id:
            raise self.broken(f"{kind} {object_id} has other bytes than its id says")
        return content

    def sizes(self, object_ids: Iterable[str]) -> dict[str, int]:
        """Bytes of each blob, without reading it. Raises ArchiveError for one that is missing or no blob."""
        sizes: dict[str, int] = {}
        with started(self.folder, ["cat-file", "--batch-check"], sorted(set(object_ids))) as lines:
            for line in lines:
                object_id, _, rest = line.decode().strip().partition(" ")
                kind, _, num_bytes = rest.partition(" ")
                if kind != "blob":
                    raise self.broken(f"blob {object_id} is {rest}")
                sizes[object_id] = int(num_bytes)
        return sizes

    def broken(self, found: str) -> ArchiveError:
        """The refusal of objects that do not make sense."""
        remedy = "Run `fsck`; remove the pack's blob if it is named there, and build again. Else pin another commit."
        return ArchiveError(
            self._subject, f"its pack is broken ({found})", "every object that the commit names", remedy
        )


def object_hash(kind: str, content: bytes, like: str) -> str:
    """The id of an object, with the hash that the id `like` is of."""
    data = f"{kind} {len(content)}\0".encode() + content
    return hashlib.new("sha1" if len(like) == 40 else "sha256", data, usedforsecurity=False).hexdigest()


@contextmanager
def opened_pack(pack: Path, commit: str, subject: str) -> Iterator[Objects]:
    """The objects of a pack; its index is made here, which computes every id anew. Raises ArchiveError for a broken one."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "objects.git")
        create_repository(folder, commit)
        place = folder / "objects" / "pack" / "pack-all.pack"
        place.symlink_to(pack.absolute())
        process = None
        try:
            run_git(folder, ["index-pack", "--threads=1", str(place)])
            process = converse(folder, ["cat-file", "--batch"])
            assert process.stdin is not None
            assert process.stdout is not None
            yield Objects(folder, process.stdin, process.stdout, subject)
        except SourceError as error:
            if not error.subject.startswith("git "):
                raise
            remedy = "Run `fsck`; remove the pack's blob if it is named there, and build again."
            raise ArchiveError(subject, f"its pack is broken ({error.found})", "a whole pack", remedy) from error
        finally:
            if process is not None:
                process.kill()
                process.communicate()


class Wanted(NamedTuple):
    """What is wanted of a commit: the files that the globs accept; with `keeps_tree`, those in other languages too."""

    selection: Selection
    keeps_tree: bool


def commit_contents(objects: Objects, commit: str, wanted: Wanted, limits: CollectParams, subject: str) -> Contents:
    """The files of a commit: those that are wanted, and the others with the reason; links and submodules are not followed."""
    entries = sorted(tree_files(objects, commit, limits, subject), key=lambda entry: entry.path)
    sizes = objects.sizes(entry.object_id for entry in entries if entry.mode != _SUBMODULE)
    total_bytes = sum(sizes.get(entry.object_id, 0) for entry in entries)
    if total_bytes > limits.max_total_bytes:
        raise over_limit(subject, f"commit {commit} has {total_bytes} bytes", f"{limits.max_total_bytes} bytes in all")
    files: list[ReadFile] = []
    skipped: list[SkippedFile] = []
    for entry in entries:
        num_bytes = sizes.get(entry.object_id, 0)
        reason, detail = _reason_to_skip(entry, num_bytes, objects, wanted.selection, limits)
        if reason:
            is_kept = wanted.keeps_tree and keeps_content(reason, num_bytes, limits)
            kept = objects.read(entry.object_id, "blob") if is_kept else None
            skipped.append(SkippedFile(entry.path, num_bytes, reason, detail, kept))
        else:
            files.append(ReadFile(entry.path, objects.read(entry.object_id, "blob")))
    return Contents(tuple(files), tuple(skipped))


def tree_files(objects: Objects, commit: str, limits: CollectParams, subject: str) -> Iterator[TreeFile]:
    """Everything in a commit's tree but folders. Raises ArchiveError over the limits and for names that no tree may hold."""
    header = objects.read(commit, "commit").partition(b"\n")[0].decode("ascii", "replace")
    if not header.startswith("tree "):
        raise objects.broken(f"commit {commit} begins with {header[:40]!r}")
    pending = [("", header.removeprefix("tree "), 0)]
    num_members = 0
    while pending:
        above, tree, depth = pending.pop()
        for mode, name, object_id in _entries(objects, tree):
            num_members += 1
            if num_members > limits.max_members:
                raise over_limit(
                    subject, f"has more entries than {limits.max_members}", f"{limits.max_members} entries"
                )
            path = above + printable_path(name.decode("utf-8", "surrogateescape"))
            _judge(name, path, depth, limits, subject)
            if mode == _FOLDER:
                pending.append((f"{path}/", object_id, depth + 1))
            elif mode in _FILES or mode in (_LINK, _SUBMODULE):
                yield TreeFile(path, mode, object_id)
            else:
                raise objects.broken(f"{path!r} has the mode {mode[:20]!r}")


def _entries(objects: Objects, tree: str) -> Iterator[tuple[str, bytes, str]]:
    content = objects.read(tree, "tree")
    num_id_bytes = len(tree) // 2
    seen: set[bytes] = set()
    at = 0
    while at < len(content):
        end = content.find(b"\0", at)
        mode, space, name = content[at:end].partition(b" ")
        object_id = content[end + 1 : end + 1 + num_id_bytes]
        if end < 0 or not space or len(object_id) != num_id_bytes or name in seen:
            raise objects.broken(f"tree {tree} makes no sense at byte {at}")
        seen.add(name)
        yield mode.decode("latin-1").lstrip("0"), name, object_id.hex()
        at = end + 1 + num_id_bytes


def _judge(name: bytes, path: str, depth: int, limits: CollectParams, subject: str) -> None:
    where = f"{subject}: {path[:200]!r}"
    if name in (b"", b".", b"..") or b"/" in name:
        remedy = "The commit is not used; choose another or leave this source out."
        raise ArchiveError(where, "is no name for a file", "names that stay in their folder", remedy)
    if len(path.encode()) > limits.max_path_bytes:
        raise over_limit(where, f"its path has {len(path.encode())} bytes", f"{limits.max_path_bytes}")
    if depth > limits.max_depth:
        raise over_limit(where, f"lies {depth} folders deep", f"{limits.max_depth}")


def _reason_to_skip(
    entry: TreeFile, num_bytes: int, objects: Objects, selection: Selection, limits: CollectParams
) -> tuple[str, str]:
    if not selection.accepts(entry.path):
        return "excluded", ""
    if entry.mode == _SUBMODULE:
        return "submodule", f"commit {entry.object_id}"
    if entry.mode == _LINK:
        target = objects.read(entry.object_id, "blob") if num_bytes <= _MAX_TARGET_BYTES else b""
        return "link", printable_path(target.decode("utf-8", "surrogateescape"))
    return reason_to_skip(entry.path, num_bytes, limits), ""
