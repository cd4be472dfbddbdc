"""Withdrawal: what no corpus of a store may hold any more, and who still holds it.

Withdrawals are kept in the store and enter the identity of what they change alone: a build that none touches has the ids that
it always had.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import MissingError, SnapshotError, StoreError
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.pins.selection import Selector
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store


@dataclass(frozen=True)
class Holder:
    """Something in the store that holds withdrawn documents: a snapshot or a checkpoint trained on one."""

    kind: str
    object_id: str
    num_documents: int
    refs: tuple[str, ...]
    copies: tuple[str, ...] = ()
    """Of a snapshot: what lost to a withdrawn document as its copy, and may take its place in the next build."""


def standing(store: Store) -> tuple[Selector, ...]:
    """The withdrawals that hold now, sorted: those taken back are out."""
    texts: set[str] = set()
    for entry in store.withdrawals():
        (texts.discard if entry.get("is_undone") else texts.add)(entry["selector"])
    return tuple(Selector(text) for text in sorted(texts))


def withdraw(store: Store, text: str, reason: str) -> list[Holder]:
    """Record a withdrawal and return who holds what it names. Raises MissingError where nothing in the store does."""
    selector = Selector(text)
    found = holders(store, selector)
    if not found and selector not in standing(store) and not _is_collected(store, selector):
        raise MissingError(
            f"withdrawal of {text}",
            "no snapshot and no collected source of the store holds it",
            "a source, a file or bytes that are here",
            "`why SOURCE PATH` finds a file; a source that was never built is left out of the pins file.",
        )
    if selector not in standing(store):
        store.log_withdrawal(selector.text, reason)
    return found


def restore(store: Store, text: str, reason: str) -> None:
    """Take a withdrawal back: the next build may hold what it names. Raises MissingError for one that does not stand."""
    if Selector(text) not in standing(store):
        names = ", ".join(selector.text for selector in standing(store)) or "none"
        raise MissingError(f"withdrawal of {text}", "it does not stand", f"one of: {names}")
    store.log_withdrawal(text, reason, is_undone=True)


def holders(store: Store, selector: Selector) -> list[Holder]:
    """Every snapshot with withdrawn documents and every checkpoint trained on one, with the refs that name each."""
    refs = store.named_by()
    found: list[Holder] = []
    for snapshot_id in _ids(store, SNAPSHOT_KIND):
        snapshot = open_snapshot(store, snapshot_id)
        withdrawn = set(_withdrawn(snapshot, selector))
        if withdrawn:
            names = tuple(refs.get(snapshot_id, ()))
            found.append(Holder("snapshot", snapshot_id, len(withdrawn), names, _copies(snapshot, selector, withdrawn)))
    numbers = {holder.object_id: holder.num_documents for holder in found}
    for checkpoint_id in _ids(store, "training/checkpoint"):
        number = numbers.get(store.read(checkpoint_id).manifest.inputs.get("snapshot", ""), 0)
        if number:
            found.append(Holder("checkpoint", checkpoint_id, number, tuple(refs.get(checkpoint_id, ()))))
    return found


def refuse_withdrawn(store: Store, snapshot_id: str) -> None:
    """Raise SnapshotError if a snapshot holds anything that is withdrawn: rolling back would bring it back."""
    selectors = standing(store)
    if not selectors:
        return
    snapshot = open_snapshot(store, snapshot_id)
    for selector in selectors:
        number = num_withdrawn(snapshot, selector)
        if number:
            raise SnapshotError(
                f"snapshot {snapshot_id[:12]}",
                f"{number} of its documents are withdrawn by {selector.text}",
                "none",
                "Build again and promote that, or take the withdrawal back with `withdraw --undo`.",
            )


def num_withdrawn(snapshot: Snapshot, selector: Selector) -> int:
    """How many documents of a snapshot a selector names."""
    return len(set(_withdrawn(snapshot, selector)))


def _withdrawn(snapshot: Snapshot, selector: Selector) -> Iterator[str]:
    """Ids of the documents of a snapshot that a selector names."""
    for source in snapshot.sources:
        if selector.source not in (None, source.name):
            continue
        rows = snapshot.store.read(source.rows).table("tokens.parquet", ["document_id", "path"])
        ids = rows["document_id"].to_pylist()
        if selector.sha256 is None:
            paths = rows["path"].to_pylist()
            yield from (name for name, path in zip(ids, paths, strict=True) if selector.matches_path(path))
        else:
            rules = snapshot.store.read(snapshot.stored.manifest.inputs[f"rules/{source.name}"])
            yield from sorted(set(ids) & _ids_of_bytes(rules, selector.sha256))


def _copies(snapshot: Snapshot, selector: Selector, withdrawn: set[str]) -> tuple[str, ...]:
    """Documents elsewhere that were dropped as copies of withdrawn ones, with their similarity."""
    compared = snapshot.store.read(snapshot.stored.manifest.inputs["duplicates"])
    losers = compared.table("duplicates.parquet", ["source", "path", "keeper_id", "jaccard"]).to_pylist()
    return tuple(
        f"{row['source']}/{row['path']} ({row['jaccard']:.3f})"
        for row in losers
        if row["keeper_id"] in withdrawn
        and not (selector.concerns(row["source"]) and selector.matches_path(row["path"]))
    )


def _ids_of_bytes(rules: StoredObject, sha256: str) -> set[str]:
    found = rules.table("documents.parquet", ["document_id", "blob_sha256"])
    import pyarrow.compute as pc

    return set(found.filter(pc.equal(found["blob_sha256"], sha256))["document_id"].to_pylist())


def _is_collected(store: Store, selector: Selector) -> bool:
    """Whether any collected source of the store holds a file that the selector names."""
    for part_id in _ids(store, "collect/part"):
        stored = store.read(part_id)
        if selector.source not in (None, stored.manifest.identity["name"]):
            continue
        files: dict[str, list[Any]] = stored.table("files.parquet", ["path", "blob_sha256"]).to_pydict()
        if any(map(selector.matches, files["path"], files["blob_sha256"])):
            return True
    return False


def _ids(store: Store, kind: str) -> list[str]:
    """Ids of the sound objects of a kind, sorted. Damaged ones are passed over: `fsck` names them."""
    found: list[str] = []
    for path in sorted(store.root.glob(f"objects/{kind}/*/manifest.json")):
        try:
            found.append(store.read(path.parent.name).object_id)
        except StoreError:
            continue
    return found
