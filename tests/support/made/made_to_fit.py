"""Contradictions whose digests fit: a stored file is edited, and every manifest, id, key, proof and ref above it rewritten."""

import json
import shutil
from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.formats.tables import read_table, write_table
from pipeline.store.objects import read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST

Edit = Callable[[Path], object]
"""Changes a file in place."""


def fit(
    store: Store,
    corpus: str,
    edits: Mapping[str, Mapping[str, Edit]],
    identities: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Edit files of objects, given as object id -> file name -> edit, and return the id of the candidate that has them.

    `identities` are other values of fields of their identities, by object id.

    Every object above an edited one is stored under its new id, with new keys, proofs and refs: no digest tells.
    """
    stages = [name for name in store.refs(corpus) if name not in ("live", "candidate")]
    new_ids: dict[str, str] = {}
    said = identities or {}
    inputs = _inputs_of(store, [store.ref(corpus, "verify") or "", store.ref(corpus, "candidate") or ""])
    with store.writer("fitting", "a test") as scratch:
        for name in TopologicalSorter(inputs).static_order():
            if name in edits or name in said or any(other in new_ids for other in inputs[name]):
                made = _edited(store, scratch / name, name, edits.get(name, {}), new_ids)
                new_ids[name] = _store_again(store, made, name, said.get(name, {}), new_ids)
    verify_id = new_ids[store.ref(corpus, "verify") or ""]
    snapshot_id = store.read(verify_id).manifest.inputs["part/snapshot"]
    store.mark_verified(snapshot_id, verify_id)
    for ref in (*stages, "candidate"):
        old = store.ref(corpus, ref) or ""
        store.move_ref(corpus, ref, old, new_ids.get(old, old), "made to fit")
    return snapshot_id


def edit_table(change: Callable[[pa.Table], pa.Table]) -> Edit:
    """Return an edit of a table file."""

    def edit(path: Path) -> None:
        table = change(read_table([path]).combine_chunks())
        copied = pa.ipc.open_stream(_streamed(table)).read_all()  # a memory-mapped file is about to be overwritten
        write_table(path.parent, path.name, copied)

    return edit


def edit_json(change: Callable[[Any], Any]) -> Edit:
    """Return an edit of a JSON file."""
    return lambda path: path.write_bytes(json.dumps(change(json.loads(path.read_bytes())), sort_keys=True).encode())


def set_value(column: str, change: Callable[[Any], Any], row: int = 0) -> Edit:
    """Return an edit that changes the value of a column in one row."""

    def change_table(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        before = values[row]
        values[row] = change(before)
        assert values[row] != before, "an edit that changes nothing shows nothing"
        index = table.schema.get_field_index(column)
        return table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type))

    return edit_table(change_table)


def without_row(row: int = 0) -> Edit:
    """Return an edit that takes a row out."""
    return edit_table(lambda table: pa.concat_tables([table.slice(0, row), table.slice(row + 1)]))


def _streamed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _inputs_of(store: Store, waiting: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = list(store.read(name).manifest.inputs.values())
            waiting += found[name]
    return found


def _edited(store: Store, folder: Path, name: str, edits: Mapping[str, Edit], new_ids: Mapping[str, str]) -> Path:
    """Copy the files of an object, edited, with new ids for old ones inside the JSON files, and return their folder."""
    shutil.copytree(store.read(name).path, folder, ignore=shutil.ignore_patterns(MANIFEST))
    for file in folder.glob("*.json"):
        text = file.read_text()
        for old, new in new_ids.items():
            text = text.replace(old, new)
        file.write_text(text)
    for file_name, edit in edits.items():
        edit(folder / file_name)
    return folder


def _store_again(store: Store, folder: Path, name: str, said: Mapping[str, Any], new_ids: Mapping[str, str]) -> str:
    """Commit a copy of an object with new ids for old ones, and other fields of its identity."""
    manifest = read_manifest(store.read(name).path)
    inputs = {label: new_ids.get(input_id, input_id) for label, input_id in manifest.inputs.items()}
    object_id = store.commit(folder, manifest.kind, {**manifest.identity, **said}, inputs)
    store.remember(store.read(object_id).manifest.key, object_id)
    if manifest.kind.endswith("/stage"):
        store.put_verdicts(object_id, (store.verdicts(name) or {"verdicts": []})["verdicts"])
    return object_id
