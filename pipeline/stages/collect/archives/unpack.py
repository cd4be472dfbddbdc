"""Reading of archives: which members are files of the source. Nothing is extracted to disk, followed or executed.

`tarfile`'s own extraction filter is not used: it has known bypasses, and it repairs what should be refused.
"""

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection
from pipeline.stages.collect.archives.containers import Member, members_of, refusing_broken
from pipeline.stages.collect.contents import (
    ReadFile,
    ReadOptions,
    SkippedFile,
    SourceContents,
    over_limit,
)


def unpack(archive: Path, options: ReadOptions) -> SourceContents:
    """Read a tar (plain, gzip, xz, bzip2) or zip archive; paths are relative to its top folder if it has one.

    Only source files and license evidence are read. Raises ArchiveError naming the source and the member: for paths and links
    that leave the archive, devices, paths that collide, anything over the limits, and a container that is broken,
    truncated or continues after its end.
    """
    folders: set[str] = set()
    with refusing_broken(options.source):
        members = list(_read_members(archive, options, folders))
    top = _top_folder(member.path for member in members)
    selection = options.selection
    selected = (member.path for member in members if selection.accepts(member.path[len(top) :]))
    options.refuse_clashes(selected, sorted(folders))
    inside = [replace(member, path=member.path[len(top) :]) for member in members]
    return SourceContents.of(_select(member, selection) for member in inside)


def _read_members(archive: Path, options: ReadOptions, folders: set[str]) -> Iterator[ReadFile | SkippedFile]:
    """Read or skip the members that are no folders; `folders` receives the paths of those that are."""
    limits = options.limits
    total_bytes = 0
    files: set[str] = set()
    for number, member in enumerate(members_of(archive, limits, options.source), start=1):
        if number > limits.max_members:
            found = f"has more members than {limits.max_members}"
            raise over_limit(options.source, found, f"{limits.max_members} members")
        total_bytes += member.num_bytes
        if total_bytes > limits.max_total_bytes:
            found = f"declares {member.num_bytes} bytes, {total_bytes} with the members before it"
            raise options.over_limit(member.name, found, f"{limits.max_total_bytes} bytes in all")
        if member.kind == "folder":
            folders.add(options.checked_path(member.name))
            continue
        path = options.checked_file_path(member.name, member.kind)
        yield _read_member(member, path, files, options)
        files.add(path)


def _read_member(member: Member, path: str, files: set[str], options: ReadOptions) -> ReadFile | SkippedFile:
    """Read a member, or skip it with its reason. `files` are the paths of the members before it."""
    if member.kind in ("link", "hard link"):
        _check_link(member, path, files, options)
        return SkippedFile(path, member.num_bytes, "link", printable_path(member.target))
    if member.kind != "file":
        article = "an" if member.kind[0] in "aeiou" else "a"
        raise options.refusal(member.name, f"is {article} {member.kind}", "files, folders and links only")
    return options.take(path, member.num_bytes, member.read)


def _check_link(member: Member, path: str, files: set[str], options: ReadOptions) -> None:
    """Raise ArchiveError for a link that leaves the archive, and for a hard link to no member before it."""
    # A hard link's target is relative to the archive's root, a symbolic link's to the folder of the link.
    base = posixpath.dirname(path) if member.kind == "link" else ""
    options.check_target(member.name, member.kind, base, member.target)
    if member.kind == "hard link" and printable_path(posixpath.normpath(member.target)) not in files:
        found = f"is a hard link to {printable_path(member.target)[:200]!r}"
        raise options.refusal(member.name, found, "a member before it")


def _top_folder(paths: Iterable[str]) -> str:
    """Return `name/` if all paths are in that folder, else the empty string."""
    tops = {path.partition("/")[0] + "/" if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


def _select(member: ReadFile | SkippedFile, selection: Selection) -> ReadFile | SkippedFile:
    if selection.accepts(member.path):
        return member
    return SkippedFile(member.path, member.num_bytes, "excluded")
