"""Withdrawals: sources, files or bytes that no corpus of a store may contain any more, and the objects that still contain them.

Withdrawals are logged in the store and are part of the identity of what they change only: other builds keep their ids.
"""

from dataclasses import dataclass
from typing import Any

from pipeline.contracts.part import DUPLICATES_PART
from pipeline.core.errors import MissingError, SnapshotError, StoreError, did_you_mean
from pipeline.core.table_names import DOCUMENTS, DUPLICATES, FILES, TOKENS
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.pins.selection import Selector
from pipeline.stages.stages import kinds_with
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store


@dataclass(frozen=True)
class Holder:
    """An object that contains withdrawn documents: a snapshot, or a checkpoint whose weights one has shaped."""

    kind: str
    object_id: str
    num_documents: int
    refs: tuple[str, ...]
    copies: tuple[str, ...] = ()
    """Of a snapshot: documents dropped as copies of a withdrawn one, which the next build may keep instead."""


def active_withdrawals(store: Store) -> tuple[Selector, ...]:
    """Read the withdrawals that were not taken back, sorted."""
    texts: set[str] = set()
    for entry in store.withdrawals():
        (texts.discard if entry.get("is_undone") else texts.add)(entry["selector"])
    return tuple(Selector(text) for text in sorted(texts))


def withdraw(store: Store, text: str, reason: str) -> list[Holder]:
    """Log a withdrawal and return what contains its documents. Raises MissingError if nothing in the store does."""
    selector = Selector(text)
    found = holders(store, selector)
    if not found and selector not in active_withdrawals(store) and not _is_collected(store, selector):
        raise MissingError(
            f"withdrawal of {text}",
            "no snapshot and no collected source of the store contains it",
            "a source, a file or bytes in the store",
            "`why SOURCE PATH` finds a file; a source that was never built is left out of the pins file.",
        )
    if selector not in active_withdrawals(store):
        snapshots = [holder.object_id for holder in found if holder.kind == "snapshot"]
        store.log_withdrawal(selector.text, reason, snapshots=snapshots)
    return found


def restore(store: Store, text: str, reason: str) -> None:
    """Take a withdrawal back: the next build may keep its documents. Raises MissingError if it is not active."""
    if Selector(text) not in active_withdrawals(store):
        names = [selector.text for selector in active_withdrawals(store)]
        expected = f"one of {', '.join(names)}" if names else "a withdrawal that is active; none is"
        remedy = did_you_mean(text, names, "`python -m pipeline withdraw` lists what is withdrawn.")
        raise MissingError(f"withdrawal of {text}", "it is not active", expected, remedy)
    store.log_withdrawal(text, reason, is_undone=True)


def holders(store: Store, selector: Selector) -> list[Holder]:
    """Find every snapshot with withdrawn documents and every checkpoint that one has shaped, with the refs of each.

    A checkpoint's inputs name all of them: those that its run has read, and those of its initial weights and of theirs.
    """
    refs = store.named_by()
    found: list[Holder] = []
    documents: dict[str, set[str]] = {}
    for snapshot_id in _ids(store, SNAPSHOT_KIND):
        snapshot = open_snapshot(store, snapshot_id)
        withdrawn = _withdrawn(snapshot, selector)
        if withdrawn:
            documents[snapshot_id] = withdrawn
            names = tuple(refs.get(snapshot_id, ()))
            found.append(Holder("snapshot", snapshot_id, len(withdrawn), names, _copies(snapshot, selector, withdrawn)))
    for checkpoint_id in _ids(store, "training/checkpoint"):
        inputs = store.read(checkpoint_id).manifest.inputs.values()
        number = len({document for name in inputs for document in documents.get(name, ())})
        if number:
            found.append(Holder("checkpoint", checkpoint_id, number, tuple(refs.get(checkpoint_id, ()))))
    return found


def refuse_withdrawn(store: Store, snapshot_id: str) -> None:
    """Raise SnapshotError if a snapshot contains withdrawn documents: rolling back would restore them."""
    selectors = active_withdrawals(store)
    if not selectors:
        return
    snapshot = open_snapshot(store, snapshot_id)
    for selector in selectors:
        number = len(_withdrawn(snapshot, selector))
        if number:
            raise SnapshotError(
                f"snapshot {snapshot_id[:12]}",
                f"{number} of its documents are withdrawn by {selector.text}",
                "none",
                "Build again and promote that, or take the withdrawal back with `withdraw --undo`.",
            )


def holds_withdrawn(store: Store, snapshot_id: str) -> bool:
    """Return whether a snapshot contains withdrawn documents. Of a damaged one nobody can tell: False."""
    try:
        selectors = active_withdrawals(store)
        snapshot = open_snapshot(store, snapshot_id) if selectors else None
        return snapshot is not None and any(_withdrawn(snapshot, selector) for selector in selectors)
    except (SnapshotError, StoreError):
        return False


def _withdrawn(snapshot: Snapshot, selector: Selector) -> set[str]:
    """Return the ids of the documents of a snapshot that a selector matches."""
    found: set[str] = set()
    for source in snapshot.sources:
        if selector.source not in (None, source.name):
            continue
        rows = snapshot.store.read(source.rows).table(TOKENS, ["document_id", "path"]).to_pydict()
        if selector.sha256 is None:
            pairs = zip(rows["document_id"], rows["path"], strict=True)
            found.update(name for name, path in pairs if selector.matches_path(path))
        else:
            rules = snapshot.store.read(snapshot.stored.manifest.inputs[f"rules/{source.name}"])
            found.update(_ids_of_bytes(rules, selector.sha256).intersection(rows["document_id"]))
    return found


def _copies(snapshot: Snapshot, selector: Selector, withdrawn: set[str]) -> tuple[str, ...]:
    """List documents elsewhere that were dropped as copies of withdrawn ones, with their similarity."""
    compared = snapshot.store.read(snapshot.stored.manifest.inputs[DUPLICATES_PART])
    losers = compared.table(DUPLICATES, ["source", "path", "keeper_id", "jaccard"]).to_pylist()
    return tuple(
        f"{row['source']}/{row['path']} ({row['jaccard']:.3f})"
        for row in losers
        if row["keeper_id"] in withdrawn
        and not (selector.concerns(row["source"]) and selector.matches_path(row["path"]))
    )


def _ids_of_bytes(rules: StoredObject, sha256: str) -> set[str]:
    found = rules.table(DOCUMENTS, ["document_id", "blob_sha256"])
    import pyarrow.compute as pc

    return set(found.filter(pc.equal(found["blob_sha256"], sha256))["document_id"].to_pylist())


def _is_collected(store: Store, selector: Selector) -> bool:
    """Return whether any collected source of the store contains a file that the selector matches."""
    for part_id in (part for kind in kinds_with(FILES) for part in _ids(store, kind)):
        stored = store.read(part_id)
        if selector.source not in (None, stored.manifest.identity["name"]):
            continue
        files: dict[str, list[Any]] = stored.table(FILES, ["path", "blob_sha256"]).to_pydict()
        if any(map(selector.matches, files["path"], files["blob_sha256"])):
            return True
    return False


def _ids(store: Store, kind: str) -> list[str]:
    """Return the ids of the undamaged objects of a kind, sorted. `fsck` names the damaged ones."""
    found: list[str] = []
    for path in sorted(store.root.glob(f"objects/{kind}/*/manifest.json")):
        try:
            found.append(store.read(path.parent.name).object_id)
        except StoreError:
            continue
    return found
