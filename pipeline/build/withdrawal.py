"""Withdrawals: sources, files or bytes that no corpus of a store may contain any more, and the objects that still contain them.

Withdrawals are logged in the store and are part of the identity of what they change only: other builds keep their ids.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pipeline.contracts.part import DUPLICATES_PART
from pipeline.core.change_text import change_path
from pipeline.core.digests import text_sha256
from pipeline.core.errors import MissingError, SnapshotError, StoreError, did_you_mean
from pipeline.core.table_names import DOCUMENTS, DUPLICATES, FILES, HISTORY, KEPT, TOKENS, TREE, VERSIONS
from pipeline.formats.snapshot_json import SNAPSHOT_KIND, SNAPSHOT_ROWS
from pipeline.pins.selection import Selector, Selectors
from pipeline.stages.stages import kinds_with
from pipeline.store.log import NOBODY, Holding
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import UNTOLD, Snapshot, SnapshotSource, open_snapshot, or_undo
from pipeline.store.store import Store
from pipeline.store.store_layout import is_id

OfSourceT = TypeVar("OfSourceT")


@dataclass(frozen=True)
class Holder:
    """An object that contains withdrawn documents: a snapshot, or a checkpoint whose weights one has shaped.

    A collected source is listed where it alone may hold what is withdrawn, and is damaged.
    """

    kind: str
    object_id: str
    num_documents: int | None
    """None where nothing in the store tells: what is damaged, a snapshot without its documents, a checkpoint without one of its."""
    refs: tuple[str, ...]
    copies: tuple[str, ...] = ()
    """Of a snapshot: documents dropped as copies of a withdrawn one, which the next build may keep instead."""
    kept_as: tuple[str, ...] = ()
    """Of a snapshot: documents that are not withdrawn, of which a withdrawn file was dropped as a copy."""

    @property
    def is_unknown_checkpoint(self) -> bool:
        """True of weights of which nothing in the store tells all that has shaped them."""
        return self.kind == "checkpoint" and self.num_documents is None


def active_withdrawals(store: Store) -> tuple[Selector, ...]:
    """Read the withdrawals that were not taken back, sorted."""
    return tuple(Selector(text) for text in store.active_withdrawals())


def withdrawal_lines(store: Store, source: str, path: str | None = None, *sha256s: str | None) -> tuple[str, ...]:
    """List the withdrawals of a file, or of a source as a whole, that were not taken back: selector, day and reason."""
    first: dict[str, dict[str, Any]] = {}
    for entry in store.withdrawals():
        if entry.get("is_undone"):
            first.pop(entry["selector"], None)
        else:
            first.setdefault(entry["selector"], entry)
    selectors = [Selector(text) for text in first]
    matching = (
        [each for each in selectors if each.is_whole_source and each.source == source]
        if path is None
        else Selectors(selectors).matching(source, path, *sha256s)
    )
    entries = [first[selector.text] for selector in matching]
    return tuple(f"by {each['selector']} on {each['when'][:10]}: {each['reason']}" for each in entries)


def withdraw(store: Store, text: str, reason: str) -> list[Holder]:
    """Log a withdrawal as `withdraw_all` does, and return what contains its documents."""
    return withdraw_all(store, [text], reason)


def withdraw_all(store: Store, texts: Iterable[str], reason: str) -> list[Holder]:
    """Log withdrawals and return what contains their documents. Raises MissingError for one of which the store has nothing.

    Weights that a snapshot has shaped which is not in the store may be of anything: with such ones, all are logged. One that is
    active is logged again where a snapshot contains its documents that no line of it names.
    """
    from pipeline.stages.normalize.scrub.shown_text import shown_words  # other commands do not wait for its libraries

    reason = shown_words(reason)
    selectors = Selectors(Selector(text) for text in texts)
    active, held = active_withdrawals(store), _held_by_snapshots(store, selectors)
    snapshots = {selector: _holding(held, selector) for selector in selectors.all}
    new = [selector for selector, holding in snapshots.items() if holding == NOBODY and selector not in active]
    found, damaged = _collected(store, Selectors(new))
    found_holders = _holders(store, held)
    if (missing := set(new) - found) and not any(each.is_unknown_checkpoint for each in found_holders):
        raise MissingError(
            f"withdrawal of {min(selector.text for selector in missing)}",
            "no snapshot and no collected source of the store contains it",
            "a source, a file or bytes in the store",
            "`python -m pipeline why SOURCE PATH` finds a file; a source that was never built is left out of the pins file.",
        )
    judged = frozenset(_names_of_kind(store, SNAPSHOT_KIND))
    for selector in [each for each in snapshots if each not in active]:
        store.log_withdrawal(selector.text, reason, holding=snapshots.pop(selector))
    _log_again(store, snapshots, judged, reason)
    return [*found_holders, *damaged]


def log_held(store: Store, snapshot_id: str, judged: Iterable[Selector] = ()) -> None:
    """Log what of the withdrawn a new snapshot holds: a build that had begun before the withdrawal does not leave it out.

    It holds nothing of what is `judged` already: its import, which saw more of it than is stored, was not refused.
    """
    told = dict.fromkeys(judged, NOBODY)
    since = [selector for selector in active_withdrawals(store) if selector not in told]
    held = {snapshot_id: _held(open_snapshot(store, snapshot_id), Selectors(since))} if since else {}
    _log_again(store, told, {snapshot_id}, "told by an import")
    found = {selector: _holding(held, selector) for selector in since}
    _log_again(store, found, {snapshot_id}, "held by what had begun before")


def _holding(held: Mapping[str, "_Held"], selector: Selector) -> Holding:
    return Holding(
        frozenset(name for name, each in held.items() if selector in each.matched),
        frozenset(name for name, each in held.items() if selector in each.unknown and selector not in each.matched),
    )


def _log_again(store: Store, found: Mapping[Selector, Holding], judged: Set[str], reason: str) -> None:
    """Log active withdrawals again where the log says something else of the snapshots that were judged now."""
    logged = store.withdrawn_snapshots() if found else {}
    for selector, holding in found.items():
        known = logged.get(selector.text, NOBODY)
        held_by = known.held_by | holding.held_by
        together = Holding(held_by, (known.unknown - judged | holding.unknown) - held_by)
        if together != known:
            store.log_withdrawal(selector.text, reason, holding=together)


def erased_revisions(store: Store) -> frozenset[str]:
    """Return the revisions of sources whose archives were erased, as receipts say, by withdrawals in force or for a person."""
    return frozenset(revision for receipt in store.stored_receipts() for revision in receipt.erased("revisions"))


def restore(store: Store, text: str, reason: str) -> None:
    """Take a withdrawal back: the next build may keep its documents. Raises MissingError if it is not active."""
    if Selector(text) not in active_withdrawals(store):
        names = [selector.text for selector in active_withdrawals(store)]
        expected = f"one of {', '.join(names)}" if names else "a withdrawal that is active; none is"
        remedy = did_you_mean(text, names, "`python -m pipeline withdraw` lists what is withdrawn.")
        raise MissingError(f"withdrawal of {text}", "it is not active", expected, remedy)
    from pipeline.stages.normalize.scrub.shown_text import shown_words  # other commands do not wait for its libraries

    store.log_withdrawal(text, shown_words(reason), is_undone=True)


def holders(store: Store, selectors: Iterable[Selector]) -> list[Holder]:
    """Find every snapshot with withdrawn documents and every checkpoint that one has shaped, with the refs of each.

    A checkpoint's inputs name all of them: those that its run has read, and those of its initial weights and of theirs.
    """
    together = Selectors(selectors)
    return _holders(store, _held_by_snapshots(store, together))


def refuse_withdrawn(store: Store, snapshot_id: str) -> None:
    """Raise SnapshotError if a snapshot contains withdrawn documents, or may: rolling back would restore them."""
    selectors = Selectors(active_withdrawals(store))
    held = _held(open_snapshot(store, snapshot_id), selectors) if selectors.all else _Held({}, frozenset())
    for selector in held.matched:
        number = sum(selector in matching for matching in held.documents.values())
        raise SnapshotError(
            f"snapshot {snapshot_id[:12]}",
            f"{number} of its documents are withdrawn by {selector.text}",
            "none",
            f"Build again and promote that, {or_undo(selector.text)}",
        )
    for selector in sorted(held.unknown, key=lambda selector: selector.text):
        raise SnapshotError(
            f"snapshot {snapshot_id[:12]}",
            f"{UNTOLD} it holds what {selector.text} withdraws",
            "a snapshot with its documents",
            f"Import its whole bundle, which tells, {or_undo(selector.text)}",
        )


def holds_withdrawn(store: Store, snapshot_id: str) -> bool:
    """Return whether a snapshot contains withdrawn documents. Of a damaged one nobody can tell: False."""
    try:
        selectors = Selectors(active_withdrawals(store))
        return bool(selectors.all and _held(open_snapshot(store, snapshot_id), selectors).documents)
    except (SnapshotError, StoreError):
        return False


class _Held(NamedTuple):
    """The withdrawn documents of a snapshot, each with the selectors that match it, and the selectors that nobody can judge."""

    documents: Mapping[str, list[Selector]]
    unknown: frozenset[Selector]
    copies: tuple[str, ...] = ()
    kept_as: tuple[str, ...] = ()

    @property
    def matched(self) -> list[Selector]:
        """The selectors that match a document, sorted."""
        found = {selector for matching in self.documents.values() for selector in matching}
        return sorted(found, key=lambda selector: selector.text)


def _held_by_snapshots(store: Store, selectors: Selectors) -> dict[str, _Held]:
    found: dict[str, _Held] = {}
    for snapshot_id in _names_of_kind(store, SNAPSHOT_KIND):
        try:
            snapshot = open_snapshot(store, snapshot_id)
        except (SnapshotError, StoreError):  # damaged: `fsck` names it, and a withdrawal waits for no repair
            if concerning := _that_may_concern(store, snapshot_id, selectors):
                found[snapshot_id] = _Held({}, concerning)
            continue
        held = _held(snapshot, selectors)
        copies, kept_as = _copies(snapshot, selectors, held)
        if held.documents or held.unknown or kept_as:
            found[snapshot_id] = held._replace(copies=copies, kept_as=kept_as)
    return found


def _that_may_concern(store: Store, snapshot_id: str, selectors: Selectors) -> frozenset[Selector]:
    """Return the selectors of sources that a damaged snapshot may have: those that its manifest names, if it can be read."""
    try:
        labels = [label for label in store.read(snapshot_id).manifest.inputs if label.startswith(SNAPSHOT_ROWS)]
    except StoreError:
        return frozenset(selectors.all)
    names = [label.removeprefix(SNAPSHOT_ROWS) for label in labels]
    return frozenset(each for each in selectors.all if any(map(each.concerns, names)))


def _holders(store: Store, held: Mapping[str, _Held]) -> list[Holder]:
    refs, found = store.named_by(), list[Holder]()
    for snapshot_id, each in held.items():
        number = len(each.documents) if each.documents or not each.unknown else None
        names = tuple(refs.get(snapshot_id, ()))
        found.append(Holder("snapshot", snapshot_id, number, names, each.copies, each.kept_as))
    unknown = {name for name, each in held.items() if each.unknown}
    for checkpoint_id in _names_of_kind(store, "training/checkpoint"):
        try:
            inputs = set(store.read(checkpoint_id).manifest.inputs.values())
        except StoreError:
            found.append(Holder("checkpoint", checkpoint_id, None, tuple(refs.get(checkpoint_id, ()))))
            continue
        number = len({document for name in inputs & held.keys() for document in held[name].documents})
        # Of a snapshot that is not here, such as of weights from elsewhere, nobody knows what it held.
        if number or unknown & inputs or any(store.locate(name) is None for name in inputs):
            found.append(Holder("checkpoint", checkpoint_id, number or None, tuple(refs.get(checkpoint_id, ()))))
    return found


def _held(snapshot: Snapshot, selectors: Selectors) -> _Held:
    documents: dict[str, list[Selector]] = {}
    unknown: set[Selector] = set()
    for source in snapshot.sources:
        if not selectors.concern(source.name):
            continue
        try:
            for document_id, path, sha256s in snapshot_documents(snapshot, source, selectors.has_digests):
                if matching := selectors.matching(source.name, path, *sha256s):
                    documents[document_id] = matching
        except StoreError:  # its rows came without the documents that they are of, or are damaged
            unknown.update(selector for selector in selectors.all if selector.concerns(source.name))
    return _Held(documents, frozenset(unknown))


def snapshot_documents(
    snapshot: Snapshot, source: SnapshotSource, with_digests: bool
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Iterate over the documents of a source: id, path and, where they are asked for, the digests of the bytes."""
    rows = snapshot.store.read(source.rows).table(TOKENS, ["document_id", "path"]).to_pydict()
    digests = _digests(snapshot, source.name) if with_digests else {}
    for document_id, path in zip(rows["document_id"], rows["path"], strict=True):
        yield document_id, path, digests.get(document_id, ())


def _digests(snapshot: Snapshot, source: str) -> dict[str, tuple[str, ...]]:
    """Return the digests of the bytes of each document of a source, also of those that were dropped as copies.

    A change has those of the versions too that it leads from and to.
    """
    rules = _input(snapshot, f"rules/{source}")
    collected = rules.inputs.get("files")
    versions = version_digests(snapshot.store.read(collected)) if collected else {}
    rows = rules.table(DOCUMENTS, ["document_id", "path", "blob_sha256"]).to_pylist()
    return {row["document_id"]: (row["blob_sha256"], *versions.get(row["path"], ())) for row in rows}


def version_digests(collected: StoredObject) -> dict[str, tuple[str, ...]]:
    """Return the digests of the versions of its file that each change of a collected source leads from and to, by its path."""
    if not collected.has(VERSIONS):
        return {}
    versions = collected.table(VERSIONS, ["path", "git_blob_id", "blob_sha256"]).to_pylist()
    digests = {(row["path"], row["git_blob_id"]): row["blob_sha256"] for row in versions}
    found = {}
    for link in collected.table(HISTORY, ["path", "commit_hash", "old_blob_id", "new_blob_id"]).to_pylist():
        ends = (digests.get((link["path"], link[end])) for end in ("old_blob_id", "new_blob_id"))
        found[change_path(link["commit_hash"], link["path"])] = tuple(sha256 for sha256 in ends if sha256)
    return found


def _copies(snapshot: Snapshot, selectors: Selectors, held: _Held) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List documents elsewhere that were dropped as copies of withdrawn ones, and those that were kept in place of such.

    Each has its similarity.
    """
    try:
        columns = ["document_id", "source", "path", "keeper_id", "keeper_source", "keeper_path", "jaccard"]
        compared = _input(snapshot, DUPLICATES_PART)
        losers = compared.table(DUPLICATES, columns).to_pylist()
        kept_ids = set(compared.table(KEPT, ["document_id"])["document_id"].to_pylist()) - held.documents.keys()
        names = sorted({row["source"] for row in losers if selectors.has_digests})
        digests = {key: sha256s for name in names for key, sha256s in _digests(snapshot, name).items()}
    except StoreError:
        return (), ()
    dropped: list[str] = []
    kept: set[str] = set()
    for row in losers:
        is_withdrawn = bool(selectors.matching(row["source"], row["path"], *digests.get(row["document_id"], ())))
        if row["keeper_id"] in held.documents and not is_withdrawn:
            dropped.append(f"{row['source']}/{row['path']} ({row['jaccard']:.3f})")
        if is_withdrawn and row["keeper_id"] in kept_ids:
            kept.add(f"{row['keeper_source']}/{row['keeper_path']} ({row['jaccard']:.3f})")
    return tuple(dropped), tuple(sorted(kept))


def _input(snapshot: Snapshot, label: str) -> StoredObject:
    """Read an input of a snapshot. Raises MissingError where it came without it."""
    found = snapshot.stored.manifest.inputs.get(label)
    if found is None:
        raise MissingError(f"snapshot {snapshot.snapshot_id[:12]}", f"it has no {label}", "a snapshot of a build")
    return snapshot.store.read(found)


def collected_parts(store: Store) -> Iterator[StoredObject]:
    """Iterate over the collected sources of the store, of all builds; one that was collected in shards is read as one."""
    parts = (store.read(part_id) for kind in kinds_with(FILES) for part_id in ids_of_kind(store, kind))
    yield from (part for part in parts if "revision" in part.identity)


def held_files(collected: StoredObject, *further: str) -> Iterator[dict[str, Any]]:
    """Iterate over the files of a collected source, as they are and as they were, and those that a build needs beside them.

    Each has its `path` and `blob_sha256`, and further columns of SourceFile.
    """
    for name in (FILES, VERSIONS) if collected.has(VERSIONS) else (FILES,):
        yield from collected.table(name, ["path", "blob_sha256", *further]).to_pylist()
    for row in collected.table(TREE).to_pylist() if collected.has(TREE) else ():
        sha256 = hashlib.sha256(row["content"]).hexdigest()
        yield {**row, "blob_sha256": sha256, "num_bytes": len(row["content"]), "is_evidence": False}


def subjects(collected: StoredObject) -> list[str]:
    """Return the subjects of the commits of a collected source, with repetitions; none of a source without a history."""
    if not collected.has(HISTORY):
        return []
    found: list[str] = collected.table(HISTORY, ["subject"])["subject"].to_pylist()
    return found


@dataclass(frozen=True)
class Unread:
    """A damaged object of a collected source, which nothing can be asked of. `source` is None where its manifest is damaged."""

    object_id: str
    source: str | None
    error: str

    def may_hold(self, selector: Selector) -> bool:
        """Return whether it may be of a source that the selector names."""
        return self.source is None or selector.concerns(self.source)


def from_collected(store: Store, read: Callable[[StoredObject], OfSourceT]) -> tuple[list[OfSourceT], list[Unread]]:
    """Return what `read` returns of each collected source, and those that are damaged: they stop no question about the others."""
    found, unread = list[OfSourceT](), list[Unread]()
    for name in (name for kind in kinds_with(FILES) for name in _names_of_kind(store, kind)):
        source = None
        try:
            part = store.read(name)
            if "revision" in part.identity:
                source = part.identity["name"]
                found.append(read(part))
        except StoreError as error:
            unread.append(Unread(name, source, str(error)))
    return found, unread


def _collected(store: Store, selectors: Selectors) -> tuple[set[Selector], list[Holder]]:
    """Return the selectors that match a file of a collected source, or a version of one, or may match a damaged one, and those."""

    def matching(part: StoredObject) -> set[Selector]:
        source, found = part.identity["name"], set[Selector]()
        for row in held_files(part) if selectors.concern(source) else ():
            found.update(selectors.matching(source, row["path"], row["blob_sha256"]))
        for subject in subjects(part) if selectors.has_digests else ():
            found.update(selectors.matching(source, "", text_sha256(subject)))
        return found

    found, unread = from_collected(store, matching) if selectors.all else ([], [])
    damaged = {each: [selector for selector in selectors.all if each.may_hold(selector)] for each in unread}
    refs = store.named_by() if unread else {}
    holders = [
        Holder("collected source", each.object_id, None, tuple(refs.get(each.object_id, ())))
        for each, concerned in damaged.items()
        if concerned
    ]
    return {selector for some in (*found, *damaged.values()) for selector in some}, holders


def ids_of_kind(store: Store, kind: str) -> list[str]:
    """Return the ids of the objects of a kind whose manifests can be read, sorted. `fsck` names the damaged ones."""
    found: list[str] = []
    for name in _names_of_kind(store, kind):
        try:
            found.append(store.read(name).object_id)
        except StoreError:
            continue
    return found


def _names_of_kind(store: Store, kind: str) -> list[str]:
    """Return the ids of the objects of a kind, also of those whose manifests are damaged or gone, sorted."""
    store.storage.fetch_all("objects")
    return sorted(path.name for path in store.root.glob(f"objects/{kind}/*") if is_id(path.name))
