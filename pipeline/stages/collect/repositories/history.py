"""CommitHistory of the files of a commit: for each file the chain of its modifications, oldest first.

An accepted commit has one parent, touches few source files, and neither formats nor bumps a version; an accepted modification
has a diff within two bounds. The index of a chain counts accepted modifications only, so it has no gaps.
"""

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from graphlib import TopologicalSorter
from typing import IO

from pipeline.core.change_text import MAX_DIFF_CHARS, MAX_FILES_IN_COMMIT, MIN_DIFF_CHARS, Hunk
from pipeline.core.records import FileModification
from pipeline.lexing.languages import is_source, source_suffixes
from pipeline.pins.local_tree import printable_path
from pipeline.stages.collect.repositories.command import run_git, stream_git
from pipeline.stages.collect.repositories.pack_objects import PackObjects

_FORMATTING = (
    r"clang-?format|\b(astyle|uncrustify)\b",
    r"^(re-?format|style\b|fmt\b|formatting\b|format( the)?( all)? (code|sources?|files?)\b|format$)",
    r"^(apply|run|fix|clean up|remove|trim|strip)( the| code| trailing| some| minor)?"
    r" (whitespaces?|white-space|formatter|formatting|indentation)( errors?| issues?)?( (in|from|at|on)\b.*)?\W*$",
)
_NEW_VERSION = (
    r"\b(bump(s|ed|ing)?|increment|raise)\b.*\bversion\b|\bversion bump\b|^(chore\S* )?bump\b",
    r"^(update|set|change) (the )?(\w+ )?version( number| string)?s?( (to|on|in|for)\b.*)?\W*$",
    r"^(prepare |tag )?(for )?(the )?release\b.{0,20}\bv?\d+\.\d|^prepare (for )?(the )?release\b|^v?\d+(\.\d+)+\S*$",
)
_CHORES = re.compile("|".join(_FORMATTING + _NEW_VERSION), re.IGNORECASE)
_MAX_SUBJECT = 1_000
_DIFF = ("diff-tree", "--stdin", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_PATCH = ("--no-renames", "--diff-filter=M", "-p", "-U3", "--full-index", "--diff-algorithm=myers")
_OF_HUNKS = (b"@@", b" ", b"-", b"+", b"\\")
"""Beginnings of the lines of hunks, their heads included."""
_PLAIN_PATCH = ("--no-indent-heuristic", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/")


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """The fields of a commit that the chains use. Times are seconds since 1970, zero if the commit has none."""

    commit_hash: str
    parent_hashes: tuple[str, ...]
    author_time: int
    commit_time: int
    subject: str


@dataclass(frozen=True, slots=True)
class Change:
    """One file in one commit: its path, git's status letter, and the ids of its bytes before and after."""

    path: str
    status: str
    old_blob_id: str
    new_blob_id: str
    old_path: str = ""
    """Previous path of a renamed file; else empty."""
    is_regular: bool = True
    """False where it is a link or a submodule, before or after."""

    @property
    def is_modification(self) -> bool:
        """True where a file of the same path had bytes before, and has others after."""
        return self.status == "M" and self.is_regular and self.old_blob_id != self.new_blob_id


@dataclass(frozen=True)
class Diff:
    """The diff of one file: the characters of its hunks, and the hunks themselves unless they are more than an accepted one has."""

    num_chars: int = 0
    hunks: tuple[Hunk, ...] = ()


_NO_DIFF = Diff()


@dataclass(frozen=True)
class CommitHistory:
    """The commits that lead to a pinned one, without merges, parents first, and what each did to files of source code."""

    commits: Sequence[CommitRecord]
    changes: Mapping[str, Sequence[Change]]
    diffs: Mapping[tuple[str, str, str], Diff]
    """By commit, and the ids of the file before and after."""

    def diff(self, record: CommitRecord, change: Change) -> Diff:
        """Return the diff of a change; an empty one where no text differs, or the commit is not accepted."""
        return self.diffs.get((record.commit_hash, change.old_blob_id, change.new_blob_id), _NO_DIFF)

    def rejection(self, record: CommitRecord, change: Change) -> tuple[str, str] | None:
        """Return the reason for which a change is no link of its file's chain, and what was found; None for one that is."""
        if not record.parent_hashes or not change.is_modification:
            return "not_modified", f"git calls it {change.status}" + (
                f" from {change.old_path}" * bool(change.old_path)
            )
        changes = self.changes[record.commit_hash]
        num_files = sum(is_source(each.path) for each in changes)
        if num_files > MAX_FILES_IN_COMMIT:
            return "large_commit", f"{num_files} files of source code, at most {MAX_FILES_IN_COMMIT}"
        if not is_accepted(record.subject, changes):
            return "routine_commit", "its subject says that it formats, or raises a version"
        num_chars = self.diff(record, change).num_chars
        if not num_chars:
            return "binary_change", "git finds no lines that differ"
        if not MIN_DIFF_CHARS <= num_chars <= MAX_DIFF_CHARS:
            limits = f"{MIN_DIFF_CHARS} to {MAX_DIFF_CHARS}"
            return (
                "small_change" if num_chars < MIN_DIFF_CHARS else "large_change"
            ), f"{num_chars} characters, {limits}"
        return None


def read_history(objects: PackObjects, commit: str) -> CommitHistory:
    """Read the history of a commit, and the diffs of the commits that are accepted."""
    commits = [record for record in commit_records(objects, commit) if len(record.parent_hashes) <= 1]
    changes = _changes(objects, [record.commit_hash for record in commits])
    accepted = [
        record.commit_hash
        for record in commits
        if record.parent_hashes and is_accepted(record.subject, changes[record.commit_hash])
    ]
    return CommitHistory(commits, changes, _diffs(objects, accepted))


def modifications(history: CommitHistory, commit: str, paths: Collection[str], source: str) -> list[FileModification]:
    """Return the chains of the files at `paths` of a commit, sorted by path and index."""
    ambiguous = _ambiguous_paths(history.changes)
    wanted = frozenset(path for path in paths if is_source(path))
    lengths: Counter[str] = Counter()
    found: list[FileModification] = []
    for record in history.commits:
        for change in history.changes[record.commit_hash]:
            if change.path not in wanted or history.rejection(record, change):
                continue
            found.append(
                FileModification(
                    source=source,
                    revision=commit,
                    path=change.path,
                    repo_stable_id=stable_id(source),
                    filepath_stable_id=stable_id(source, change.path),
                    file_local_commit_index=lengths[change.path],
                    old_blob_id=change.old_blob_id,
                    new_blob_id=change.new_blob_id,
                    num_diff_chars=history.diff(record, change).num_chars,
                    has_rename_ambiguity=change.path in ambiguous,
                    **asdict(record),
                )
            )
            lengths[change.path] += 1
    return sorted(found, key=lambda item: (item.path, item.file_local_commit_index))


def is_accepted(subject: str, changes: Sequence[Change]) -> bool:
    """Return whether a commit with one parent is accepted: it touches few files, and is neither formatting nor a new version."""
    num_files = sum(is_source(change.path) for change in changes)
    return 1 <= num_files <= MAX_FILES_IN_COMMIT and not _CHORES.search(subject[:_MAX_SUBJECT])


def commit_records(objects: PackObjects, commit: str) -> list[CommitRecord]:
    """Return a commit and all its ancestors parents first; of those that may come next, the oldest commit time first."""
    form = "--format=%H%x00%P%x00%at%x00%ct%x00%s"
    listing = run_git(objects.folder, ["log", "-z", form, "--encoding=UTF-8", "--no-show-signature", commit])
    fields = listing.decode("utf-8", "replace").split("\0")
    records: dict[str, CommitRecord] = {}
    for at in range(0, len(fields) - 4, 5):
        name, parents, author_time, commit_time, subject = fields[at : at + 5]
        times = (_seconds(author_time), _seconds(commit_time))
        records[name] = CommitRecord(name, tuple(parents.split()), *times, subject)
    sorter = TopologicalSorter({name: record.parent_hashes for name, record in records.items()})
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    ordered: list[CommitRecord] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (records[name].commit_time, name))
        _, name = heapq.heappop(ready)
        ordered.append(records[name])
        sorter.done(name)
    return ordered


def stable_id(*parts: str) -> str:
    """Return the first 16 hex digits of the SHA-256 of the parts: an id of a repository or a file in it, whatever its URL."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _seconds(text: str) -> int:
    """Parse a time as git prints it; zero if it is not a number, or too large for a table."""
    seconds = int(text) if text.lstrip("-").isdecimal() else 0
    return seconds if abs(seconds) < 2**62 else 0


def _changes(objects: PackObjects, commits: Sequence[str]) -> dict[str, list[Change]]:
    """Return the changes of source files by commit; a root commit adds all of its files."""
    arguments = [*_DIFF, "--raw", "-z", "--no-abbrev", "--root", "-M50%", "-l1000"]
    found: dict[str, list[Change]] = {commit: [] for commit in commits}
    commit = ""
    with stream_git(objects.folder, arguments, commits) as output:
        tokens = nul_separated(output)
        for token in tokens:
            if not token.startswith(b":"):
                commit = token.decode().strip()
                continue
            *modes, old, new, status = token[1:].decode().split(" ")
            paths = [printable_name(next(tokens)) for _ in range(2 if status[0] in "RC" else 1)]
            is_regular = all(mode.startswith("100") for mode in modes)
            change = Change(paths[-1], status[0], old, new, paths[0] if len(paths) == 2 else "", is_regular)
            if is_source(change.path) or is_source(change.old_path):
                found[commit].append(change)
    return found


def nul_separated(output: IO[bytes]) -> Iterator[bytes]:
    """Yield the tokens between NULs while the output arrives."""
    rest = b""
    while block := output.read(1024**2):
        *whole, rest = (rest + block).split(b"\0")
        yield from whole


def printable_name(raw: bytes) -> str:
    """Return the path of a name in a tree."""
    return printable_path(raw.decode("utf-8", "surrogateescape"))


def _ambiguous_paths(changes: Mapping[str, Sequence[Change]]) -> frozenset[str]:
    """Return the paths whose chain may mix several files: renamed from or to, or created more than once."""
    every = [change for of_commit in changes.values() for change in of_commit]
    renamed = {path for change in every if change.status == "R" for path in (change.path, change.old_path)}
    created = Counter(change.path for change in every if change.status == "A")
    return frozenset(renamed | {path for path, count in created.items() if count > 1})


def _diffs(objects: PackObjects, commits: Sequence[str]) -> dict[tuple[str, str, str], Diff]:
    """Return the diffs, by commit and the ids of the file before and after. Files that are equal before and after have one."""
    globs = [f":(glob,icase)**/*{suffix}" for suffix in source_suffixes()]
    found: dict[tuple[str, str, str], Diff] = {}
    commit, file, lines = "", ("", "", ""), list[bytes]()
    with stream_git(objects.folder, [*_DIFF, *_PATCH, *_PLAIN_PATCH, "--", *globs], commits) as output:
        for line in output:
            if lines or line.startswith(b"@@"):
                if line.startswith(_OF_HUNKS):
                    lines.append(line)
                    continue
                found.setdefault(file, _diff(lines))
                lines = []
            if line.startswith(b"index "):
                old, _, new = line.split()[1].decode().partition("..")
                file = (commit, old, new)
            elif re.fullmatch(rb"[0-9a-f]{40,64}\n", line):
                commit = line.decode().strip()
    if lines:
        found.setdefault(file, _diff(lines))
    return found


def _diff(lines: Sequence[bytes]) -> Diff:
    """Return the diff whose hunks have these lines, as git prints them."""
    num_chars = sum(len(line.decode("utf-8", "replace")) for line in lines)
    if num_chars > MAX_DIFF_CHARS:
        return Diff(num_chars)
    hunks: list[tuple[list[bytes], list[bytes]]] = []
    for line in lines:
        if line.startswith(b"@@"):
            hunks.append(([], []))
            continue
        content = line[1:] if line.endswith(b"\n") else line[1:] + b"\n"
        for side, others in zip(hunks[-1], (b"-", b"+"), strict=True):
            if line[:1] in (b" ", others):
                side.append(content)
    return Diff(num_chars, tuple(Hunk(b"".join(before), b"".join(after)) for before, after in hunks))
