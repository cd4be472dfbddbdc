"""What an archive holds for us, read as a stream and judged name by name. Nothing is extracted, followed or executed.

`tarfile`'s own extraction filter is not relied on: it has known bypasses, and it mends what should be refused.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.collect.archives.containers import Member, members_of, over_limit, refusing_broken
from pipeline.collect.params import CollectParams
from pipeline.core.errors import ArchiveError
from pipeline.core.languages import is_source
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection, is_license_evidence

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A C/C++ file or a piece of license evidence, with its bytes."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A member that was not read. `reason` is `other_language`, `link`, `submodule`, `special`, `excluded`, `too_large`,
    or `bad_line`.
    """

    path: str
    num_bytes: int
    reason: str
    detail: str = ""
    """Where a link leads, which commit a submodule is at, or what is wrong with a line."""
    content: bytes | None = None
    """The bytes of an `other_language` file where the source is to be built; else None."""


@dataclass(frozen=True)
class Contents:
    """Every file and link of a source, either read or skipped, each sorted by path."""

    files: tuple[ReadFile, ...]
    skipped: tuple[SkippedFile, ...]


def unpack(
    archive: Path, selection: Selection, limits: CollectParams, subject: str, keeps_tree: bool = False
) -> Contents:
    """The contents of a tar (plain, gzip, xz, bzip2) or zip archive; paths count from its top folder if it has one.

    Only C/C++ and license evidence are read. Raises ArchiveError naming `subject` and the member: for paths and links
    that leave the archive, devices, paths that collide, anything over the limits, and a container that is broken,
    truncated or has a tail. With `keeps_tree` the files in other languages keep their bytes.
    """
    with refusing_broken(subject):
        members = list(_read_members(archive, limits, subject, keeps_tree))
    _refuse_collisions([member.path for member in members], subject)
    top = _top_folder(member.path for member in members)
    inside = [replace(member, path=member.path[len(top) :]) for member in members]
    wanted = [_select(member, selection) for member in inside]
    wanted.sort(key=lambda member: member.path)
    return Contents(
        tuple(member for member in wanted if isinstance(member, ReadFile)),
        tuple(member for member in wanted if isinstance(member, SkippedFile)),
    )


def reason_to_skip(path: str, num_bytes: int, limits: CollectParams) -> str:
    """Why a regular file is not read, or the empty string: `other_language` by its name, `too_large` by its size."""
    if not (is_source(path) or is_license_evidence(path)):
        return "other_language"
    return "too_large" if num_bytes > limits.max_file_bytes else ""


def keeps_content(reason: str, num_bytes: int, limits: CollectParams) -> bool:
    """Whether a file that is not read as source is kept for building it, where the source is to be built."""
    return reason == "other_language" and num_bytes <= limits.max_file_bytes


def flaw_of_path(path: str, limits: CollectParams) -> str:
    """What is wrong with a path that stands for itself, without an archive around it; the empty string where nothing is."""
    parts = path.replace("\\", "/").split("/")
    num_bytes = len(path.encode("utf-8", "surrogateescape"))
    if num_bytes > limits.max_path_bytes or len(parts) - 1 > limits.max_depth:
        return f"has {num_bytes} bytes and lies {len(parts) - 1} folders deep"
    return _flaw(path, parts) or ("has an empty part" if {"", "."} & set(parts) else "")


def _read_members(
    archive: Path, limits: CollectParams, subject: str, keeps_tree: bool
) -> Iterator[ReadFile | SkippedFile]:
    total_bytes = 0
    for number, member in enumerate(members_of(archive, limits, subject), start=1):
        if number > limits.max_members:
            raise over_limit(subject, f"has more members than {limits.max_members}", f"{limits.max_members} members")
        where = f"{subject}: {printable_path(member.name)[:200]!r}"
        path = _judge_name(member.name, where, limits)
        total_bytes += member.num_bytes
        if total_bytes > limits.max_total_bytes:
            found = f"declares {member.num_bytes} bytes, {total_bytes} with the members before it"
            raise over_limit(where, found, f"{limits.max_total_bytes} bytes in all")
        if member.kind != "folder":
            file = _read_member(member, path, where, limits)
            if keeps_tree and isinstance(file, SkippedFile) and keeps_content(file.reason, file.num_bytes, limits):
                file = replace(file, content=member.read())
            yield file


def _read_member(member: Member, path: str, where: str, limits: CollectParams) -> ReadFile | SkippedFile:
    if member.kind in ("link", "hard link"):
        _judge_link(member, path, where)
        return SkippedFile(path, member.num_bytes, "link", printable_path(member.target))
    if member.kind != "file":
        raise ArchiveError(where, f"is a {member.kind}", "files, folders and links only", _CHOOSE_ANOTHER)
    reason = reason_to_skip(path, member.num_bytes, limits)
    if reason:
        return SkippedFile(path, member.num_bytes, reason)
    return ReadFile(path, member.read())


def _judge_name(name: str, where: str, limits: CollectParams) -> str:
    """The member's path, printable, without `.` and empty parts. A backslash is judged as the separator it may be."""
    parts = name.replace("\\", "/").split("/")
    flaw = _flaw(name, parts)
    if flaw:
        raise ArchiveError(where, flaw, "a path inside the archive", _CHOOSE_ANOTHER)
    num_bytes = len(name.encode("utf-8", "surrogateescape"))
    if num_bytes > limits.max_path_bytes:
        raise over_limit(where, f"its path has {num_bytes} bytes", f"{limits.max_path_bytes}")
    if len(parts) - 1 > limits.max_depth:
        raise over_limit(where, f"lies {len(parts) - 1} folders deep", f"{limits.max_depth}")
    return printable_path("/".join(part for part in name.split("/") if part not in ("", ".")))


def _flaw(name: str, parts: list[str]) -> str:
    if not name:
        return "has no name"
    if "\0" in name:
        return "has a NUL in its name"
    if parts[0] == "" or _DRIVE.match(name):
        return "has an absolute path"
    return "leaves the archive through `..`" if ".." in parts else ""


def _judge_link(member: Member, path: str, where: str) -> None:
    """A hard link's target counts from the archive's root, a symbolic link's from the folder of the link."""
    base = posixpath.dirname(path) if member.kind == "link" else ""
    target = member.target.replace("\\", "/")
    reached = posixpath.normpath(posixpath.join(base, target))
    if target.startswith("/") or _DRIVE.match(target) or reached.split("/")[0] == ".." or "\0" in target:
        found = f"is a {member.kind} to {printable_path(member.target)[:200]!r}"
        raise ArchiveError(where, found, "a target inside the archive", _CHOOSE_ANOTHER)


def _refuse_collisions(paths: list[str], subject: str) -> None:
    """Refuse paths that are the same where case is folded or characters composed, and a file that is a folder too."""
    seen: dict[str, str] = {}
    for path in paths:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        if folded in seen:
            pair = sorted([seen[folded], path])
            found = f"{pair[0]!r} and {pair[1]!r} collide"
            raise ArchiveError(subject, found, "paths that differ in more than case", _CHOOSE_ANOTHER)
        seen[folded] = path
    for folded, path in seen.items():
        above = next((parent for parent in _parents(folded) if parent in seen), None)
        if above is not None:
            found = f"{path!r} lies below {seen[above]!r}, which is no folder"
            raise ArchiveError(subject, found, "a tree", _CHOOSE_ANOTHER)


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _top_folder(paths: Iterable[str]) -> str:
    """`name/` when all paths lie in that folder, else the empty string."""
    tops = {path.partition("/")[0] + "/" if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


def _select(member: ReadFile | SkippedFile, selection: Selection) -> ReadFile | SkippedFile:
    if selection.accepts(member.path):
        return member
    num_bytes = len(member.content) if isinstance(member, ReadFile) else member.num_bytes
    return SkippedFile(member.path, num_bytes, "excluded")


_CHOOSE_ANOTHER = "The archive is not used; choose another release or leave this source out."
