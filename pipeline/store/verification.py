"""Verification of objects, of all that they were made from, and of what the store records of them.

Files are read by several threads, at the speed of the disk.
"""

import os
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pipeline.core.errors import MissingError
from pipeline.store.log import LOGS
from pipeline.store.objects import PART_LABELS, StoredObject, read_manifest
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from pipeline.store.verdicts import missing_verdicts


@dataclass(frozen=True)
class Verified:
    """Objects that were verified: every file has the bytes that its manifest names, and every input is in the store."""

    num_objects: int
    num_bytes: int


def verify_objects(store: Store, object_ids: Iterable[str], num_threads: int | None = None) -> Verified:
    """Verify every file of the objects, of their inputs, and so on back to the objects that have none.

    A file that this process has read, and that has not changed since, is not read again. Raises DamagedError, or MissingError with
    the object that needs what is missing.
    """
    found = _reachable(store, object_ids)
    files = [(entry.num_bytes, stored, entry.name) for stored in found for entry in stored.manifest.files]
    files.sort(key=lambda file: -file[0])  # the largest first: otherwise one thread reads it last while the others wait
    with ThreadPoolExecutor(num_threads or os.cpu_count()) as pool:
        list(pool.map(lambda file: file[1].file(file[2]), files))  # raises the first error
    return Verified(len(found), sum(num_bytes for num_bytes, _, _ in files))


def refuse_damaged_records(store: Store, corpus: str, object_ids: Collection[str], moved: str) -> None:
    """Raise the error that `fsck` reports for what the store records of objects: logs, refs in a corpus, verdicts, keys of parts.

    `moved` is the ref that is about to be written anew, whatever it holds.
    """
    for log in LOGS:
        list(store.entries(log))
    store.refuse_bad_refs(corpus, object_ids, but=moved)
    for object_id in object_ids:
        manifest = store.read(object_id).manifest
        stage, _, last = manifest.kind.partition("/")
        if last == "stage" and store.verdicts(object_id) is None:
            raise missing_verdicts(object_id, stage)
        for label, part_id in manifest.inputs.items():
            if label.startswith(PART_LABELS):
                store.refuse_bad_key(part_id)


def _reachable(store: Store, object_ids: Iterable[str]) -> list[StoredObject]:
    folders = {path.name: path for path in sorted(store.root.glob("objects/*/*/*"), reverse=True)}
    sha256_of = partial(store.storage.stored_sha256, is_known=True)
    found: dict[str, StoredObject] = {}
    waiting = [(object_id, "what is verified") for object_id in object_ids]
    while waiting:
        name, needed_by = waiting.pop()
        if name in found:
            continue
        if store.storage.is_shared:
            store.storage.fetch_object(name)
            folders |= {path.name: path for path in store.root.glob(f"objects/*/*/{name}")}
        if name not in folders or not (folders[name] / MANIFEST).exists():
            remedy = "Build again to make it, then promote again."
            raise MissingError(f"object {name[:12]}", "it is not in the store", f"an input of {needed_by}", remedy)
        found[name] = stored = StoredObject(folders[name], read_manifest(folders[name]), sha256_of)
        waiting += [(input_id, f"{stored.manifest.kind} {name[:12]}") for input_id in stored.manifest.inputs.values()]
    return list(found.values())
