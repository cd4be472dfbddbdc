"""ErasedArchives: the archives of a store that an erasure removes, whichever source, build or command they came with.

An archive goes that holds the bytes of a withdrawn file, in the pinned commit or any other, unless a source that is not withdrawn
was read from it. What cannot be read, and what no source was read from, is named: `gc --blobs` removes the latter.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.core.errors import SourceError
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selectors
from pipeline.removal.received_contents import ReceivedContent
from pipeline.removal.store_archives import StoreArchive, archives_of, read_archives
from pipeline.removal.withdrawn_parts import WithdrawnPart
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_MAX_BYTES = 1024**4
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
    unknown: tuple[str, ...]
    """Archives that may hold them: they cannot be read, or no source tells which files of them are withdrawn."""


class _Wanted(NamedTuple):
    """The withdrawn bytes, by either digest of them."""

    sha256s: frozenset[str]
    git_blob_ids: frozenset[str]

    def are_in(self, contents: Iterable[ReceivedContent]) -> bool:
        """Return whether one of them is among the contents."""
        return any(each.sha256 in self.sha256s or each.git_blob_id in self.git_blob_ids for each in contents)


def erased_archives(
    store: Store,
    selectors: Selectors,
    concerned: Iterable[WithdrawnPart],
    others: Iterable[StoredObject],
    naming: Collection[str] = (),
) -> ErasedArchives:
    """Find the archives that go. `others` hold the same bytes under names that stay; those of `naming` go whatever they hold."""
    parts = list(concerned)
    wanted = _wanted(store, selectors, parts)
    own = {sha256 for each in parts for sha256 in archives_of(store, each.source)} | _erased_before(store, selectors)
    holding, by_name = {each.object_id for each in others}, any(each.sha256 is None for each in selectors.all)
    removed, needed, unknown = list[StoreArchive[bool]](), list[StoreArchive[bool]](), list[str]()
    for archive in read_archives(store, wanted.are_in):
        is_held = archive.found or archive.sha256 in own
        if archive.sha256 in naming or (is_held and not _keepers(archive, selectors, holding)):
            removed.append(archive)
        elif is_held:
            needed.append(archive)
        elif archive.found is None or (by_name and not archive.users and not archive.is_given):
            unknown.append(archive.sha256)
    revisions = {str(user.identity["revision"]) for each in removed for user in each.users}
    users = {user.object_id: user for each in needed for user in _keepers(each, selectors, holding) if user is not None}
    return ErasedArchives(
        blobs=tuple(sorted(each.sha256 for each in removed if not each.is_refused)),
        refused=tuple(sorted(each.sha256 for each in removed if each.is_refused)),
        revisions=tuple(sorted(revisions)),
        users=tuple(users.values()),
        given=tuple(sorted(each.sha256 for each in needed if each.is_given)),
        unknown=tuple(sorted(unknown)),
    )


def _keepers(archive: StoreArchive[bool], selectors: Selectors, holding: Collection[str]) -> list[StoredObject | None]:
    """Return the sources for which an archive stays, or None for what a build was given."""
    keepers: list[StoredObject | None] = [
        user
        for user in archive.users
        if user.object_id in holding or (archive.found and not selectors.concern(user.identity["name"]))
    ]
    return [*keepers, None] if archive.is_given else keepers


def _wanted(store: Store, selectors: Selectors, concerned: Collection[WithdrawnPart]) -> _Wanted:
    """Return the digests of what is withdrawn: of files, of subjects of commits, and of what went with earlier erasures."""
    texts = {selector.text for selector in selectors.all}
    digests = {sha256 for each in concerned for sha256 in each.digests}
    digests |= {selector.sha256 for selector in selectors.all if selector.sha256 is not None}
    digests |= {
        sha256
        for receipt in store.active_receipts()
        if texts.issuperset(receipt["selectors"])
        for sha256 in receipt["digests"]
    }
    sources = {each.source.object_id: each.source for each in concerned}
    git_blob_ids = {
        object_id for source in sources.values() for object_id in _named_in_archives(store, selectors, source)
    }
    return _Wanted(frozenset(digests - {_EMPTY}), frozenset(git_blob_ids - {ReceivedContent(b"").git_blob_id}))


def _named_in_archives(store: Store, selectors: Selectors, source: StoredObject) -> Iterator[str]:
    """Iterate over the ids of withdrawn files as the archives of a source name them: it was collected without them."""
    identity = source.identity
    for sha256 in archives_of(store, source):
        try:
            listed = SOURCE_KINDS[identity["kind"]].names_in(identity, store.root / "blobs" / sha256, _MAX_BYTES)
        except SourceError:  # it goes as a whole, with what else it holds
            continue
        for each in listed:
            path = printable_path(os.fsdecode(each.name))
            if each.git_blob_id is not None and selectors.matching(identity["name"], path):
                yield each.git_blob_id


def _erased_before(store: Store, selectors: Selectors) -> set[str]:
    """Return the archives that were erased with these withdrawals: one that is here again goes again."""
    texts = {selector.text for selector in selectors.all}
    receipts = (each for each in store.active_receipts() if each["selectors"] and texts.issuperset(each["selectors"]))
    return {sha256 for each in receipts for sha256 in each["blobs"]}
