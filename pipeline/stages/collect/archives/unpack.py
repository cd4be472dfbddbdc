"""Reading of archives: which members are files of the source. Nothing is extracted to disk, followed or executed.

`tarfile`'s own extraction filter is not used: it has known bypasses, and it repairs what should be refused.
"""

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pipeline.core.errors import ArchiveError
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection
from pipeline.stages.collect.archives.containers import Member, members_of, refusing_broken
from pipeline.stages.collect.contents import (
    DRIVE,
    ReadFile,
    ReadOptions,
    SkippedFile,
    SourceContents,
    flaw_of_name,
    over_limit,
)


def unpack(archive: Path, options: ReadOptions) -> SourceContents:
    """Read a tar (plain, gzip, xz, bzip2) or zip archive; paths are relative to its top folder if it has one.

    Only source files and license evidence are read. Raises ArchiveError naming the source and the member: for paths and links
    that leave the archive, devices, paths that collide, anything over the limits, and a container that is broken,
    truncated or continues after its end.
    """
    with refusing_broken(options.source):
        members = list(_read_members(archive, options))
    _refuse_collisions([member.path for member in members], options.source)
    top = _top_folder(member.path for member in members)
    inside = [replace(member, path=member.path[len(top) :]) for member in members]
    return SourceContents.of(_select(member, options.selection) for member in inside)


def _read_members(archive: Path, options: ReadOptions) -> Iterator[ReadFile | SkippedFile]:
    source, limits = options.source, options.limits
    total_bytes = 0
    for number, member in enumerate(members_of(archive, limits, source), start=1):
        if number > limits.max_members:
            raise over_limit(source, f"has more members than {limits.max_members}", f"{limits.max_members} members")
        subject = f"{source}: {printable_path(member.name)[:200]!r}"
        path = _check_name(member.name, subject, options)
        total_bytes += member.num_bytes
        if total_bytes > limits.max_total_bytes:
            found = f"declares {member.num_bytes} bytes, {total_bytes} with the members before it"
            raise over_limit(subject, found, f"{limits.max_total_bytes} bytes in all")
        if member.kind != "folder":
            yield _read_member(member, path, subject, options)


def _read_member(member: Member, path: str, subject: str, options: ReadOptions) -> ReadFile | SkippedFile:
    if member.kind in ("link", "hard link"):
        _check_link(member, path, subject)
        return SkippedFile(path, member.num_bytes, "link", printable_path(member.target))
    if member.kind != "file":
        raise ArchiveError(subject, f"is a {member.kind}", "files, folders and links only", _CHOOSE_ANOTHER)
    return options.take(path, member.num_bytes, member.read)


def _check_name(name: str, subject: str, options: ReadOptions) -> str:
    """Return the member's path, printable, without `.` and empty parts. Raises ArchiveError."""
    flaw = flaw_of_name(name)
    if flaw:
        raise ArchiveError(subject, flaw, "a path inside the archive", _CHOOSE_ANOTHER)
    depth = name.replace("\\", "/").count("/")
    options.check_path(subject, len(name.encode("utf-8", "surrogateescape")), depth)
    return printable_path("/".join(part for part in name.split("/") if part not in ("", ".")))


def _check_link(member: Member, path: str, subject: str) -> None:
    # A hard link's target is relative to the archive's root, a symbolic link's to the folder of the link.
    base = posixpath.dirname(path) if member.kind == "link" else ""
    target = member.target.replace("\\", "/")
    reached = posixpath.normpath(posixpath.join(base, target))
    if target.startswith("/") or DRIVE.match(target) or reached.split("/")[0] == ".." or "\0" in target:
        found = f"is a {member.kind} to {printable_path(member.target)[:200]!r}"
        raise ArchiveError(subject, found, "a target inside the archive", _CHOOSE_ANOTHER)


def _refuse_collisions(paths: list[str], subject: str) -> None:
    """Raise ArchiveError for paths that are equal once case is folded and characters are composed, and for a path below a file."""
    seen: dict[str, str] = {}
    for path in paths:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        if folded in seen:
            pair = sorted([seen[folded], path])
            found = f"{pair[0]!r} and {pair[1]!r} collide"
            raise ArchiveError(subject, found, "paths that differ in more than case", _CHOOSE_ANOTHER)
        seen[folded] = path
    for folded, path in seen.items():
        above = next((str(parent) for parent in PurePosixPath(folded).parents if str(parent) in seen), None)
        if above is not None:
            found = f"{path!r} is below {seen[above]!r}, which is not a folder"
            raise ArchiveError(subject, found, "a tree", _CHOOSE_ANOTHER)


def _top_folder(paths: Iterable[str]) -> str:
    """Return `name/` if all paths are in that folder, else the empty string."""
    tops = {path.partition("/")[0] + "/" if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


def _select(member: ReadFile | SkippedFile, selection: Selection) -> ReadFile | SkippedFile:
    if selection.accepts(member.path):
        return member
    num_bytes = len(member.content) if isinstance(member, ReadFile) else member.num_bytes
    return SkippedFile(member.path, num_bytes, "excluded")


_CHOOSE_ANOTHER = "The archive is not used; choose another release or leave this source out."
