"""SourceContents: the files of a source, each read or skipped with a reason; and ReadOptions, what a reader is given."""

import errno
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

from pipeline.core.errors import ArchiveError
from pipeline.core.records import CommitEvidence, FileModification
from pipeline.lexing.languages import is_source
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection, is_license_evidence
from pipeline.stages.collect.params import CollectParams

DRIVE = re.compile(r"[A-Za-z]:")
"""Beginning of an absolute path on Windows."""


class Spill:
    """A file on disk without a name, which takes the bytes of a source while it is read: only their places are in memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 -- closed with the last place in it
        self._size = 0

    def put(self, content: bytes) -> "SpilledBytes":
        """Append bytes and return their place."""
        self._file.seek(self._size)
        self._file.write(content)
        place = SpilledBytes(self, self._size, len(content))
        self._size += len(content)
        return place

    def read(self, start: int, num_bytes: int) -> bytes:
        """Return the bytes of a place."""
        self._file.seek(start)
        return self._file.read(num_bytes)


@dataclass(frozen=True, slots=True)
class SpilledBytes:
    """Bytes on disk."""

    spill: Spill
    start: int
    num_bytes: int

    def read(self) -> bytes:
        """Return them."""
        return self.spill.read(self.start, self.num_bytes)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A source file or a file of license evidence, with its bytes, or their place on disk."""

    path: str
    held: bytes | SpilledBytes

    @property
    def content(self) -> bytes:
        """Its bytes."""
        return self.held.read() if isinstance(self.held, SpilledBytes) else self.held

    @property
    def num_bytes(self) -> int:
        """Their number."""
        return self.held.num_bytes if isinstance(self.held, SpilledBytes) else len(self.held)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not read. `reason` is `other_language`, `link`, `submodule`, `special`, `excluded`, `too_large`,
    `bad_line` or `withdrawn`; of a change of a file also one of `pipeline.stages.collect.repositories.changes`.
    """

    path: str
    num_bytes: int
    reason: str
    detail: str = ""
    """Target of a link, commit of a submodule, error of a line, or selector of a withdrawal."""
    content: bytes | None = None
    """Bytes of an `other_language` file of a source that is to be built; else None."""


@dataclass(frozen=True, slots=True)
class ReadVersion:
    """A version of a file that an earlier commit had at that path, with the id of its bytes in git."""

    path: str
    git_blob_id: str
    content: bytes


@dataclass(frozen=True)
class ReadChanges:
    """The changes of a source's files by its commits, each as a document or skipped, and what their licenses depend on.

    `versions` are the files before and after each change, and files of license evidence, of which
    `evidence` says at which commits they count.
    """

    files: tuple[ReadFile, ...]
    skipped: tuple[SkippedFile, ...]
    versions: tuple[ReadVersion, ...]
    evidence: tuple[CommitEvidence, ...]


@dataclass(frozen=True)
class SourceContents:
    """Every file and link of a source, either read or skipped, each sorted by path."""

    files: tuple[ReadFile, ...]
    skipped: tuple[SkippedFile, ...]
    history: tuple[FileModification, ...] | None = None
    """Modifications of the files if the pin has `history`."""
    changes: ReadChanges | None = None
    """The same as documents, and all others with their reasons, if the recipe asks for them."""

    @classmethod
    def of(cls, found: Iterable[ReadFile | SkippedFile]) -> "SourceContents":
        """Sort by path what was found; what has the same path stays in its order."""
        ordered = sorted(found, key=lambda item: item.path)
        files = tuple(item for item in ordered if isinstance(item, ReadFile))
        return cls(files, tuple(item for item in ordered if isinstance(item, SkippedFile)))


@dataclass(frozen=True)
class ReadOptions:
    """Settings for reading one source."""

    source: str
    """Name of the source, for error messages."""
    selection: Selection = field(default_factory=Selection)
    limits: CollectParams = field(default_factory=CollectParams)
    keeps_tree: bool = False
    """Keep the bytes of files in other languages: a source that is to be built needs them."""
    spill: Spill | None = None
    """Place of the bytes of files while a source is read; None: memory."""

    def read_file(self, path: str, content: bytes) -> ReadFile:
        """Return a file that was read, its bytes in memory or on disk."""
        return ReadFile(path, content if self.spill is None else self.spill.put(content))

    def reason_to_skip(self, path: str, num_bytes: int) -> str:
        """Return `other_language` or `too_large` for a regular file that is not read, else the empty string."""
        if not (is_source(path) or is_license_evidence(path)):
            return "other_language"
        return "too_large" if num_bytes > self.limits.max_file_bytes else ""

    def take(
        self, path: str, num_bytes: int, read: Callable[[], bytes], reason: str = "", detail: str = ""
    ) -> ReadFile | SkippedFile:
        """Read a file unless there is a reason to skip it, given or found here."""
        reason = reason or self.reason_to_skip(path, num_bytes)
        if not reason:
            return self.read_file(path, read())
        is_kept = self.keeps_tree and reason == "other_language" and num_bytes <= self.limits.max_file_bytes
        return SkippedFile(path, num_bytes, reason, detail, read() if is_kept else None)

    def refusal(self, name: str, found: str, expected: str) -> ArchiveError:
        """Return the error about a member or file of the source."""
        return ArchiveError(self.source, found, expected, LEAVE_OUT, member=_shown_member(name))

    def over_limit(self, name: str, found: str, limit: str) -> ArchiveError:
        """Return the error for a member or file of the source that exceeds a limit."""
        return over_limit(self.source, found, limit, _shown_member(name))

    def checked_path(self, name: str) -> str:
        """Return the path of a member, line or entry of a tree: printable, without `.` and empty parts.

        `name` may hold surrogates for bytes that are not UTF-8. The rule is the same for all kinds of sources; the path of the top
        folder is empty. Raises ArchiveError naming the member.
        """
        if flaw := _flaw_of_name(name):
            raise self.refusal(name, flaw, "a path inside the archive")
        num_bytes = len(name.encode("utf-8", "surrogateescape"))
        if num_bytes > self.limits.max_path_bytes:
            raise self.over_limit(name, f"its path has {num_bytes} bytes", f"{self.limits.max_path_bytes}")
        depth = name.replace("\\", "/").count("/")
        if depth > self.limits.max_depth:
            raise self.over_limit(name, f"is {depth} folders deep", f"{self.limits.max_depth}")
        return printable_path("/".join(part for part in name.split("/") if part not in ("", ".")))

    def checked_file_path(self, name: str, kind: str = "file") -> str:
        """Return the path of what is no folder. Raises ArchiveError for the name of a folder too."""
        path = self.checked_path(name)
        if not path or name.endswith(("/", "/.")):
            raise self.refusal(name, f"is a {kind} with the name of a folder", "a name")
        return path

    def check_target(self, name: str, kind: str, folder: str, target: str) -> None:
        """Raise ArchiveError for a link to what is not inside the source. `folder` is what its target is relative to."""
        plain = target.replace("\\", "/")
        reached = posixpath.normpath(posixpath.join(folder, plain))
        if plain.startswith("/") or DRIVE.match(plain) or reached.split("/")[0] == ".." or "\0" in plain:
            found = f"is a {kind} to {printable_path(target)[:200]!r}"
            raise self.refusal(name, found, "a target inside the archive")

    def refuse_clashes(self, paths: Iterable[str], folders: Iterable[str] = ()) -> None:
        """Raise ArchiveError if selected paths clash, or are folders as well. `exclude` takes one of them away."""
        seen = SeenPaths()
        clashes = [clash for path in paths if (clash := seen.clash(path))]
        clashes += {clash for folder in folders if (clash := seen.clash_of_folder(folder))}
        if clashes:
            found = "; ".join(sorted(clashes)[:_MAX_CLASHES]) + (f"; {len(clashes)} in all" if len(clashes) > 1 else "")
            raise ArchiveError(self.source, found, _APART, _EXCLUDE_ONE)


class SeenPaths:
    """The paths of a source so far. Two clash if they are equal once case is folded and characters are composed: some systems
    take them for one; and if one is below the other, which is a file. A file that is read clashes with readers that take a
    backslash for a slash, and with those that leave out `.git`.
    """

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def clash(self, *paths: str) -> str:
        """Return how one of the paths clashes with an earlier one, or the empty string: then all of them are kept."""
        found = next((clash for path in paths if (clash := self._clash(path))), "")
        for path in () if found else paths:
            folded = _folded(path)
            self._files[folded] = path
            self._folders.update((above, path) for above in _folders_of(folded))
        return found

    def clash_of_folder(self, folder: str) -> str:
        """Return how a folder, or one above it, clashes with a file, or the empty string."""
        folded = _folded(folder)
        above = next((above for above in (folded, *_folders_of(folded)) if above in self._files), None)
        return "" if above is None else f"{self._files[above]!r} is a folder too"

    def _clash(self, path: str) -> str:
        folded = _folded(path)
        if is_source(path) or is_license_evidence(path):
            if "\\\\" in path:
                return f"{path!r} holds a backslash, which some readers take for a slash"
            if ".git" in folded.split("/"):
                return f"{path!r} is within `.git`, which is no part of a source"
        if folded in self._files:
            one, other = sorted([self._files[folded], path])
            return f"{one!r} and {other!r} collide"
        if folded in self._folders:
            return _below(self._folders[folded], path)
        above = next((above for above in _folders_of(folded) if above in self._files), None)
        return "" if above is None else _below(path, self._files[above])


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _folders_of(path: str) -> list[str]:
    return [path[:at] for at, character in enumerate(path) if character == "/"]


def _below(path: str, file: str) -> str:
    return f"{path!r} is below {file!r}, which is not a folder"


def _shown_member(name: str) -> str:
    return repr(printable_path(name)[:200])


def over_limit(subject: str, found: str, limit: str, member: str = "") -> ArchiveError:
    """Return the error for a source, or a member of it, that exceeds a limit."""
    remedy = "Exclude this source, or raise the limit if you trust it."
    return ArchiveError(subject, found, f"at most {limit}", remedy, member=member)


def broken(subject: str, found: str) -> ArchiveError:
    """Return the error for an archive whose bytes are invalid."""
    remedy = "Check the pinned digest; choose another release."
    return ArchiveError(subject, f"is broken ({found})", "a complete tar or zip archive", remedy)


def is_of_disk(error: Exception) -> bool:
    """Return whether an error is one of the system, other than that bytes name a place outside of themselves (EINVAL)."""
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)


LEAVE_OUT = "The source is not used; choose another release or leave it out."
_APART = "paths that differ in more than case, each in a folder, without backslashes"
_EXCLUDE_ONE = "The source is not used; name each, or one of each two, in the pin's `exclude`."
_MAX_CLASHES = 5


def _flaw_of_name(name: str) -> str:
    """Return how a member's name leaves its archive, or the empty string. A backslash counts as a separator."""
    parts = name.replace("\\", "/").split("/")
    if not name:
        return "has no name"
    if "\0" in name:
        return "has a NUL in its name"
    if drive := DRIVE.match(name):
        return f"has an absolute path, of the drive `{drive[0]}`"
    if parts[0] == "":
        return "has an absolute path"
    return "leaves the archive through `..`" if ".." in parts else ""
