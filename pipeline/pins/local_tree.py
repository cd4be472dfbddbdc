"""Local trees: the sorted files of a folder on this machine, and one digest over all of them.

`.git` is skipped at any depth, since it changes while the files of the checkout stay the same. Nothing else is: the pin has
to exclude a build folder or a virtual environment. Links are never followed.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from urllib.parse import quote_from_bytes

from pipeline.core.errors import DigestError, SourceError
from pipeline.pins.selection import Selection

# Control characters, and characters that change the direction of text or break a line.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """An entry of a folder."""

    path: str
    """Relative to the root, as `printable_path` returns it."""
    local_path: Path
    num_bytes: int
    mode: str
    """Mode as in git: 100644, 100755, or 120000 of a link; of a special file the type alone, as 010000 of a FIFO."""
    skipped: str = ""
    """Kind of a file that is not regular and therefore not read: `link` or `special`."""
    target: str = ""
    """Target of a link, as `printable_path` returns it."""

    def read(self) -> bytes:
        """Read the bytes of the file. Raises SourceError."""
        with self._open() as file:
            return file.read()

    def sha256(self) -> str:
        """Return the SHA-256 of a file of any size, in hex; of a link that of its target, of a special file that of nothing.

        Raises SourceError.
        """
        if self.skipped:
            return hashlib.sha256(self.target.encode()).hexdigest()
        with self._open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def _open(self) -> Iterator[BufferedReader]:
        # If the file became a link or a FIFO since it was listed, it is neither followed nor waited for.
        try:
            with open(os.open(self.local_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                yield file
        except OSError as error:
            raise _unreadable(self.local_path, error) from error


def tree_entries(root: Path, selection: Selection) -> list[TreeEntry]:
    """List the selected files, links and special files of a folder, sorted by path. Raises SourceError."""
    if not root.is_dir():
        found = "is not a folder" if root.exists() else "is not there"
        raise SourceError(str(root), found, "the root of a source tree", "Correct the pin's `path`.")
    entries = (_entry(root, path) for path in _walk(root))
    return sorted((entry for entry in entries if selection.accepts(entry.path)), key=lambda entry: entry.path)


def tree_digest(root: Path, selection: Selection | None = None) -> str:
    """Return the SHA-256 over the sorted lines `mode path sha256` of what is selected, NUL between the three and at each end.

    Links and special files count as files do, by name, type and target. Times, owners and empty folders do not count. Raises
    SourceError for a file that cannot be read.
    """
    entries = tree_entries(root, selection or Selection())
    return combine_digests((entry, entry.sha256()) for entry in entries)


def combine_digests(entries: Iterable[tuple[TreeEntry, str]]) -> str:
    """Return the digest of a tree from its entries, in order, and the sha256 of each."""
    total = hashlib.sha256()
    for entry, sha256 in entries:
        total.update(f"{entry.mode}\0{entry.path}\0{sha256}\0".encode())
    return total.hexdigest()


def check_tree(source: str, found: str, pinned: str) -> None:
    """Raise DigestError, with the digest to paste, unless a tree has the pinned digest."""
    if found != pinned:
        remedy = f'Review what changed, then write digest = "{found}" into the pin.'
        raise DigestError(source, f"its tree has the digest {found}", pinned, remedy)


def printable_path(name: str) -> str:
    """Escape a name reversibly so that it can be stored and printed: backslashes doubled, bytes that are not UTF-8 as `\\xNN`.

    Control characters, and those that change the direction of text, are escaped too: a name cannot control a terminal.
    """
    text = name.replace("\\", "\\\\").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match[0].encode()), text)


def encoded_name(path: str) -> str:
    """Return the name that was escaped to a printable path, percent-encoded, as listings write it."""
    text = path.encode("utf-8", "surrogateescape")
    return quote_from_bytes(_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else b"\\", text))


def _walk(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise _unreadable(Path(error.filename or root), error)

    for folder, subfolders, names in os.walk(root, onerror=refuse):
        links = [name for name in subfolders if os.path.islink(os.path.join(folder, name))]
        subfolders[:] = [name for name in subfolders if name != ".git"]
        yield from (Path(folder, name) for name in names + links if name != ".git")


def _entry(root: Path, path: Path) -> TreeEntry:
    try:
        status = path.lstat()
        target = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    except OSError as error:
        raise _unreadable(path, error) from error
    skipped = "link" if stat.S_ISLNK(status.st_mode) else "" if stat.S_ISREG(status.st_mode) else "special"
    mode = f"{stat.S_IFMT(status.st_mode):06o}"
    if not skipped:
        mode = "100755" if status.st_mode & stat.S_IXUSR else "100644"
    name = printable_path(path.relative_to(root).as_posix())
    return TreeEntry(name, path, status.st_size, mode, skipped, printable_path(target))


def _unreadable(path: Path, error: OSError) -> SourceError:
    subject, remedy = printable_path(str(path)), "Correct its permissions, or move it out of the folder."
    return SourceError(subject, f"cannot be read ({error.strerror})", "a readable file", remedy)
