"""AuthorFiles: the collected files of a store that name a person, by an address or a name, found in the bytes as they came;
versions of a file that its history holds are files too. And what else names the person in what a store received: commits by their
lines of author and committer, which are no text of a document, files that no build collects, and lines of JSON beside the text.

Nothing of what is asked for is stored or shown. A name is found in any case, over line ends, in every encoding that normalize
decodes; an address also as it is written for readers, `ada (at) host (dot) org`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.build.withdrawal import Unread, from_collected, held_files, ids_of_kind, subjects
from pipeline.core.digests import text_sha256
from pipeline.core.errors import MissingError
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.pins.selection import is_license_evidence
from pipeline.removal.named_author import SUBJECT, NamedAuthor
from pipeline.removal.received_contents import ReceivedContent
from pipeline.removal.store_archives import StoreArchive, read_archives
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store


@dataclass(frozen=True)
class AuthorFiles:
    """The files that name a person: their digests, and how many there are in each source."""

    digests: tuple[str, ...]
    """Of the files, and of the subjects of commits."""
    by_source: dict[str, int]
    num_license_texts: int
    """Files of license evidence that name the person: no text of a corpus, and kept."""
    num_subjects: int
    """Subjects of commits that name the person, of sources with a history."""
    commits: dict[str, int]
    """Commits of which the person is author or committer, by source, or by archive where it is of none."""
    others: dict[str, int]
    """Files with text that was not collected, and messages of commits, that name the person, counted in the same way."""
    archives: dict[str, int]
    """Archives and other blobs with any of these, by digest, with the number of such commits in each."""
    unread: tuple[Unread, ...]
    """Damaged parts of collected sources, and archives that cannot be read, which were not searched."""

    @property
    def num_files(self) -> int:
        """Files that name the person, those with equal bytes counted each."""
        return sum(self.by_source.values())


def author_files(store: Store, author: str) -> AuthorFiles:
    """Find the files of the collected sources that name an author. Raises ParamsError for a text that is none, MissingError."""
    person = NamedAuthor(author)
    searched, unread = from_collected(store, lambda part: _named_in(part, person))
    files = set[tuple[str, str, str]]().union(*(each.files for each in searched))
    evidence = set[str]().union(*(each.evidence for each in searched))
    subjects_found = set[str]().union(*(each.subjects for each in searched))
    digests = {*(sha256 for _, _, sha256 in files), *map(text_sha256, subjects_found)}
    archives = list(read_archives(store, lambda pieces: _naming(pieces, person, digests | evidence)))
    for each in archives:
        if each.found is not None and each.is_given:  # no build makes a document of it
            each.found.others.update(each.found.copies)
    naming = [each for each in archives if each.found is not None and (each.found.commits or each.found.others)]
    unread += [_unread(each) for each in archives if not each.is_read]
    if not (digests or naming):
        num_searched = sum(each.num_searched for each in searched)
        raise _nowhere(store, f"none of the {num_searched} collected files names it", len(evidence), unread)
    return AuthorFiles(
        tuple(sorted(digests)),
        dict(sorted(Counter(source for source, _, _ in files).items())),
        len(evidence),
        len(subjects_found),
        _by_holder(naming, lambda found: found.commits),
        _by_holder(naming, lambda found: found.others),
        {each.sha256: len(each.found.commits) for each in naming if each.found is not None},
        tuple(unread),
    )


def _nowhere(store: Store, found: str, num_license_texts: int, unread: Iterable[Unread]) -> MissingError:
    """Return the error for an author whom nothing names, which says what was not searched."""
    found += f", but {num_license_texts} license texts do" if num_license_texts else ""
    found += "".join(f"; not searched: {each.source or 'object'} {each.object_id[:12]} is damaged" for each in unread)
    num_bare = sum(_has_rows_alone(store, name) for name in ids_of_kind(store, SNAPSHOT_KIND))
    found += f"; {num_bare} snapshots are here without the files that their rows are of" if num_bare else ""
    remedy = "Correct the text, or withdraw by SOURCE/GLOB; a source that was never built is left out of the pins file."
    return MissingError(SUBJECT, found, "an address or a name as files spell it", remedy)


def _has_rows_alone(store: Store, snapshot_id: str) -> bool:
    return any(store.locate(object_id) is None for object_id in store.read(snapshot_id).inputs.values())


class _ArchiveNaming(NamedTuple):
    """Commits by a person in an archive, and the files and messages that name the person beside that, each by its digest.

    A file is one however often its lines or what it holds name the person, and none where only known files in it do.
    """

    commits: set[str]
    others: set[str]
    copies: set[str]
    """Files that name the person in known files alone."""


def _naming(pieces: Iterable[ReceivedContent], person: NamedAuthor, known: Collection[str]) -> _ArchiveNaming:
    """Find what names a person in an archive, beside the files that are `known` to, and license texts."""
    found = _ArchiveNaming(set(), set(), set())
    for piece in pieces:
        digest = hashlib.sha256(piece.content).hexdigest()
        if piece.is_commit and person.is_in(piece.people):
            found.commits.add(digest)
        elif piece.is_commit:
            found.others.update([digest] if person.is_in(piece.without(known)) else [])
        elif not is_license_evidence(piece.name) and person.is_in(piece.content):
            is_own = not piece.is_within(known) and person.is_in(piece.without(known))
            (found.others if is_own else found.copies).add(piece.outermost.sha256)
    return found


def _by_holder(
    archives: Iterable[StoreArchive[_ArchiveNaming]], digests: Callable[[_ArchiveNaming], Set[str]]
) -> dict[str, int]:
    """Return how many pieces there are in each source, those in several of its archives counted once; or in an archive of none."""
    found: dict[str, set[str]] = {}
    for archive in archives:
        holders = {str(user.identity["name"]) for user in archive.users} or {archive.subject}
        pieces = set() if archive.found is None else digests(archive.found)
        for holder in holders if pieces else ():
            found.setdefault(holder, set()).update(pieces)
    return {holder: len(all_pieces) for holder, all_pieces in sorted(found.items())}


def _unread(archive: StoreArchive[_ArchiveNaming]) -> Unread:
    name = archive.users[0].identity["name"] if archive.users else None
    subject = archive.subject
    if archive.num_unread:
        found = f"{archive.num_unread} pieces within it cannot be opened"
        remedy = "Open it by other means; to remove it, withdraw its source as a whole and run `withdraw --erase`."
        return Unread(archive.sha256, name, f"{subject}: {found}. {remedy}")
    remedy = "`python -m pipeline fsck` says whether it is damaged, `gc --blobs` removes one of no source."
    return Unread(archive.sha256, name, f"{subject}: it cannot be read. {remedy}")


class _PartNaming(NamedTuple):
    """The files (source, path and digest), license texts and subjects of one collected source that name a person."""

    files: Set[tuple[str, str, str]]
    evidence: Set[str]
    subjects: Set[str]
    num_searched: int


def _named_in(part: StoredObject, person: NamedAuthor) -> _PartNaming:
    files, evidence, num_searched = set[tuple[str, str, str]](), set[str](), 0
    for row in held_files(part, "is_evidence", "content"):
        num_searched += 1
        if not person.is_in(row["content"]):
            continue
        if row["is_evidence"]:
            evidence.add(row["blob_sha256"])
        else:
            files.add((part.identity["name"], row["path"], row["blob_sha256"]))
    found = {each for each in subjects(part) if person.is_named_by(each)}
    return _PartNaming(files, evidence, found, num_searched)
