"""CommitChange: what a commit did to a file of source code, and the reasons for which that may be no document, as git says it.

Histories are listed by code of their own, as names are: hunks are counted by their heads, and no rename is searched. Beside the
changes stand the files about licenses that a commit had otherwise than the pinned one.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pipeline.stages.collect.repositories.command import run_git, stream_git

_MOST_FILES = 5
_SMALLEST, _LARGEST = 50, 50_000
_ROUTINE = re.compile(r"format|style|fmt|uncrustify|white|indent|bump|version|release|^v?\d", re.IGNORECASE)
"""Words without which no subject says that code was formatted or a version raised. One with them need not say it."""
_OF_LICENSES = re.compile(
    rb"(?:^|/)(?:licen[cs]e|copying|unlicense|notice|eula|readme)[^/]*$|(?:^|/)LICENSES/|\.license$|/?PKG-INFO$|REUSE\.toml$|\.reuse/dep5$",
    re.IGNORECASE,
)
"""Names of files about licenses, and of some others."""
_HEAD = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FULL_IDS = re.compile(rb"index ([0-9a-f]{40,64})\.\.([0-9a-f]{40,64})")
_MARK = b"//@@ "
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_PATCH_OPTIONS = """
    -U3 -p --full-index --no-renames --diff-filter=M --diff-algorithm=myers --no-indent-heuristic
    --inter-hunk-context=0 --no-ext-diff --no-textconv --no-color --src-prefix=a/ --dst-prefix=b/
"""
_PATCH = tuple(_PATCH_OPTIONS.split())


class CommitChange(NamedTuple):
    """Change of one file by one commit, with what git says of the commit."""

    commit: str
    name: bytes
    parents: tuple[str, ...]
    author_time: int
    commit_time: int
    subject_sha256: str
    old_blob_id: str
    new_blob_id: str
    num_diff_chars: int
    reasons: tuple[str, ...]
    """The reasons for which it may be no document, as far as this code knows; none for one that must be."""


class CommitFile(NamedTuple):
    """A file about licenses that a commit has otherwise than the pinned one: no id and no size where it has none."""

    commit: str
    name: bytes
    git_blob_id: str | None
    num_bytes: int | None


@dataclass(frozen=True)
class _CommitFacts:
    parents: tuple[str, ...]
    author_time: int
    commit_time: int
    subject: str


@dataclass(frozen=True)
class _Entry:
    """A line of `git diff-tree --raw`. An id of what is not there is all zeros."""

    name: bytes
    status: bytes
    modes: tuple[bytes, bytes]
    old_blob_id: str
    new_blob_id: str

    @property
    def is_modified(self) -> bool:
        is_regular = all(mode.startswith(b"100") for mode in self.modes)
        return self.status == b"M" and is_regular and self.old_blob_id != self.new_blob_id


@dataclass
class _Hunks:
    """The hunks of one file in one commit: how many characters they have, and the lines of both sides of each."""

    num_chars: int = 0
    sides: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))


def list_changes(repository: Path, commit: str, suffixes: Collection[bytes]) -> Iterator[CommitChange]:
    """Yield what each commit without a second parent that leads to `commit` did to each file with one of the suffixes."""
    commits = _commits(repository, commit)
    entries = _entries(repository, [each for each, facts in commits.items() if len(facts.parents) < 2], suffixes)
    read = [name for name, found in entries.items() if _num_left(found) <= _MOST_FILES]
    hunks = _hunks(repository, read, {each.name for name in read for each in entries[name]})
    for name, found in entries.items():
        facts = commits[name]
        for entry in found:
            of_file = hunks.get((name, entry.old_blob_id, entry.new_blob_id), _Hunks())
            reasons = _reasons(facts, entry, found, of_file)
            sha256 = hashlib.sha256(facts.subject.encode("utf-8", "surrogateescape")).hexdigest()
            times, ids = (facts.author_time, facts.commit_time), (entry.old_blob_id, entry.new_blob_id)
            yield CommitChange(name, entry.name, facts.parents, *times, sha256, *ids, of_file.num_chars, reasons)


def list_license_files(repository: Path, commit: str, commits: Collection[str]) -> Iterator[CommitFile]:
    """Yield the files about licenses that each of these commits has otherwise than the pinned one."""
    found = list(_differing(repository, commit, sorted(set(commits) - {commit})))
    ids = sorted({each.git_blob_id for each in found if each.git_blob_id is not None})
    lines = run_git(repository, ["cat-file", "--batch-check"], ids).decode().splitlines() if ids else []
    sizes = {line.split()[0]: int(line.split()[2]) for line in lines if line.split()[1] == "blob"}
    yield from (each._replace(num_bytes=sizes.get(each.git_blob_id or "")) for each in found)


def _commits(repository: Path, commit: str) -> dict[str, _CommitFacts]:
    """Return the commits that lead to one, with their facts."""
    form = "--format=tformat:%H%x00%P%x00%at%x00%ct%x00%s"
    log = ["log", "--encoding=UTF-8", "--no-show-signature", form, commit]
    found = {}
    for line in run_git(repository, log).split(b"\n")[:-1]:
        name, parents, author_time, commit_time, subject = line.decode("utf-8", "replace").split("\0", 4)
        found[name] = _CommitFacts(tuple(parents.split()), _seconds(author_time), _seconds(commit_time), subject)
    return found


def _seconds(text: str) -> int:
    """Return a time of git; zero for none, and for one that no table holds."""
    try:
        found = int(text)
    except ValueError:
        return 0
    return found if -(2**62) < found < 2**62 else 0


def _entries(repository: Path, commits: Sequence[str], suffixes: Collection[bytes]) -> dict[str, list[_Entry]]:
    """Return what each commit did to files with one of the suffixes."""
    found: defaultdict[str, list[_Entry]] = defaultdict(list)
    for commit, entry in _raw_entries(repository, ["--root"], commits):
        suffix = _suffix(entry.name)
        if suffix in suffixes or suffix.lower() in suffixes:
            found[commit].append(entry)
    return dict(found)


def _raw_entries(repository: Path, options: Sequence[str], lines: Sequence[str]) -> Iterator[tuple[str, _Entry]]:
    """Yield what `git diff-tree --raw` prints of each commit, or of each with others as its parents: commit and entry."""
    raw = ["diff-tree", "--stdin", "-r", "--raw", "-z", "--no-abbrev", "--no-renames", *options]
    at, facts = "", list[bytes]()
    for token in run_git(repository, raw, lines).split(b"\0") if lines else ():
        if facts:
            old_mode, new_mode, old, new, status = facts
            yield at, _Entry(token, status, (old_mode, new_mode), old.decode(), new.decode())
            facts = []
        elif token.startswith(b":"):
            facts = token[1:].split(b" ")
        elif token.strip():
            at = token.split()[0].decode()


def _suffix(name: bytes) -> bytes:
    last = name.rpartition(b"/")[2].lstrip(b".")
    return last[last.rindex(b".") :] if b"." in last else b""


def _num_left(entries: Sequence[_Entry]) -> int:
    """Return how many of the files of a commit are there after it. Of a renamed one another entry says that it went."""
    return sum(each.status != b"D" for each in entries)


def _reasons(facts: _CommitFacts, entry: _Entry, entries: Sequence[_Entry], hunks: _Hunks) -> tuple[str, ...]:
    """Return the reasons for which a change may be no document. A commit that renames files may be called large or not."""
    if not facts.parents or not entry.is_modified:
        return ("not_modified",)
    found = ["routine_commit"] if _ROUTINE.search(facts.subject) else []
    found += ["large_commit"] if len(entries) > _MOST_FILES else []
    if _num_left(entries) > _MOST_FILES:
        return tuple(found)
    if not hunks.num_chars:
        return (*found, "binary_change")
    if hunks.num_chars < _SMALLEST:
        return (*found, "small_change")
    if hunks.num_chars > _LARGEST:
        return (*found, "large_change")
    return (*found, *_flaws(facts.subject, hunks))


def _flaws(subject: str, hunks: _Hunks) -> Iterator[str]:
    before, after = (b"".join(side).replace(b"\r\n", b"\n").replace(b"\r", b"\n") for side in hunks.sides)
    if before == after:
        yield "line_end_change"
    if "\r" in subject or any((b"\n" + side).find(b"\n" + _MARK) >= 0 for side in (before, after)):
        yield "marked_change"
    try:
        (before + after).decode("utf-8")
    except UnicodeDecodeError:
        yield "undecodable_change"
    else:
        if _REPLACED in subject:
            yield "undecodable_change"


def _hunks(repository: Path, commits: Sequence[str], names: Collection[bytes]) -> Mapping[tuple[str, str, str], _Hunks]:
    """Return the hunks of the files that commits modified, by commit and the ids before and after."""
    found: dict[tuple[str, str, str], _Hunks] = {}
    if not commits:
        return found
    globs = sorted({f":(glob,icase)**/*{_suffix(name).decode('utf-8', 'replace')}" for name in names})
    with stream_git(repository, ["diff-tree", "--stdin", "-r", *_PATCH, "--", *globs], commits) as output:
        at, hunks = "", _Hunks()
        for line in output:
            if named := _FULL_IDS.match(line):
                hunks = _Hunks()
                found.setdefault((at, named[1].decode(), named[2].decode()), hunks)
            elif head := _HEAD.match(line):
                hunks.num_chars += _num_chars(line)
                _read_hunk(output, [int(head[1] or 1), int(head[2] or 1)], hunks)
            elif line.startswith(b"\\"):
                hunks.num_chars += _num_chars(line)
            elif re.fullmatch(rb"[0-9a-f]{40,64}\n", line):
                at = line.decode().strip()
    return found


def _read_hunk(output: BinaryIO, left: list[int], hunks: _Hunks) -> None:
    """Read as many lines of a hunk as its head says that both sides have."""
    while any(left):
        line = output.readline()
        if not line:
            return
        hunks.num_chars += _num_chars(line)
        for side, other in enumerate((b"+", b"-")):
            if not line.startswith((other, b"\\")):
                left[side] -= 1
                hunks.sides[side].append(line[1:])


def _num_chars(line: bytes) -> int:
    return len(line.decode("utf-8", "replace"))


def _differing(repository: Path, commit: str, commits: Sequence[str]) -> Iterator[CommitFile]:
    for at, entry in _raw_entries(repository, [], [f"{each} {commit}" for each in commits]):
        if _OF_LICENSES.search(entry.name):
            is_regular = entry.modes[1].startswith(b"100")
            yield CommitFile(at, entry.name, entry.new_blob_id if is_regular else None, None)
