"""The snapshot: output of a build and input of a training run. Its id is the id of one object that names everything inside.

A snapshot object holds `snapshot.json` (below), the vocabulary's files, and the ids of the row objects in its manifest.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.core.command_line import shell_command
from pipeline.core.errors import MissingError, SnapshotError
from pipeline.core.records import Split
from pipeline.core.table_names import TRAINING_ROWS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_FORMAT, SNAPSHOT_KIND
from pipeline.store.named_objects import how_to_make, missing_corpus, resolve, showing
from pipeline.store.objects import FileEntry, StoredObject
from pipeline.store.refs import LIVE
from pipeline.store.store import Store

UNTOLD = "nothing in the store tells whether"
"""Beginning of what is said of a snapshot whose rows are here without the documents that they are of."""
REFS = (LIVE, "candidate")
"""Refs of a corpus that name a snapshot."""
_OF_STAGE = "part/snapshot"
"""Input of the stage that composed a snapshot."""


@dataclass(frozen=True)
class SnapshotSource:
    """One source in a snapshot. `licenses` counts its documents by normalized SPDX expression."""

    name: str
    rows: str
    """Id of the object that holds its rows."""
    weight: float
    num_documents: int
    num_tokens: int
    num_text_bytes: int
    num_rows_train: int
    num_rows_held_out: int
    licenses: Mapping[str, int]


@dataclass(frozen=True)
class Snapshot:
    """An open snapshot."""

    store: Store
    stored: StoredObject
    sources: tuple[SnapshotSource, ...]
    vocabulary: Mapping[str, Any]
    """`name`, `sha256`, `size` and `specials` (spelling -> id)."""
    row_length: int
    content: Mapping[str, Any]
    """snapshot.json as a whole, with `pins` and `held_out`."""

    @property
    def snapshot_id(self) -> str:
        return self.stored.object_id

    @property
    def licenses(self) -> dict[str, int]:
        """Numbers of documents by license expression, the most frequent first."""
        counts: Counter[str] = Counter()
        for source in self.sources:
            counts.update(source.licenses)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def tokenizer_file(self) -> Path:
        """The path of tokenizer.json, as `tokenizers.Tokenizer.from_file` reads it."""
        return self.stored.file("tokenizer.json")

    def row_files(self, source: str, split: Split) -> list[Path]:
        """Return the verified files of a source's training rows in one split. Raises SnapshotError for an unknown source."""
        return self._rows_of(source).paths(TRAINING_ROWS[split])

    def row_entries(self, source: str, split: Split) -> list[tuple[StoredObject, FileEntry]]:
        """Return the same files as they are named, in order, each with its object. None is read or fetched."""
        return self._rows_of(source).entries(TRAINING_ROWS[split])

    def _rows_of(self, source: str) -> StoredObject:
        for entry in self.sources:
            if entry.name == source:
                return self.store.read(entry.rows)
        names = ", ".join(entry.name for entry in self.sources)
        raise SnapshotError(f"snapshot {self.snapshot_id[:12]}", f"no source {source}", f"one of {names}")


def resolve_snapshot(store: Store, corpus: str, name: str) -> str:
    """Return the id of `live`, `candidate`, of what `last` composed, or of an object by its id or the first digits of it.

    Raises MissingError saying how to make one, SnapshotError for an object without one.
    """
    if name not in REFS:
        return _snapshot_of(store, corpus, name)
    named = store.ref(corpus, name)
    if named is None:
        refs = store.refs(corpus)
        what, remedy = f"snapshot {name} of corpus {corpus}", how_to_make(store, corpus, name)
        if not refs:
            raise missing_corpus(store, corpus, what, remedy)
        raise MissingError(
            what, f"there is none in {store.storage.address}", f"one of its refs {', '.join(refs)}", remedy
        )
    return named


def _snapshot_of(store: Store, corpus: str, name: str) -> str:
    stored = store.read(resolve(store, corpus, name))
    if stored.manifest.kind == SNAPSHOT_KIND:
        return stored.object_id
    if _OF_STAGE in stored.manifest.inputs:
        return stored.manifest.inputs[_OF_STAGE]
    judged = (store.verdicts(stored.object_id) or {"verdicts": []})["verdicts"]
    blocked = [verdict["gate"] for verdict in judged if verdict["blocking"] and not verdict["passed"]]
    by = f", where {', '.join(blocked)} blocked its build" if blocked else ""
    show = shell_command("pipeline show", name, corpus=corpus) if blocked else showing(store, corpus)
    remedy = f"`{show}` shows what blocked it." if blocked else f"`{show}` lists the refs of a corpus."
    found = f"it is a {stored.manifest.kind}{by}"
    raise SnapshotError(f"object {stored.object_id[:12]}", found, "a snapshot", remedy)


def missing_proof(store: Store, snapshot_id: str) -> MissingError:
    """Return the error for a snapshot without what verified it: also where it was imported with its rows alone."""
    if snapshot_id not in store.rows_alone():
        found = "no verify stage is recorded that its gates let pass"
        remedy = "Where a gate blocked it, correct that; build it again, or import its whole bundle."
        return MissingError(f"proof of snapshot {snapshot_id[:12]}", found, "", remedy)
    whole = shell_command("pipeline snapshot import", "FILE", store=store.storage.address)
    needing = "`export megatron`, `snapshot export --rows-only` and a training need rows alone"
    remedy = f"Build it again, or import its whole bundle: `{whole}`. {needing}."
    expected = "one with the documents and the evidence that they were made of"
    found = "no verify stage is recorded, as it was imported with its rows alone"
    return MissingError(f"snapshot {snapshot_id[:12]}", found, expected, remedy)


def or_undo(selector: str) -> str:
    """Return the end of a remedy for what holds withdrawn documents: the command that takes the withdrawal back."""
    return f"or take the withdrawal back with `{shell_command('pipeline withdraw', '--undo', selector)}`."


def open_usable(store: Store, snapshot_id: str) -> Snapshot:
    """Open a snapshot to train on it, or to hand it on.

    Raises SnapshotError also if it holds what is withdrawn, and DamagedError where the log of withdrawals does not tell.
    """
    snapshot = open_snapshot(store, snapshot_id)
    for selector, holding in store.withdrawn_snapshots().items():
        if snapshot_id in holding.held_by:
            found, remedy = "it holds what", f"Build and promote its corpus again and take that, {or_undo(selector)}"
        elif snapshot_id in holding.unknown:
            found, remedy = f"{UNTOLD} it holds what", f"Import its whole bundle, which tells, {or_undo(selector)}"
        else:
            continue
        raise SnapshotError(
            f"snapshot {snapshot_id[:12]}", f"{found} {selector} withdraws", "no withdrawn document", remedy
        )
    return snapshot


def open_snapshot(store: Store, snapshot_id: str) -> Snapshot:
    """Open a snapshot. Raises SnapshotError if the object is not a snapshot or has another format."""
    stored = store.read(snapshot_id)
    if stored.manifest.kind != SNAPSHOT_KIND:
        raise SnapshotError(
            f"object {snapshot_id[:12]}",
            f"it is a {stored.manifest.kind}",
            "a snapshot",
            f"`{showing(store)}` lists the refs of a corpus.",
        )
    content = stored.json(SNAPSHOT_FILE)
    if content["format_version"] != SNAPSHOT_FORMAT:
        raise SnapshotError(f"snapshot {snapshot_id[:12]}", f"format {content['format_version']}", f"{SNAPSHOT_FORMAT}")
    sources = tuple(SnapshotSource(**source) for source in content["sources"])
    return Snapshot(store, stored, sources, content["vocabulary"], content["row_length"], content)
