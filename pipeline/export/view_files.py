"""Parquet files of the folder that `export huggingface` writes: documents with their evidence, and packed rows as stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.digests import file_sha256
from pipeline.core.records import Split
from pipeline.core.table_names import PACKED
from pipeline.export.documents_view import documents_of
from pipeline.formats.tables import count_rows, write_table
from pipeline.store.snapshot import Snapshot, SnapshotSource

DOCUMENTS_FOLDER = "documents"
FOLDERS = {PACKED[split]: f"packed/{split}" for split in Split}
"""Folders of the stored tables, by table; each comes after that of the documents."""


@dataclass(frozen=True)
class ViewFile:
    """One Parquet file of the view: its path there, and the file with its bytes."""

    folder: str
    path: str
    stored: Path
    sha256: str
    num_bytes: int


def view_files(snapshot: Snapshot, folder: Path) -> list[ViewFile]:
    """List the files of the view by folder, then by source, without tables that have no rows: `datasets` stops at them.

    Those of documents are written below `folder`, with equal bytes for equal snapshots; all others are in the store.
    """
    written = [file for source in snapshot.sources for file in _documents(snapshot, source, folder)]
    stored = [
        file
        for table, name in FOLDERS.items()
        for source in snapshot.sources
        for file in _files(snapshot, source, table, name)
    ]
    return written + stored


def _documents(snapshot: Snapshot, source: SnapshotSource, folder: Path) -> Iterator[ViewFile]:
    documents = documents_of(snapshot, source)
    if not documents.num_rows:
        return
    place = folder / DOCUMENTS_FOLDER
    place.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(write_table(place, f"{source.name}.parquet", documents)):
        path = (place / name).rename(place / f"{source.name}-{number:05d}.parquet")
        shown = path.relative_to(folder).as_posix()
        yield ViewFile(DOCUMENTS_FOLDER, shown, path, file_sha256(path), path.stat().st_size)


def _files(snapshot: Snapshot, source: SnapshotSource, table: str, folder: str) -> list[ViewFile]:
    stored = snapshot.store.read(source.rows)
    entries = {shard.path / entry.name: entry for shard in stored.shards for entry in shard.manifest.files}
    paths = enumerate(stored.paths(table))
    return [
        ViewFile(
            folder=folder,
            path=f"{folder}/{source.name}-{number:05d}.parquet",
            stored=path,
            sha256=entries[path].sha256,
            num_bytes=entries[path].num_bytes,
        )
        for number, path in paths
        if count_rows(path)
    ]
