"""Erasure: removal of withdrawn bytes from what the store holds as it was received, with a receipt of what was removed.

    collected objects    rewritten in place: a row stays, with its path and its digest, and its bytes and raw words are empty
    archives             removed, unless a source that is not withdrawn holds all the same bytes in it: also packs of other
                         commits, what no source was read from, and refused bytes
    units/               removed: compiled results, if one of the sources is built

Documents, tokens, snapshots and checkpoints are none of it: they go by a build without what is withdrawn, its promotion, and `gc`.
The receipt, an object that the log of withdrawals names, is written first: after a kill `fsck` names what is still here.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.build.withdrawal import collected_parts, holders, ids_of_kind
from pipeline.core.digests import file_sha256
from pipeline.core.durable import remove, sync, write_synced
from pipeline.core.errors import SnapshotError, StoreError
from pipeline.core.params import canonical_json
from pipeline.core.table_names import FILES
from pipeline.formats.tables import write_table
from pipeline.pins.selection import Selector, Selectors, gathered
from pipeline.removal.erased_archives import ErasedArchives, erased_archives
from pipeline.removal.store_archives import GIVEN, archives_of
from pipeline.removal.withdrawn_parts import WithdrawnPart, parts_with_bytes, paths_left_out, withdrawn_parts
from pipeline.stages.collect.read_shards import READ
from pipeline.stages.stages import STAGES, kinds_with
from pipeline.store.garbage import REMOVAL_WAIT_SECONDS
from pipeline.store.log import NOBODY, RECEIPT
from pipeline.store.objects import StoredObject, erased_files, read_manifest
from pipeline.store.refs import LIVE
from pipeline.store.store import Store
from pipeline.store.store_layout import visible

NO_ARCHIVES: Mapping[str, int] = {}
ARCHIVE = "archive"
"""Kind of a holder of a copy that is an archive of no source that is known, or of which something was not read."""
RECEIPT_KIND = "withdrawal/receipt"


@dataclass(frozen=True)
class Receipt:
    """Receipt of an erasure: what was withdrawn, what was removed of it, and what still holds a copy. No path is in it."""

    selectors: tuple[str, ...]
    digests: tuple[str, ...]
    """SHA-256 of the files whose bytes were removed, as far as a collected source lists them."""
    rewritten: tuple[Mapping[str, str], ...]
    """Files of objects, each with its `sha256` before and as `written`."""
    blobs: tuple[str, ...]
    """Archives that were removed."""
    revisions: tuple[str, ...]
    """Revisions of the sources that were read from them. A build that knows such a source does not fetch it again."""
    num_compiled: int
    """Compiled results that were removed."""
    held_by: tuple[Mapping[str, Any], ...]
    """Holders of a copy: snapshots and checkpoints, what was made of the sources, and other sources with their archives.

    One with `is_known` false may hold a copy: nothing in the store tells.
    """
    refused: tuple[str, ...] = ()
    """Refused bytes that were removed."""
    num_commits: Mapping[str, int] = field(default_factory=dict)
    """Of those that were removed, packs of commits by the person who was asked for, with how many: a commit holds the lines of its
    author and committer, and its id is the digest of them, so that none can be rewritten."""
    removed_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each of the digests, the archives, the revisions and the rewritten files as they were -> the selectors that match what was
    removed: it stays erased while one of them is withdrawn. What went for a person has none, and stays erased."""


def erase(
    store: Store, texts: Iterable[str], reason: str, naming: Mapping[str, int] = NO_ARCHIVES
) -> tuple[str | None, Receipt]:
    """Erase the received bytes that withdrawals name, and return the receipt, its id first: None where nothing is left of them.

    The archives of `naming`, which name a person beside what is collected, go too; each has the number of its commits by that
    person. Raises SnapshotError if a live snapshot was made of what is withdrawn, LockedError while another process uses the store.
    """
    store.storage.refuse("withdraw --erase")
    selectors = Selectors(Selector(text) for text in texts)
    with store.in_use(alone=True, wait_seconds=REMOVAL_WAIT_SECONDS):
        concerned = list(_concerned(store, selectors))
        _refuse_live(store, selectors, {each.part.object_id for each in concerned if each.tables})
        with _scratch(store) as scratch:
            written = {each.part.object_id: _write(scratch, each) for each in concerned}
            receipt = _receipt(store, selectors, concerned, written, naming)
            if not (receipt.rewritten or receipt.blobs or receipt.refused):
                return None, receipt
            for path in _compiled(store, concerned):  # a cache, which may go before anything is logged
                remove(path)
            receipt_id = _log(store, scratch, receipt, reason)
            for object_id, files in written.items():
                _replace(store, object_id, files)
        for sha256 in receipt.blobs:
            store.log_blob(sha256, is_removed=True)
            remove(store.root / "blobs" / sha256)
        for sha256 in receipt.refused:
            remove(store.root / "rejected" / sha256)
        for path in (store.root / "tmp" / ".blobs").glob("*.part"):  # what arrived of an archive, of whichever source
            remove(path)
    return receipt_id, receipt


def _concerned(store: Store, selectors: Selectors) -> Iterator[WithdrawnPart]:
    """Iterate over the collected sources that hold withdrawn files, or whose archive, still in the store, holds them."""
    seen: set[str] = set()
    for source in collected_parts(store):
        if not selectors.concern(source.identity["name"]):
            continue
        found = list(withdrawn_parts(source, _stored_parts(store, source), selectors))
        is_withdrawn = any(each.digests for each in found) or paths_left_out(source, selectors)
        if any(each.tables for each in found) or (is_withdrawn and archives_of(store, source)):
            yield from (each for each in found if each.part.object_id not in seen)
            seen.update(each.part.object_id for each in found)


def _stored_parts(store: Store, source: StoredObject) -> list[StoredObject]:
    """Return the objects that hold the bytes of a source: itself or, where it was collected in shards, what that stored."""
    stored = parts_with_bytes(store, source)
    if not source.is_joined:
        return stored
    (read,) = (kind.kind for kind in STAGES["collect"].parts if READ in kind.functions)
    origin = ("name", "revision")
    reads = [store.read(part_id) for part_id in ids_of_kind(store, read)]
    same = [each for each in reads if all(each.identity[fact] == source.identity[fact] for fact in origin)]
    return [*stored, *same]


def _refuse_live(store: Store, selectors: Selectors, part_ids: Collection[str]) -> None:
    """Raise SnapshotError if what is live was made of what would be erased, naming who holds it."""
    lives = {
        name: [place for place in places if place.endswith(f"/{LIVE}")] for name, places in store.named_by().items()
    }
    lives = {name: places for name, places in lives.items() if places}
    documents = {each.object_id: each.num_documents for each in holders(store, selectors.all)}
    found = [
        f"{', '.join(places)} ({name[:12]})"
        for name, places in sorted(lives.items())
        if documents.get(name) or not _made_of(store, name).isdisjoint(part_ids)
    ]
    if found:
        remedy = "It is withdrawn. Build and promote each of these corpora, then erase it."
        raise SnapshotError(_subject(selectors), f"{'; '.join(found)} holds it", "no live snapshot that does", remedy)


def _made_of(store: Store, object_id: str) -> set[str]:
    """Return all that an object was made of, and what verified it, as far as it is in the store."""
    found, waiting = set[str](), [object_id, store.verified_by(object_id)]
    while waiting:
        name = waiting.pop()
        path = store.locate(name) if name is not None and name not in found else None
        if name is not None and path is not None:
            found.add(name)
            waiting.extend(read_manifest(path).inputs.values())
    return found


def _subject(selectors: Selectors) -> str:
    more = f" and {len(selectors.all) - 1} more" if len(selectors.all) > 1 else ""
    return f"erasure of {selectors.all[0].text}{more}"


@contextmanager
def _scratch(store: Store) -> Iterator[Path]:
    """Yield an empty folder in the store, which the caller holds alone."""
    folder = store.root / "tmp" / "erasure"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(scratch: Path, concerned: WithdrawnPart) -> dict[str, Path]:
    """Write the new files of a collected source beside it, by the names of those that they replace."""
    folder = scratch / concerned.part.object_id
    folder.mkdir()
    for name, table in concerned.tables.items():
        write_table(folder, name, table)
        sync(folder / name)
    return {name: folder / name for name in sorted(concerned.tables)}


def _receipt(
    store: Store,
    selectors: Selectors,
    concerned: list[WithdrawnPart],
    written: Mapping[str, Mapping[str, Path]],
    naming: Mapping[str, int],
) -> Receipt:
    digests = frozenset[str]().union(*(each.digests for each in concerned))
    archives = erased_archives(store, selectors, concerned, naming)
    sums = {each.part.object_id: {file.name: file.sha256 for file in each.part.manifest.files} for each in concerned}
    emptied_by = (
        (sums[each.part.object_id][name], matching) for each in concerned for name, matching in each.emptied_by.items()
    )
    digests_by = (pair for each in concerned for pair in each.digests.items())
    removed_by = gathered((*archives.removed_by.items(), *digests_by, *emptied_by))
    return Receipt(
        selectors=tuple(selector.text for selector in selectors.all),
        digests=tuple(sorted(digests)),
        rewritten=tuple(
            {"object_id": object_id, "file": name, "sha256": sums[object_id][name], "written": file_sha256(path)}
            for object_id, files in sorted(written.items())
            for name, path in sorted(files.items())
        ),
        blobs=archives.blobs,
        refused=archives.refused,
        num_commits={sha256: number for sha256, number in sorted(naming.items()) if number},
        revisions=archives.revisions,
        num_compiled=len(_compiled(store, concerned)),
        held_by=(*_held_by(store, selectors, concerned, archives), *_in_archives(store, archives)),
        removed_by={digest: tuple(sorted(each.text for each in removed_by[digest])) for digest in sorted(removed_by)},
    )


def _held_by(
    store: Store, selectors: Selectors, concerned: list[WithdrawnPart], archives: ErasedArchives
) -> Iterator[dict[str, Any]]:
    """Yield what still holds a copy, in the words of each kind."""
    for holder in holders(store, selectors.all):
        is_known = {} if holder.num_documents is not None else {"is_known": False}
        yield {"kind": holder.kind, "object_id": holder.object_id, "refs": list(holder.refs), **is_known}
    for other in archives.holding:
        yield {"kind": other.kind, "object_id": other.object_id, "blobs": archives_of(store, other)}
    collected = kinds_with(FILES)
    kinds = {kind.kind for stage in STAGES for kind in stage.parts if kind.tables and kind.follows_files} - {*collected}
    sources = {each.part.object_id for each in concerned if each.tables}
    for path in visible(store.root.glob("objects/*/*/*")) if sources else ():
        try:
            kind = read_manifest(path).kind
        except StoreError:  # `fsck` names what is damaged
            continue
        if kind in kinds and not sources.isdisjoint(_made_of(store, path.name)):
            yield {"kind": kind, "object_id": path.name}


def _in_archives(store: Store, archives: ErasedArchives) -> Iterator[dict[str, Any]]:
    """Yield the sources, but those that list the bytes, whose archives hold a copy, and the archives that may hold one."""
    listed = {each.object_id for each in archives.holding}
    for user in archives.users:
        if user.object_id not in listed:
            yield {"kind": user.kind, "object_id": user.object_id, "blobs": archives_of(store, user)}
    yield from ({"kind": GIVEN, "object_id": sha256} for sha256 in archives.given)
    for each in archives.unknown:
        row: dict[str, Any] = {"kind": ARCHIVE, "object_id": each.sha256, "is_known": False}
        sources = sorted({str(user.identity["name"]) for user in each.users})
        yield (
            row
            | ({"sources": sources} if sources else {})
            | ({"num_unread": each.num_unread} if each.num_unread else {})
        )


def _log(store: Store, scratch: Path, receipt: Receipt, reason: str) -> str:
    """Store a receipt and log it with the first of its withdrawals."""
    from pipeline.stages.normalize.scrub.shown_text import shown_words  # other commands do not wait for its libraries

    reason = shown_words(reason)
    folder = scratch / "receipt"
    folder.mkdir()
    write_synced(folder / RECEIPT, canonical_json(asdict(receipt)))
    receipt_id = store.commit(folder, RECEIPT_KIND, {}, {})
    if not receipt.selectors:  # no file was withdrawn
        store.log_withdrawal("", reason, is_undone=True, receipt=receipt_id)
        return receipt_id
    first = receipt.selectors[0]
    holding = store.withdrawn_snapshots().get(first, NOBODY)
    store.log_withdrawal(first, reason, holding=holding, receipt=receipt_id)
    return receipt_id


def _replace(store: Store, object_id: str, files: Mapping[str, Path]) -> None:
    """Replace files of an object by those without what was erased. The record comes first: readers then accept both."""
    target = store.locate(object_id)
    if not files or target is None:
        return
    before = erased_files(store.root, object_id)
    store.record_erased(object_id, {**before, **{name: file_sha256(path) for name, path in files.items()}})
    for name, path in files.items():
        os.replace(path, target / name)
    sync(target)


def _compiled(store: Store, concerned: Iterable[WithdrawnPart]) -> list[Path]:
    """List the compiled results of the store, if one of the sources is built: they hold parts of its text."""
    is_built = any(each.source.identity.get("build") is not None for each in concerned)
    return visible(path for path in store.root.glob("units/*") if path.is_file()) if is_built else []
