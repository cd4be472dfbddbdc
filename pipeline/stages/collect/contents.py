"""SourceContents: the files of a source, each read or skipped with a reason; and ReadOptions, what a reader is given."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pipeline.core.errors import ArchiveError
from pipeline.core.languages import is_source
from pipeline.core.records import FileModification
from pipeline.pins.selection import Selection, is_license_evidence
from pipeline.stages.collect.params import CollectParams

DRIVE = re.compile(r"[A-Za-z]:")
"""Beginning of an absolute path on Windows."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A source file or a file of license evidence, with its bytes."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not read. `reason` is `other_language`, `link`, `submodule`, `special`, `excluded`, `too_large`,
    `bad_line` or `withdrawn`.
    """

    path: str
    num_bytes: int
    reason: str
    detail: str = ""
    """Target of a link, commit of a submodule, error of a line, or selector of a withdrawal."""
    content: bytes | None = None
    """Bytes of an `other_language` file of a source that is to be built; else None."""


@dataclass(frozen=True)
class SourceContents:
    """Every file and link of a source, either read or skipped, each sorted by path."""

    files: tuple[ReadFile, ...]
    skipped: tuple[SkippedFile, ...]
    history: tuple[FileModification, ...] | None = None
    """Modifications of the files if the pin has `history`."""

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
            return ReadFile(path, read())
        is_kept = self.keeps_tree and reason == "other_language" and num_bytes <= self.limits.max_file_bytes
        return SkippedFile(path, num_bytes, reason, detail, read() if is_kept else None)

    def check_path(self, subject: str, num_bytes: int, depth: int) -> None:
        """Raise ArchiveError about `subject` if the path of a member is too long or too deep."""
        if num_bytes > self.limits.max_path_bytes:
            raise over_limit(subject, f"its path has {num_bytes} bytes", f"{self.limits.max_path_bytes}")
        if depth > self.limits.max_depth:
            raise over_limit(subject, f"is {depth} folders deep", f"{self.limits.max_depth}")


def over_limit(subject: str, found: str, limit: str) -> ArchiveError:
    """Return the error for a source, or a member of it, that exceeds a limit."""
    remedy = "Exclude this source, or raise the limit if you trust it."
    return ArchiveError(subject, found, f"at most {limit}", remedy)


def flaw_of_name(name: str) -> str:
    """Return how a member's name leaves its archive, or the empty string. A backslash counts as a separator."""
    parts = name.replace("\\", "/").split("/")
    if not name:
        return "has no name"
    if "\0" in name:
        return "has a NUL in its name"
    if parts[0] == "" or DRIVE.match(name):
        return "has an absolute path"
    return "leaves the archive through `..`" if ".." in parts else ""
