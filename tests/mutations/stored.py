"""Stored bytes: ways to damage the files of a store, and to forge an object with digests that fit."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pipeline.build.stage_objects import chain, stage_of
from pipeline.core.digests import file_sha256
from pipeline.core.params import canonical_json
from pipeline.formats.tables import TABLE_SUFFIXES, count_rows
from pipeline.store.objects import FileEntry, Manifest, StoredObject, read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from tests.mutations.bench import CORPUS, Bench
from tests.mutations.offenses.row_offenses import write_bytes

Change = Callable[[dict[str, pa.Table]], dict[str, pa.Table]]


def truncate(path: Path) -> None:
    """Cut the last byte of a file off."""
    path.write_bytes(path.read_bytes()[:-1])


def files_judged(bench: Bench, stage: str) -> list[Path]:
    """Return the files that a stage wrote for the live snapshot, sorted by object and name."""
    verify_id = bench.store.ref(CORPUS, "verify")
    stored = next(each for each in chain(bench.store, verify_id) if stage_of(each) == stage)
    parts = [id for label, id in sorted(stored.manifest.inputs.items()) if label.startswith("part/")]
    objects = [stored, *(bench.store.read(part) for part in parts)]
    return [each.path / entry.name for each in objects for entry in each.manifest.files]


def parts_with(bench: Bench, name: str) -> list[StoredObject]:
    """Return the objects of the store that have a file of that name, sorted by the name of the part."""
    return [each for each in bench.objects() if any(entry.name == name for entry in each.manifest.files)]


def forge_rows(bench: Bench, change: Change) -> str:
    """Change the tables of the first source's rows, with digests that fit, and return the id of the forged snapshot."""
    part = next(each for each in parts_with(bench, "tokens.parquet") if _has_rows(each))
    names = [entry.name for entry in part.manifest.files if Path(entry.name).suffix in TABLE_SUFFIXES]
    before = {name: part.table(name) for name in names}
    after = change(dict(before))
    made = bench.folder / "forged"
    files = {name: write_bytes(after[name], made, name) for name in names if after[name] is not before[name]}
    return forge_files(bench, {part.object_id: files})


def forge_table(bench: Bench, name: str, change: Callable[[pa.Table], pa.Table]) -> str:
    """Change one table of the first source that has rows in it, with digests that fit; return the forged snapshot's id."""
    part = next(each for each in parts_with(bench, name) if each.table(name).num_rows > 1)
    content = write_bytes(change(part.table(name)), bench.folder / "forged", name)
    return forge_files(bench, {part.object_id: {name: content}})


def forge_files(bench: Bench, edits: Mapping[str, Mapping[str, bytes]]) -> str:
    """Replace files of objects, with digests that fit, and return the id of the snapshot that the store then names."""
    forge(bench.store, edits)
    found = bench.store.ref(CORPUS, "candidate")
    assert found is not None
    return found


def forge(store: Store, edits: Mapping[str, Mapping[str, bytes]]) -> dict[str, str]:
    """Replace files of objects, and give them and all that was made of them the ids that fit. Returns new ids by old.

    Refs, keys, proofs and verdicts are written anew by the code that writes them, so that they are as sound as before.
    """
    named = store.named_by()
    manifests = {path.parent.name: read_manifest(path.parent) for path in store.root.glob(f"objects/*/*/*/{MANIFEST}")}
    verified = {name: store.verified_by(name) for name in manifests}
    verdicts = {name: store.verdicts(name) for name in manifests}
    new: dict[str, str] = {}
    waiting = set(manifests)
    while waiting:
        for name in [name for name in sorted(waiting) if not set(manifests[name].inputs.values()) & waiting]:
            waiting.discard(name)
            found = _forge_one(store, store.read(name), edits.get(name, {}), new)
            if found != name:
                new[name] = found
    for old, places in named.items():
        for place in places if old in new else ():
            corpus, _, name = place.rpartition("/")
            store.move_ref(corpus, name, old, new[old], "forged")
    for old, forged in new.items():
        key = store.root / "keys" / manifests[old].key
        if key.exists():
            key.unlink()
            store.remember(store.read(forged).manifest.key, forged)
        if verdicts[old] is not None:
            store.put_verdicts(forged, verdicts[old]["verdicts"])
    for name, stage_id in verified.items():
        if stage_id is not None:
            store.mark_verified(new.get(name, name), new.get(stage_id, stage_id))
    return new


def _forge_one(store: Store, stored: StoredObject, files: Mapping[str, bytes], new: Mapping[str, str]) -> str:
    manifest = stored.manifest
    inputs = {label: new.get(id, id) for label, id in manifest.inputs.items()}
    texts = {
        entry.name: _renamed((stored.path / entry.name).read_bytes(), new)
        for entry in manifest.files
        if entry.name.endswith(".json") and set(manifest.inputs.values()) & set(new)
    }
    changed = {**texts, **files}
    if not changed and inputs == dict(manifest.inputs):
        return stored.object_id
    for name, content in changed.items():
        (stored.path / name).write_bytes(content)
    entries = tuple(_entry(stored.path / entry.name) for entry in manifest.files)
    identity = json.loads(_renamed(canonical_json(manifest.identity), new))
    return rename(stored.path, replace(manifest, inputs=inputs, files=entries, identity=identity))


def rename(path: Path, manifest: Manifest) -> str:
    """Write the manifest of an object whose files were changed, move the object to its id, and return that."""
    (path / MANIFEST).write_bytes(canonical_json(manifest.as_json()))
    path.rename(path.with_name(manifest.object_id))
    return manifest.object_id


def _entry(path: Path) -> FileEntry:
    num_rows = count_rows(path) if path.suffix in TABLE_SUFFIXES else None
    return FileEntry(path.name, file_sha256(path), path.stat().st_size, num_rows)


def _renamed(content: bytes, new: Mapping[str, str]) -> bytes:
    for before, after in new.items():
        content = content.replace(before.encode(), after.encode())
    return content


def _has_rows(stored: StoredObject) -> bool:
    return all(stored.table(name).num_rows > 1 for name in ("tokens.parquet", "rows_train.arrow"))
