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
from pipeline.pins.selection import Selector, Selectors
from pipeline.removal.received_contents import ReceivedContent
from pipeline.removal.store_archives import StoreArchive, archives_of, read_archives
from pipeline.removal.withdrawn_parts import WithdrawnPart, kept_digests, paths_left_out
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.store.fsck import ERASE_AGAIN
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_MAX_BYTES = 1024**4
_Archive = StoreArchive[frozenset[str]]
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
    unknown: tuple[str, ...]
    """Archives that may hold them: they cannot be read, or no source tells which files of them are withdrawn."""


class _Wanted(NamedTuple):
    """The withdrawn bytes, by either digest of them."""

    sha256s: frozenset[str]
    git_blob_ids: frozenset[str] = frozenset()

    def those_in(self, contents: Iterable[ReceivedContent]) -> frozenset[str]:
        """Return the digests of those that are among the contents."""
        found = (each for each in contents if each.sha256 in self.sha256s or each.git_blob_id in self.git_blob_ids)
        return frozenset(each.sha256 for each in found)


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
    unlisted: Collection[str] = ()
    """Archives with withdrawn files of which nothing tells the digest."""
    knows_all: bool = True
    """False where a collected source is damaged, which may hold withdrawn bytes under a name that stays: no archive goes then."""

    def keepers(self, archive: _Archive) -> list[StoredObject | None]:
        """Return the sources for which an archive with withdrawn bytes stays, or None for what a build was given.

        A source of which nothing is withdrawn by name needs what only such withdrawals are about. Every file must be needed.
        """
        names, by_digest = ({each.source for each in self.selectors.all}, {each.sha256 for each in self.selectors.all})
        held = self.of_sources.get(archive.sha256, frozenset()) if archive.found is None else archive.found
        others = [each for each in archive.users if archive.found and each.identity["name"] not in names]
        holding = [each for each in archive.users if each.object_id in self.kept]
        kept = frozenset[str]().union(*(self.kept[each.object_id].sha256s for each in holding))
        kept |= held - by_digest if others else frozenset()
        is_needed = held and held <= kept and (others or archive.sha256 not in self.unlisted)
        users = [each for each in archive.users if each in others or each in holding] if is_needed else []
        return [*users, None] if archive.is_given else [*users]


def erased_archives(
    store: Store, selectors: Selectors, concerned: Iterable[WithdrawnPart], naming: Collection[str] = ()
) -> ErasedArchives:
    """Find the archives that go; those of `naming` go whatever they hold."""
    parts = list(concerned)
    wanted = _wanted(store, selectors, parts)
    judge = _judge(store, selectors, parts, wanted.sha256s)
    own = judge.of_sources.keys() | _erased_before(store, selectors)
    by_name = any(each.sha256 is None for each in selectors.all)
    removed, needed, unknown = list[_Archive](), list[_Archive](), list[str]()
    for archive in read_archives(store, wanted.those_in):
        is_held = archive.found or archive.sha256 in own
        if archive.sha256 in naming or (is_held and judge.knows_all and not judge.keepers(archive)):
            removed.append(archive)
        elif is_held and judge.keepers(archive):
            needed.append(archive)
        elif is_held or archive.found is None or (by_name and not archive.users and not archive.is_given):
            unknown.append(archive.sha256)
    revisions = {str(user.identity["revision"]) for each in removed for user in each.users}
    users = {user.object_id: user for each in needed for user in judge.keepers(each) if user is not None}
    return ErasedArchives(
        blobs=tuple(sorted(each.sha256 for each in removed if not each.is_refused)),
        refused=tuple(sorted(each.sha256 for each in removed if each.is_refused)),
        revisions=tuple(sorted(revisions)),
        users=tuple(users.values()),
        given=tuple(sorted(each.sha256 for each in needed if each.is_given)),
        holding=tuple(each.source for each in judge.kept.values()),
        unknown=tuple(sorted(unknown)),
    )


def bytes_in_archives(store: Store) -> Iterator[str]:
    """Iterate over what `fsck` says of the archives that hold the bytes of files which were erased, under no name that stays."""
    receipts = [receipt for receipt in store.active_receipts() if receipt["selectors"]]
    wanted = _Wanted(frozenset(sha256 for receipt in receipts for sha256 in receipt["digests"]) - {_EMPTY})
    if not wanted.sha256s:
        return
    selectors = Selectors(Selector(text) for text in sorted({text for each in receipts for text in each["selectors"]}))
    kept, knows_all = _kept(store, selectors, wanted.sha256s)
    if not knows_all:  # which `fsck` says
        return
    judge = _ArchiveJudge(selectors, kept, {})
    again = {sha256 for receipt in receipts for sha256 in receipt["blobs"]}  # those that `fsck` names anyway
    for archive in read_archives(store, wanted.those_in):
        if archive.found and archive.sha256 not in again and not judge.keepers(archive):
            kind = "refused blob" if archive.is_refused else "blob"
            yield f"{kind} {archive.sha256[:12]}: it holds the bytes of {len(archive.found)} erased files. {ERASE_AGAIN}"


def _judge(
    store: Store, selectors: Selectors, concerned: Collection[WithdrawnPart], digests: Collection[str]
) -> _ArchiveJudge:
    of_sources, listed = dict[str, frozenset[str]](), dict[str, set[str]]()
    left_out = dict[str, set[str]]()
    for each in concerned:
        unknown = {path for path, is_known in paths_left_out(each.source, selectors).items() if not is_known}
        for sha256 in archives_of(store, each.source):
            of_sources[sha256] = of_sources.get(sha256, frozenset()) | each.digests
            listed.setdefault(sha256, set()).update(each.paths)
            left_out.setdefault(sha256, set()).update(unknown)
    unlisted = {sha256 for sha256, paths in left_out.items() if paths - listed[sha256]}
    kept, knows_all = _kept(store, selectors, digests)
    return _ArchiveJudge(selectors, kept, of_sources, unlisted, knows_all)


def _kept(store: Store, selectors: Selectors, digests: Collection[str]) -> tuple[dict[str, _Kept], bool]:
    """Return the collected sources that have some of the bytes in rows that stay, by id, and whether all were read."""
    sources, unread = from_collected(store, lambda part: _Kept(part, kept_digests(part, selectors, digests)))
    return {each.source.object_id: each for each in sources if each.sha256s}, not unread


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
