"""Small snapshots for proofs: a copy in a store of its own, and one of the first rows, whose epoch takes a few steps."""

import shutil
from pathlib import Path
from typing import Any

from pyarrow import ipc

from pipeline.core.durable import write_synced
from pipeline.core.params import canonical_json
from pipeline.core.records import Split
from pipeline.core.table_names import TRAINING_ROWS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST


def copy_snapshot(store: Store, snapshot_id: str, root: Path) -> Store:
    """Create a store that holds only one snapshot."""
    snapshot, copy = open_snapshot(store, snapshot_id), Store(root)
    with copy.writer("copied", f"a copy of {snapshot_id[:12]}") as scratch:
        rows = [store.read(source.rows) for source in snapshot.sources]
        shards = [shard for each in rows if each.is_joined for shard in each.shards]
        for stored in [*shards, *rows, store.read(snapshot_id)]:
            name = stored.object_id
            for entry in stored.manifest.files:
                stored.fetched(entry.name)
            shutil.copytree(stored.path, scratch / name, ignore=shutil.ignore_patterns(MANIFEST))
            copy.commit(scratch / name, stored.manifest.kind, stored.manifest.identity, stored.manifest.inputs)
    return copy


def shorten(store: Store, snapshot_id: str, num_rows: int) -> str:
    """Commit a snapshot that has at most `num_rows` rows of each source and split, and return its id."""
    snapshot = open_snapshot(store, snapshot_id)
    content: dict[str, Any] = snapshot.stored.json(SNAPSHOT_FILE)
    with store.writer("shortened", f"the first rows of {snapshot_id[:12]}") as scratch:
        for source in content["sources"]:
            folder = scratch / source["name"]
            folder.mkdir()
            for split in Split:
                size = _write_first_rows(
                    snapshot.row_files(source["name"], split), folder / TRAINING_ROWS[split], num_rows
                )
                source[f"num_rows_{split}"] = size
            kind = store.read(source["rows"]).manifest.kind
            source["rows"] = store.commit(folder, kind, {"first_rows": num_rows}, {"of": source["rows"]})
        folder = scratch / "snapshot"
        folder.mkdir()
        for entry in snapshot.stored.manifest.files:
            write_synced(folder / entry.name, snapshot.stored.file(entry.name).read_bytes())
        write_synced(folder / SNAPSHOT_FILE, canonical_json(content))
        inputs = {f"rows/{source['name']}": source["rows"] for source in content["sources"]}
        return store.commit(folder, snapshot.stored.manifest.kind, {"first_rows": num_rows}, inputs)


def _write_first_rows(files: list[Path], target: Path, num_rows: int) -> int:
    """Copy the first rows of one table as Arrow, and return how many."""
    left = num_rows
    with ipc.open_file(str(files[0])) as first, ipc.new_file(str(target), first.schema) as writer:
        for file in files:
            with ipc.open_file(str(file)) as reader:
                for index in range(reader.num_record_batches):
                    batch = reader.get_batch(index).slice(0, left)
                    writer.write_batch(batch)
                    left -= batch.num_rows
    return num_rows - left
