"""Import of a bundle: it is unpacked aside and verified whole, then its objects enter the store, and refs name it last.

A kill before the end leaves what a killed build leaves: whole objects that no ref names. The next import uses
them, `gc` removes them.
"""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.core.durable import sync
from pipeline.core.errors import DamagedError, FormatError, SnapshotError, StoreError
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_FORMAT, SNAPSHOT_KIND, SNAPSHOT_ROWS
from pipeline.formats.tables import SHARD_LABEL
from pipeline.store.bundles.archive_members import ArchiveReader, compared, opened_archive
from pipeline.store.bundles.bundle import BUNDLE_REMEDY, CARD, BundleContents, parse_contents
from pipeline.store.bundles.stored_members import read_files, refuse_other_names
from pipeline.store.objects import PART_LABELS, Manifest, StoredObject, parse_manifest, read_manifest, shard_ids
from pipeline.store.refs import IMPORTED, LAST, ROWS_ALONE
from pipeline.store.snapshot import or_undo
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST

_WAIT_SECONDS = 600.0
"""Time to wait for another import or build of the corpus: every rank of a training imports its bundle."""

_NUM_THREADS = 16
"""Files that are synced at once: a file system writes its journal once for all of them."""


@dataclass(frozen=True)
class ImportedBundle:
    """The outcome of an import. `digest` is that of the export; `num_new` objects were not in the store before."""

    snapshot_id: str
    proof: str | None
    digest: str
    corpus: str
    num_objects: int
    num_new: int


def import_bundle(
    store: Store,
    source: Path,
    corpus: str = IMPORTED,
    refuse: Callable[[Store, str, Collection[str]], None] = lambda store, snapshot_id, object_ids: None,
    with_proof: bool = True,
) -> ImportedBundle:
    """Verify a bundle whole, store what the store does not have, and let the refs of a corpus name it as if it were built here.

    `refuse` may raise for the snapshot and the objects, given the store with what was unpacked, before anything is stored. Without
    `with_proof` the snapshot and its rows are stored. Raises DamagedError for any other byte than an export writes, FormatError
    for another version's, SnapshotError for what was withdrawn here.
    """
    subject = f"bundle {source.name}"
    with opened_archive(source, subject) as file:
        reader = ArchiveReader(file, subject, BUNDLE_REMEDY)
        contents = parse_contents(reader.first(), subject)
        _refuse_withdrawn(store, contents.snapshot)
        with store.writer(corpus, f"import of {source.name}", _WAIT_SECONDS) as scratch:
            unpacking = _Unpacking(store, reader, scratch, subject)
            manifests = unpacking.unpack(contents)
            _refuse_other_objects(contents, manifests, subject)
            _refuse_other_snapshot(unpacking.stored(contents.snapshot), subject)
            wanted = manifests if with_proof else _rows_of(contents.snapshot, manifests)
            refuse(_WithUnpacked(store, unpacking.folders), contents.snapshot, list(wanted))
            _adopt(store, contents, {name: manifests[name] for name in wanted}, unpacking.folders)
            _move_refs(store, contents, manifests, (corpus, f"imported from {source.name}"), with_proof)
    proof, num_new = (contents.proof if with_proof else None), len(unpacking.folders.keys() & set(wanted))
    return ImportedBundle(contents.snapshot, proof, contents.digest, corpus, len(wanted), num_new)


class _Unpacking:
    """Objects that are unpacked into a scratch folder: those that the store has not, each in `folders`."""

    def __init__(self, store: Store, reader: ArchiveReader, scratch: Path, subject: str) -> None:
        self.folders: dict[str, Path] = {}
        self._store = store
        self._reader = reader
        self._scratch = scratch
        self._subject = subject

    def unpack(self, contents: BundleContents) -> dict[str, Manifest]:
        """Read the archive to its end, and return the manifests of its objects in their order."""
        card = self._reader.member(CARD, contents.card_num_bytes)
        for _ in compared(card, contents.card_sha256, f"{CARD} of {self._subject}", BUNDLE_REMEDY):
            pass
        manifests = {name: self._unpack(name, num_bytes) for name, num_bytes in contents.objects.items()}
        self._reader.finish()
        return manifests

    def stored(self, object_id: str) -> StoredObject:
        """Open an object that was unpacked, or that the store had before."""
        path = self.folders.get(object_id)
        if path is None:
            return self._store.read(object_id)
        return StoredObject(path, parse_manifest((path / MANIFEST).read_bytes(), object_id, BUNDLE_REMEDY))

    def _unpack(self, object_id: str, num_bytes: int) -> Manifest:
        written = b"".join(self._reader.member(f"{object_id}/{MANIFEST}", num_bytes))
        manifest = parse_manifest(written, object_id, BUNDLE_REMEDY)
        refuse_other_names(manifest, self._subject, BUNDLE_REMEDY)
        folder = None if self._store.has_sound(object_id) else self._scratch / manifest.kind / object_id
        if folder is not None:
            folder.mkdir(parents=True)
            (folder / MANIFEST).write_bytes(written)
            self.folders[object_id] = folder
        read_files(self._reader, manifest, folder, BUNDLE_REMEDY)
        return manifest


class _WithUnpacked(Store):
    """The store as it would be with objects that stand in folders beside it."""

    def __init__(self, store: Store, folders: Mapping[str, Path]) -> None:
        super().__init__(store.root, store.clock)
        self._folders = folders

    def locate(self, object_id: str) -> Path | None:
        return self._folders.get(object_id) or super().locate(object_id)

    def read(self, object_id: str) -> StoredObject:
        path = self._folders.get(object_id)
        return super().read(object_id) if path is None else _Unpacked(path, read_manifest(path), self)


class _Unpacked(StoredObject):
    """An object in a folder beside the store, of which some shards may be in the store."""

    def __init__(self, path: Path, manifest: Manifest, store: Store) -> None:
        super().__init__(path, manifest)
        self._store = store

    @cached_property
    def shards(self) -> tuple[StoredObject, ...]:
        found = map(self._store.read, shard_ids(self.inputs))
        revision = self.identity.get("revision")
        return tuple(StoredObject(each.path, each.manifest, revision=revision) for each in found) or (self,)


def _refuse_withdrawn(store: Store, snapshot_id: str) -> None:
    withdrawn = store.withdrawn_snapshots()
    selector = next((name for name, each in withdrawn.items() if snapshot_id in each.held_by), None)
    if selector is not None:
        found = f"it holds what {selector} withdraws"
        remedy = f"Import a later snapshot, {or_undo(selector)}"
        raise SnapshotError(f"snapshot {snapshot_id[:12]}", found, "no withdrawn document", remedy)


def _refuse_other_objects(contents: BundleContents, manifests: Mapping[str, Manifest], subject: str) -> None:
    """Raise DamagedError unless the objects are the snapshot with all that it and its proof were made from, inputs first."""
    if contents.proof is None:
        expected = _rows_of(contents.snapshot, manifests)
        is_whole = manifests.keys() == set(expected)
    else:
        needed, seen, is_whole = {contents.proof}, set[str](), contents.proof in manifests
        for name in reversed(list(manifests)):
            is_whole = is_whole and name in needed
            needed |= set(manifests[name].inputs.values())
        for name, manifest in manifests.items():
            is_whole = is_whole and seen.issuperset(manifest.inputs.values())
            seen.add(name)
        is_whole = is_whole and contents.snapshot in manifests[contents.proof].inputs.values()
    stages = {name for name, manifest in manifests.items() if _is_stage(manifest)}
    is_snapshot = contents.snapshot in manifests and manifests[contents.snapshot].kind == SNAPSHOT_KIND
    if not (is_whole and is_snapshot and stages == contents.verdicts.keys()):
        found = "its objects are not a snapshot and what that was made from, each behind its inputs"
        raise DamagedError(subject, found, "what an export writes", BUNDLE_REMEDY)


def _rows_of(snapshot_id: str, manifests: Mapping[str, Manifest]) -> list[str]:
    """List the objects that a training reads: the rows of each source, then the snapshot."""
    inputs = manifests[snapshot_id].inputs if snapshot_id in manifests else {}
    rows = sorted({object_id for label, object_id in inputs.items() if label.startswith(SNAPSHOT_ROWS)})
    shards = {shard for name in rows if name in manifests for shard in shard_ids(manifests[name].inputs)}
    return [*sorted(shards), *rows, snapshot_id]


def _refuse_other_snapshot(stored: StoredObject, subject: str) -> None:
    content = stored.json(SNAPSHOT_FILE)
    found = content.get("format_version") if isinstance(content, dict) else None
    if found != SNAPSHOT_FORMAT:
        remedy = "Use the version of Sluice that wrote it, or build the snapshot by this one."
        raise FormatError(subject, f"its snapshot has format {str(found)[:20]}", f"{SNAPSHOT_FORMAT}", remedy)


def _adopt(store: Store, contents: BundleContents, wanted: Mapping[str, Manifest], folders: Mapping[str, Path]) -> None:
    """Move objects into the store, inputs first; what lists parts or shards after their keys; after a stage its verdicts."""
    parts = {
        object_id
        for manifest in wanted.values()
        for label, object_id in manifest.inputs.items()
        if label.startswith((*PART_LABELS, SHARD_LABEL))
    }
    unpacked = [folders[name] for name in wanted if name in folders]
    with ThreadPoolExecutor(_NUM_THREADS) as pool:
        list(pool.map(sync, [path for folder in unpacked for path in (*sorted(folder.iterdir()), folder)]))
        moved: list[str] = []
        for name, manifest in wanted.items():
            if _is_stage(manifest) or shard_ids(manifest.inputs):
                _record(store, pool, {each: wanted[each] for each in moved}, parts)
                moved = []
            if name in folders:
                store.adopt(folders[name], manifest, is_synced=True)
            moved.append(name)
            if name in contents.verdicts and store.verdicts(name) is None:
                store.put_verdicts(name, contents.verdicts[name])
        _record(store, pool, {each: wanted[each] for each in moved}, parts)
    if contents.proof is not None and contents.proof in wanted and store.verified_by(contents.snapshot) is None:
        store.mark_verified(contents.snapshot, contents.proof)


def _record(store: Store, pool: ThreadPoolExecutor, moved: Mapping[str, Manifest], parts: Collection[str]) -> None:
    """Sync the folders that objects were moved into, then record the work that made each part."""
    list(pool.map(sync, {store.root / "objects" / manifest.kind for manifest in moved.values()}))
    list(pool.map(lambda name: _remember(store, name, moved[name].key), sorted(moved.keys() & parts)))


def _remember(store: Store, object_id: str, key: str) -> None:
    """Record the work that made a part, unless the store knows of an object that the same work made here."""
    try:
        store.refuse_bad_key(object_id)
    except StoreError:
        store.remember(key, object_id)


def _is_stage(manifest: Manifest) -> bool:
    return manifest.kind.endswith("/stage")


def _move_refs(
    store: Store, contents: BundleContents, manifests: Mapping[str, Manifest], entry: tuple[str, str], with_proof: bool
) -> None:
    """Move the refs that a build moves; for rows alone, `candidate`."""
    corpus, reason = entry
    moves = {}
    if with_proof and contents.proof is not None:
        chain = [name for name, manifest in manifests.items() if _is_stage(manifest)]
        moves = {manifests[name].kind.partition("/")[0]: name for name in chain} | {LAST: contents.proof}
    moves["candidate"] = contents.snapshot
    has_proof = store.verified_by(contents.snapshot) is not None
    for ref, new in moves.items():
        holds = {} if has_proof or ref != "candidate" else {"holds": ROWS_ALONE}
        store.move_ref(corpus, ref, store.ref_text(corpus, ref), new, reason, holds)
