"""Collected sources as they are stored, compared with their own digests, their pin, and their archive where the store has it."""

import hashlib
from collections.abc import Collection, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pipeline.build.collected.collected_listing import listing_flaws
from pipeline.build.engines.part_task import measured
from pipeline.build.stage_objects import evidence_of, parts_of, report_of, stage_of, stage_params, was_made_here
from pipeline.contracts.part import EVIDENCE_LABEL, PartJob, PartOutput
from pipeline.contracts.stage_report import total
from pipeline.core.declared import load_declared
from pipeline.core.errors import SnapshotError
from pipeline.core.params import Params
from pipeline.core.table_names import (
    COMMIT_EVIDENCE,
    DROPPED,
    EVIDENCE,
    FILES,
    HISTORY,
    LISTED,
    LISTED_CHANGES,
    LISTED_EVIDENCE,
    TREE,
    VERSIONS,
)
from pipeline.lexing.languages import is_source
from pipeline.stages.collect.read_shards import READ
from pipeline.stages.collect.stage import LISTING_VERSION
from pipeline.stages.stages import STAGES
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_TABLES = (FILES, DROPPED, TREE, HISTORY, VERSIONS, COMMIT_EVIDENCE, LISTED, LISTED_CHANGES, LISTED_EVIDENCE)


def refuse_contradictions(store: Store, stage: StoredObject, pins: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise SnapshotError for a collected source whose files, digests, report or pin contradict each other.

    A source whose archive or commit is in the store is read from it again and must have the same tables.
    """
    for name, part_id in parts_of(stage).items():
        if was_made_here(part_id):
            continue
        stored = store.read(part_id)
        identity = stored.manifest.identity
        other = sorted(field for field, value in pins[name].items() if identity.get(field) != value)
        if identity["name"] != name or other:
            raise contradiction(stored, f"its {', '.join(other) or 'name'} are not those of pin {name}", "one pin")
        for shard in stored.shards:
            _refuse_other_rows(shard, name, identity["revision"])
        if stored.is_joined:
            _refuse_other_shards(store, stored, stage_params(stage))
        else:
            _refuse_other_tables(store, stored, stage_params(stage))
    for listing_id in evidence_of(stage).values():
        listing = store.read(listing_id)
        if _has(listing, LISTED) and not was_made_here(listing_id):
            if listing.identity.get("listing") != LISTING_VERSION:
                found = f"it has version {listing.identity.get('listing')} of a listing"
                raise contradiction(listing, found, str(LISTING_VERSION))
            _refuse_other_tables(store, listing, Params())
            for path, found, expected in listing_flaws(listing, store.read(listing.manifest.inputs["read"])):
                raise contradiction(listing, f"its entry of {path} {found}", expected)
    _refuse_other_sum(store, stage)


def _refuse_other_rows(stored: StoredObject, source: str, revision: str) -> None:
    """Raise SnapshotError for a file, or a drop, of a source whose columns contradict each other."""
    for number, row in enumerate(stored.table(FILES).to_pylist()):
        if row != _expected(row, source, revision):
            raise contradiction(stored, f"file {number}, {row['path']}, has digests of another", "those of its content")
    for number, row in enumerate(stored.table(DROPPED).to_pylist()):
        named = {"source": source, "record_id": f"{source}/{row['path']}", "license": None, "text_sha256": None}
        if row != {**row, **named}:
            raise contradiction(stored, f"drop {number}, {row['path']}, names another record", "its source and path")


def _refuse_other_shards(store: Store, stored: StoredObject, params: Params) -> None:
    """Raise SnapshotError unless the shards of a source, their reports and its evidence are those of its archive, if it is here."""
    identity, archive = stored.manifest.identity, _archive(store, stored.manifest.identity)
    kind = STAGES[stage_of(stored)].part_kind(identity["function"])
    for shard in stored.shards:
        tables = {name: shard.table(name) for name in (FILES, DROPPED)}
        job = PartJob(str(shard.identity["name"]), Params(), {}, shard.identity, {})
        if measured(job, PartOutput(tables), kind.measure).report.gate_measures != report_of(shard).gate_measures:
            raise contradiction(shard, "its report is not that of its tables", "the counts of its files and drops")
    if report_of(stored).gate_measures != total(map(report_of, stored.shards)).gate_measures:
        raise contradiction(stored, "its report is not that of its shards", "the sums of their counts")
    if archive is None:
        return
    places = {"source": archive, "scratch": store.root / "tmp"}
    function = STAGES[stage_of(stored)].part_kind(READ).functions[READ]
    output = load_declared("part read", "function", function)(PartJob(identity["name"], params, {}, identity, places))
    shards = [store.read(shard.object_id) for shard in stored.shards]  # without the revision, which is not theirs
    found = {FILES: shards, DROPPED: shards, EVIDENCE: [store.read(stored.inputs[EVIDENCE_LABEL])]}
    for name, objects in found.items():
        for each, table in zip_longest(objects, output.streams[name]):
            if each is None or table is None or not each.table(name).equals(table):
                raise contradiction(stored, f"its {name} are other than its archive's", identity["revision"])


def contradiction(stored: StoredObject, found: str, expected: str) -> SnapshotError:
    """Return the error of stored data that contradicts itself."""
    name = stored.manifest.identity.get("name")
    subject = f"{stored.manifest.kind} {stored.object_id[:12]}" + (f", {name}" if name else "")
    return SnapshotError(subject, found, expected, "The stored data contradicts itself. Build again and promote that.")


def _refuse_other_sum(store: Store, stage: StoredObject) -> None:
    """Raise SnapshotError unless the report of the stage is the sum of its parts' reports, as far as they report the same."""
    found, parts = report_of(stage), total(report_of(store.read(part)) for part in parts_of(stage).values())
    names = ("rows_out", "dropped", "num_bytes_in", "num_bytes_out")
    different = [name for name in names if getattr(found, name) != getattr(parts, name)]
    different += [name for name, value in parts.measures.items() if found.measures.get(name) != value]
    if different:
        raise contradiction(stage, f"its report has other {', '.join(different)}", "the sums of its parts")


def _expected(row: Mapping[str, Any], source: str, revision: str) -> dict[str, Any]:
    content = row["content"]
    return {
        **row,
        "source": source,
        "revision": revision,
        "blob_sha256": hashlib.sha256(content).hexdigest(),
        "git_blob_id": hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest(),
        "num_bytes": len(content),
        "is_evidence": not is_source(row["path"]),
    }


def _refuse_other_tables(store: Store, stored: StoredObject, params: Params) -> None:
    """Raise SnapshotError unless the report is that of the tables, and the tables are those of the archive, if it is here."""
    identity, kind = stored.manifest.identity, STAGES[stage_of(stored)].part_kind(stored.manifest.identity["function"])
    tables = {name: stored.table(name) for name in _TABLES if _has(stored, name)}
    archive = _archive(store, identity)
    inputs = {label: store.read(object_id) for label, object_id in stored.manifest.inputs.items()}
    job = PartJob(identity["name"], params, inputs, identity, {} if archive is None else {"source": archive})
    output = PartOutput(tables, report_of(stored), {})
    if archive is not None:
        output = load_declared(f"part {job.name}", "function", kind.functions[identity["function"]])(job)
        different = [name for name in tables.keys() | output.tables.keys() if not _equal(tables, output.tables, name)]
        if different:
            raise contradiction(
                stored, f"its {', '.join(sorted(different))} are other than its archive's", identity["revision"]
            )
    if measured(job, output, kind.measure).report.gate_measures != report_of(stored).gate_measures:
        raise contradiction(stored, "its report is not that of its tables", "the counts of its files and drops")


def _has(stored: StoredObject, name: str) -> bool:
    stem, _, suffix = name.rpartition(".")
    return any(entry.name == name or entry.name == f"{stem}-00000.{suffix}" for entry in stored.manifest.files)


def _equal(stored: Mapping[str, Any], read: Mapping[str, Any], name: str) -> bool:
    return name in stored and name in read and bool(stored[name].equals(read[name]))


def refuse_bad_archives(store: Store, stage: StoredObject, names: Collection[str] = ()) -> tuple[str, ...]:
    """Return the collected sources of which the store has no archive, sorted: a folder never has one.

    Raises the error that `fsck` reports for an archive or a name of one, or for what has one of these names, that is not as stored.
    """
    identities = {name: store.read(part_id).manifest.identity for name, part_id in parts_of(stage).items()}
    places = {name: _places(identity) for name, identity in identities.items() if identity["kind"] != "local"}
    found = store.verify_blobs([*names, *(place for each in places.values() for place in each)])
    return tuple(name for name, each in places.items() if found.isdisjoint(each))


def _archive(store: Store, identity: Mapping[str, Any]) -> Path | None:
    """Return the archive or the pack of a source, if the store has it; None for a folder. A damaged one was refused before."""
    revision, *names = _places(identity)
    found = [store.blob(revision), *map(store.named_blob, names)]
    return next((path for path in found if path is not None), None)


def _places(identity: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the digest of the blob of a source, if its revision is one, and the names that it may have."""
    revision = identity["revision"]
    return (revision, f"{identity['kind']}/{revision}", f"{identity['kind']}/{revision}.history")
