"""Export of a bundle: what it holds is found from the store, and each byte is compared with its digest while it is written."""

import hashlib
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from pipeline.formats.snapshot_json import SNAPSHOT_ROWS
from pipeline.store.bundles.archive_members import written_archive
from pipeline.store.bundles.bundle import CARD, CONTENTS, BundleContents
from pipeline.store.bundles.stored_members import add_object
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import Snapshot, missing_proof
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from pipeline.store.verdicts import missing_verdicts


@dataclass(frozen=True)
class ExportedBundle:
    """A bundle that was written. `digest` is that of its list of contents, which names all of its bytes."""

    snapshot_id: str
    digest: str
    num_objects: int
    num_bytes: int


def export_bundle(snapshot: Snapshot, target: Path, card: str, is_rows_only: bool = False) -> ExportedBundle:
    """Write a snapshot, with everything that it and its proof were made from, into one file. One that is there is replaced whole.

    `card` describes the snapshot for people. With `is_rows_only` it is the snapshot and its rows. Raises DamagedError, and
    MissingError for an object or a proof that is not in the store.
    """
    store, described = snapshot.store, card.encode()
    proof = None if is_rows_only else _proof(snapshot)
    stored = _rows(snapshot) if proof is None else _made_from(store, proof)
    contents = BundleContents(
        snapshot=snapshot.snapshot_id,
        proof=proof,
        objects={each.object_id: (each.path / MANIFEST).stat().st_size for each in stored},
        verdicts={each.object_id: _verdicts(store, each) for each in stored if each.kind.endswith("/stage")},
        card_sha256=hashlib.sha256(described).hexdigest(),
        card_num_bytes=len(described),
    )
    written = contents.as_bytes()
    with written_archive(target) as writer:
        writer.add(CONTENTS, len(written), [written])
        writer.add(CARD, len(described), [described])
        for each in stored:
            add_object(writer, each)
    return ExportedBundle(snapshot.snapshot_id, contents.digest, len(stored), target.stat().st_size)


def _proof(snapshot: Snapshot) -> str:
    found = snapshot.store.verified_by(snapshot.snapshot_id)
    if found is None:
        raise missing_proof(snapshot.store, snapshot.snapshot_id)
    return found


def _rows(snapshot: Snapshot) -> list[StoredObject]:
    labels = snapshot.stored.manifest.inputs
    rows = {object_id for label, object_id in labels.items() if label.startswith(SNAPSHOT_ROWS)}
    stored = [snapshot.store.read(object_id) for object_id in sorted(rows)]
    shards = {shard.object_id: shard for each in stored if each.is_joined for shard in each.shards}
    return [*(shards[name] for name in sorted(shards)), *stored, snapshot.stored]


def _made_from(store: Store, object_id: str) -> list[StoredObject]:
    """Read an object and all that it was made from, each behind its inputs, in an order that the ids alone give."""
    found: dict[str, StoredObject] = {}
    waiting = [object_id]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = store.read(name)
            waiting.extend(found[name].manifest.inputs.values())
    inputs = {name: list(stored.manifest.inputs.values()) for name, stored in found.items()}
    floors: dict[str, int] = {}
    for name in TopologicalSorter(inputs).static_order():
        floors[name] = 1 + max((floors[each] for each in inputs[name]), default=0)
    return [found[name] for name in sorted(found, key=lambda name: (floors[name], name))]


def _verdicts(store: Store, stage: StoredObject) -> list[dict[str, object]]:
    judged = store.verdicts(stage.object_id)
    if judged is None:
        raise missing_verdicts(stage.object_id, stage.kind.partition("/")[0])
    return list(judged["verdicts"])
