"""ErasedArchives: the archives of a store that an erasure removes, whichever source, build or command they came with.

An archive goes that holds the bytes of a withdrawn file, in the pinned commit or any other, unless a source that is not withdrawn
was read from it, or each of these files is in it under a name that stays as well. What cannot be read, and what no source was read
from, is named: `gc --blobs` removes the latter.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.build.withdrawal import from_collected
from pipeline.core.errors import SourceError
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selector, Selectors, gathered
from pipeline.removal.received_contents import ReceivedContent
from pipeline.removal.store_archives import StoreArchive, archives_of, read_archives
from pipeline.removal.withdrawn_parts import WithdrawnPart, kept_digests, paths_left_out
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.store.fsck import ERASE_AGAIN
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store, StoredReceipt

_MAX_BYTES = 1024**4
_By = Mapping[str, frozenset[Selector]]
"""Digest, or id of git -> the selectors that withdraw what has it."""
_Archive = StoreArchive[_By]
_EMPTY = hashlib.sha256(b"").hexdigest()
"""An empty file is everywhere, and says nothing."""


@dataclass(frozen=True)
class ErasedArchives:
    """The archives that go, and those that stay with who needs them."""

    blobs: tuple[str, ...]
    refused: tuple[str, ...]
    """Bytes that were fetched once and were not the pinned ones."""
    revisions: tuple[str, ...]
    """The revisions of the sources that were read from what goes."""
    users: tuple[StoredObject, ...]
    """The collected sources for which an archive stays that holds the bytes."""
    given: tuple[str, ...]
    """Evaluation items, or another blob that is no source, that hold the bytes."""
    holding: tuple[StoredObject, ...]
    """The collected sources that hold the bytes in rows that are not withdrawn."""
    unknown: tuple[_Archive, ...]
    """Archives that may hold them: they, or pieces within them, cannot be read, or no source tells which files are withdrawn."""
    removed_by: Mapping[str, frozenset[Selector]]
    """Each of what goes, and each revision -> the selectors for which it does; none for a person."""


class _Wanted(NamedTuple):
    """The withdrawn bytes, by either digest of them."""

    sha256s: _By
    git_blob_ids: _By

    def those_in(self, contents: Iterable[ReceivedContent]) -> _By:
        """Return the digests of those that are among the contents, each with the selectors that withdraw it."""
        return gathered(
            (each.sha256, by[digest])
            for each in contents
            for by, digest in ((self.sha256s, each.sha256), (self.git_blob_ids, each.git_blob_id))
            if digest in by
        )


class _Kept(NamedTuple):
    """A collected source that has withdrawn bytes under names that stay, and their digests."""

    source: StoredObject
    sha256s: frozenset[str]


class _ArchiveJudge(NamedTuple):
    """Judge of which archives go, by who holds withdrawn bytes under names that stay, and what the archives hold."""

    selectors: Selectors
    kept: Mapping[str, _Kept]
    """Id of a collected source -> what it has under names that stay."""
    of_sources: Mapping[str, frozenset[str]]
    """Archive of a source with withdrawn files -> their digests, as far as they are known."""
    own: _By
    """Archive of such a source, or one that was erased before and goes again -> the selectors for which it goes."""
    unlisted: Collection[str] = ()
    """Archives with withdrawn files of which nothing tells the digest."""
    knows_all: bool = True
    """False where a collected source is damaged, which may hold withdrawn bytes under a name that stays: no archive goes then."""

    def keepers(self, archive: _Archive) -> list[StoredObject | None]:
        """Return the sources for which an archive with withdrawn bytes stays, or None for what a build was given.

        A source of which nothing is withdrawn by name needs what only such withdrawals are about. Every file must be needed.
        """
        names, by_digest = ({each.source for each in self.selectors.all}, {each.sha256 for each in self.selectors.all})
        held = self.of_sources.get(archive.sha256, frozenset()) if archive.found is None else frozenset(archive.found)
        others = [each for each in archive.users if archive.found and each.identity["name"] not in names]
        holding = [each for each in archive.users if each.object_id in self.kept]
        kept = frozenset[str]().union(*(self.kept[each.object_id].sha256s for each in holding))
        kept |= held - by_digest if others else frozenset()
        is_needed = held and held <= kept and (others or archive.sha256 not in self.unlisted)
        users = [each for each in archive.users if each in others or each in holding] if is_needed else []
        return [*users, None] if archive.is_given else [*users]

    def selectors_of(self, archive: _Archive) -> frozenset[Selector]:
        """Return the selectors for which an archive goes."""
        return self.own.get(archive.sha256, frozenset[Selector]()).union(*(archive.found or {}).values())


def erased_archives(
    store: Store, selectors: Selectors, concerned: Iterable[WithdrawnPart], naming: Collection[str] = ()
) -> ErasedArchives:
    """Find the archives that go; those of `naming` go whatever they hold."""
    parts = list(concerned)
    wanted = _wanted(store, selectors, parts)
    judge = _judge(store, selectors, parts, wanted.sha256s)
    by_name = any(each.sha256 is None for each in selectors.all)
    removed, needed, unknown = list[_Archive](), list[_Archive](), list[_Archive]()
    for archive in read_archives(store, wanted.those_in):
        is_held = archive.found or archive.sha256 in judge.own
        if archive.sha256 in naming or (is_held and judge.knows_all and not judge.keepers(archive)):
            removed.append(archive)
        elif is_held and judge.keepers(archive):
            needed.append(archive)
        elif is_held or not archive.is_read or (by_name and not archive.users and not archive.is_given):
            unknown.append(archive)
    by = {each.sha256: frozenset() if each.sha256 in naming else judge.selectors_of(each) for each in removed}
    revisions = _revisions(removed, by)
    users = {user.object_id: user for each in needed for user in judge.keepers(each) if user is not None}
    return ErasedArchives(
        blobs=tuple(sorted(each.sha256 for each in removed if not each.is_refused)),
        refused=tuple(sorted(each.sha256 for each in removed if each.is_refused)),
        revisions=tuple(sorted(revisions)),
        users=tuple(users.values()),
        given=tuple(sorted(each.sha256 for each in needed if each.is_given)),
        holding=tuple(each.source for each in judge.kept.values()),
        unknown=tuple(sorted(unknown, key=lambda archive: archive.sha256)),
        removed_by={**revisions, **by},
    )


def _revisions(removed: Iterable[_Archive], by: _By) -> dict[str, frozenset[Selector]]:
    """Return the revisions of the sources that were read from what goes, each with the selectors for which all of that goes."""
    found: dict[str, frozenset[Selector]] = {}
    for archive in removed:
        for revision in {str(user.identity["revision"]) for user in archive.users}:
            together = found.get(revision, by[archive.sha256])
            is_for_a_person = not (together and by[archive.sha256])
            found[revision] = frozenset() if is_for_a_person else together | by[archive.sha256]
    return found


def bytes_in_archives(store: Store) -> Iterator[str]:
    """Iterate over what `fsck` says of the archives that hold the bytes of files which were erased, under no name that stays."""
    receipts = list(store.stored_receipts())
    texts = {text for each in receipts for text in each.withdrawn.intersection(each.content["selectors"])}
    selectors = Selectors(map(Selector, texts))
    wanted = _Wanted(_erased_digests(receipts, selectors), {})
    if not wanted.sha256s:
        return
    kept, knows_all = _kept(store, selectors, wanted.sha256s)
    if not knows_all:  # which `fsck` says
        return
    judge = _ArchiveJudge(selectors, kept, {}, {})
    again = {
        sha256 for each in receipts for sha256 in each.erased("blobs", "refused")
    }  # those that `fsck` names anyway
    for archive in read_archives(store, wanted.those_in):
        if archive.found and archive.sha256 not in again and not judge.keepers(archive):
            kind = "refused blob" if archive.is_refused else "blob"
            yield f"{kind} {archive.sha256[:12]}: it holds the bytes of {len(archive.found)} erased files. {ERASE_AGAIN}"


def _judge(
    store: Store, selectors: Selectors, concerned: Collection[WithdrawnPart], digests: Collection[str]
) -> _ArchiveJudge:
    of_sources, listed = dict[str, frozenset[str]](), dict[str, set[str]]()
    left_out = dict[str, set[str]]()
    own = _erased_with(store.stored_receipts(), selectors, "blobs", "refused")
    for each in concerned:
        left = paths_left_out(each.source, selectors)
        unknown = {path for path, matching in left.items() if all(one.sha256 is None for one in matching)}
        for sha256 in archives_of(store, each.source):
            of_sources[sha256] = of_sources.get(sha256, frozenset()) | each.digests.keys()
            own[sha256] = own.get(sha256, frozenset()).union(*each.digests.values(), *left.values())
            listed.setdefault(sha256, set()).update(each.paths)
            left_out.setdefault(sha256, set()).update(unknown)
    unlisted = {sha256 for sha256, paths in left_out.items() if paths - listed[sha256]}
    kept, knows_all = _kept(store, selectors, digests)
    return _ArchiveJudge(selectors, kept, of_sources, own, unlisted, knows_all)


def _kept(store: Store, selectors: Selectors, digests: Collection[str]) -> tuple[dict[str, _Kept], bool]:
    """Return the collected sources that have some of the bytes in rows that stay, by id, and whether all were read."""
    sources, unread = from_collected(store, lambda part: _Kept(part, kept_digests(part, selectors, digests)))
    return {each.source.object_id: each for each in sources if each.sha256s}, not unread


def _wanted(store: Store, selectors: Selectors, concerned: Collection[WithdrawnPart]) -> _Wanted:
    """Return the digests of what is withdrawn: of files, of subjects of commits, and of what went with earlier erasures."""
    by_digest = {each.sha256: frozenset({each}) for each in selectors.all if each.sha256 is not None}
    erased = _erased_digests(store.stored_receipts(), selectors)
    digests = gathered(pair for by in (erased, by_digest, *(each.digests for each in concerned)) for pair in by.items())
    sources = {each.source.object_id: each.source for each in concerned}
    git_blob_ids = gathered(
        pair for source in sources.values() for pair in _named_in_archives(store, selectors, source)
    )
    digests.pop(_EMPTY, None)
    git_blob_ids.pop(ReceivedContent(b"").git_blob_id, None)
    return _Wanted(digests, git_blob_ids)


def _erased_digests(receipts: Iterable[StoredReceipt], selectors: Selectors) -> dict[str, frozenset[Selector]]:
    """Return the digests of the files, but empty ones, that went with earlier erasures by these withdrawals, each with those."""
    found = _erased_with(receipts, selectors, "digests")
    found.pop(_EMPTY, None)
    return found


def _erased_with(
    receipts: Iterable[StoredReceipt], selectors: Selectors, *fields: str
) -> dict[str, frozenset[Selector]]:
    """Return what these fields of receipts name and these withdrawals removed, each with those."""
    return gathered(
        (digest, matching)
        for receipt in receipts
        for digest in receipt.erased(*fields)
        if (matching := selectors.named(receipt.removed_by(digest)))
    )


def _named_in_archives(
    store: Store, selectors: Selectors, source: StoredObject
) -> Iterator[tuple[str, frozenset[Selector]]]:
    """Iterate over the ids of withdrawn files as the archives of a source name them, each with the selectors that match it.

    The source was collected without them.
    """
    identity = source.identity
    for sha256 in archives_of(store, source):
        try:
            listed = SOURCE_KINDS[identity["kind"]].names_in(identity, store.root / "blobs" / sha256, _MAX_BYTES)
        except SourceError:  # it goes as a whole, with what else it holds
            continue
        for each in listed:
            path = printable_path(os.fsdecode(each.name))
            if each.git_blob_id is not None and (matching := selectors.matching(identity["name"], path)):
                yield each.git_blob_id, frozenset(matching)


def erased_for_persons(store: Store) -> dict[str, int]:
    """Return the archives that are here again though they were erased for a person, each with the number of its commits."""
    return {
        sha256: receipt.content.get("num_commits", {}).get(sha256, 0)
        for receipt in store.stored_receipts()
        for sha256 in receipt.erased("blobs", "refused")
        if not receipt.removed_by(sha256) and any((store.root / at / sha256).exists() for at in ("blobs", "rejected"))
    }
