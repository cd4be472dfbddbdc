"""Objects of a git pack, read by id and verified by their hash: a commit id determines every byte reachable from it.

Nothing is checked out, so hooks, filters and attributes have no effect, and paths may collide on a file system.
"""

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from pipeline.core.errors import ArchiveError, SourceError
from pipeline.pins.local_tree import printable_path
from pipeline.stages.collect.contents import ReadFile, ReadOptions, SkippedFile, SourceContents, over_limit
from pipeline.stages.collect.repositories.command import create_repository, run_git, start_git, stream_git

_FOLDER, _LINK, _SUBMODULE = "40000", "120000", "160000"
_FILES = frozenset({"100644", "100755", "100664"})  # the last is found in very old trees
_MAX_TARGET_BYTES = 4096
_RUN_FSCK = "Run `python -m pipeline fsck`; remove the pack's blob if it is named there, and build again."


@dataclass(frozen=True, slots=True)
class GitTreeEntry:
    """An entry of a commit's tree other than a folder: its path, its mode, and the id of its object."""

    path: str
    mode: str
    object_id: str

    @property
    def is_file(self) -> bool:
        """True for a regular file: no link and no submodule."""
        return self.mode in _FILES


class PackObjects:
    """The objects of one pack, in a temporary bare repository."""

    def __init__(self, folder: Path, requests: IO[bytes], responses: IO[bytes], subject: str) -> None:
        self.folder = folder
        self._requests = requests
        self._responses = responses
        self._subject = subject

    def read(self, object_id: str, kind: str) -> bytes:
        """Return the content of an object. Raises ArchiveError if it is missing, of another kind, or does not hash to its id."""
        self._requests.write(f"{object_id}\n".encode())
        self._requests.flush()
        found, _, rest = self._responses.readline().decode().strip().partition(" ")
        if found != object_id or rest in ("", "missing") or rest.partition(" ")[0] != kind:
            raise self.broken(f"{kind} {object_id} is {rest or 'missing'}")
        num_bytes = int(rest.partition(" ")[2])
        content = self._responses.read(num_bytes + 1)[:-1]
        if object_hash(kind, content, object_id) != object_id:
            raise self.broken(f"{kind} {object_id} has bytes that do not hash to its id")
        return content

    def sizes(self, object_ids: Iterable[str]) -> dict[str, int]:
        """Return the size of each blob without reading it. Raises ArchiveError if one is missing or not a blob."""
        sizes: dict[str, int] = {}
        with stream_git(self.folder, ["cat-file", "--batch-check"], sorted(set(object_ids))) as lines:
            for line in lines:
                object_id, _, rest = line.decode().strip().partition(" ")
                kind, _, num_bytes = rest.partition(" ")
                if kind != "blob":
                    raise self.broken(f"blob {object_id} is {rest}")
                sizes[object_id] = int(num_bytes)
        return sizes

    def broken(self, found: str) -> ArchiveError:
        """Return the error for objects that are missing or invalid."""
        remedy = f"{_RUN_FSCK} Otherwise pin another commit."
        return ArchiveError(self._subject, f"its pack is broken ({found})", "every object of the commit", remedy)


def object_hash(kind: str, content: bytes, like: str) -> str:
    """Return the id of an object, with the hash algorithm of the id `like`."""
    data = f"{kind} {len(content)}\0".encode() + content
    return hashlib.new("sha1" if len(like) == 40 else "sha256", data, usedforsecurity=False).hexdigest()


@contextmanager
def open_pack(pack: Path, commit: str, subject: str) -> Iterator[PackObjects]:
    """Open a pack; its index is built here, which computes every id again. Raises ArchiveError for a broken pack."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "objects.git")
        create_repository(folder, commit)
        link = folder / "objects" / "pack" / "pack-all.pack"
        link.symlink_to(pack.absolute())
        try:
            run_git(folder, ["index-pack", "--threads=1", str(link)])
            with start_git(folder, ["cat-file", "--batch"]) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                yield PackObjects(folder, process.stdin, process.stdout, subject)
        except SourceError as error:
            if not error.subject.startswith("git "):
                raise
            raise ArchiveError(subject, f"its pack is broken ({error.found})", "a whole pack", _RUN_FSCK) from error


def commit_contents(objects: PackObjects, commit: str, options: ReadOptions) -> SourceContents:
    """Read the files of a commit: the selected ones, and the others with the reason; links and submodules are not followed."""
    entries = sorted(tree_files(objects, commit, options), key=lambda entry: entry.path)
    options.refuse_clashes(entry.path for entry in entries if options.selection.accepts(entry.path))
    sizes = objects.sizes(entry.object_id for entry in entries if entry.mode != _SUBMODULE)
    total_bytes, limit = sum(sizes.get(entry.object_id, 0) for entry in entries), options.limits.max_total_bytes
    if total_bytes > limit:
        raise over_limit(options.source, f"commit {commit} has {total_bytes} bytes", f"{limit} bytes in all")
    found: list[ReadFile | SkippedFile] = []
    for entry in entries:
        num_bytes = sizes.get(entry.object_id, 0)
        reason, detail = _reason_to_skip(entry, num_bytes, objects, options)
        read = partial(objects.read, entry.object_id, "blob")
        found.append(options.take(entry.path, num_bytes, read, reason, detail))
    return SourceContents.of(found)


def tree_files(objects: PackObjects, commit: str, options: ReadOptions) -> Iterator[GitTreeEntry]:
    """Yield every entry of a commit's tree but folders. Raises ArchiveError over the limits and for invalid names."""
    header = objects.read(commit, "commit").partition(b"\n")[0].decode("ascii", "replace")
    if not header.startswith("tree "):
        raise objects.broken(f"commit {commit} begins with {header[:40]!r}")
    pending = [("", header.removeprefix("tree "))]
    num_members, limit = 0, options.limits.max_members
    while pending:
        above, tree = pending.pop()
        for mode, name, object_id in _entries(objects, tree):
            num_members += 1
            if num_members > limit:
                raise over_limit(options.source, f"has more entries than {limit}", f"{limit} entries")
            full_name = above + name.decode("utf-8", "surrogateescape")
            path = _checked_path(name, full_name, options)
            if mode == _FOLDER:
                pending.append((f"{full_name}/", object_id))
            elif mode in _FILES or mode in (_LINK, _SUBMODULE):
                yield GitTreeEntry(path, mode, object_id)
            else:
                raise objects.broken(f"{path!r} has the mode {mode[:20]!r}")


def _entries(objects: PackObjects, tree: str) -> Iterator[tuple[str, bytes, str]]:
    content = objects.read(tree, "tree")
    num_id_bytes = len(tree) // 2
    seen: set[bytes] = set()
    at, before = 0, b""
    while at < len(content):
        end = content.find(b"\0", at)
        mode, space, name = content[at:end].partition(b" ")
        object_id = content[end + 1 : end + 1 + num_id_bytes]
        # git orders a folder as if its name ended with a slash, and finds nothing after its place.
        key = name + b"/" if mode.lstrip(b"0") == b"40000" else name
        if end < 0 or not space or len(object_id) != num_id_bytes or name in seen or key <= before:
            raise objects.broken(f"tree {tree} is invalid at byte {at}")
        seen.add(name)
        before = key
        yield mode.decode("latin-1").lstrip("0"), name, object_id.hex()
        at = end + 1 + num_id_bytes


def _checked_path(name: bytes, full_name: str, options: ReadOptions) -> str:
    if name in (b"", b".", b"..") or b"/" in name or name.lower() == b".git":
        raise options.refusal(full_name, "is not a valid file name", "names that stay in their folder")
    return options.checked_path(full_name)


def _reason_to_skip(entry: GitTreeEntry, num_bytes: int, objects: PackObjects, options: ReadOptions) -> tuple[str, str]:
    if not options.selection.accepts(entry.path):
        return "excluded", ""
    if entry.mode == _SUBMODULE:
        return "submodule", f"commit {entry.object_id}"
    if entry.mode == _LINK:
        if num_bytes > _MAX_TARGET_BYTES:
            raise options.over_limit(entry.path, f"is a link of {num_bytes} bytes", f"{_MAX_TARGET_BYTES}")
        target = objects.read(entry.object_id, "blob").decode("utf-8", "surrogateescape")
        options.check_target(entry.path, "link", posixpath.dirname(entry.path), target)
        return "link", printable_path(target)
    return "", ""
