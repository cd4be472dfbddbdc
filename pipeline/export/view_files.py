"""Parquet files of a snapshot, and their paths in the folder that `export huggingface` writes."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.core.records import Split
from pipeline.core.table_names import PACKED, TOKENS
from pipeline.formats.tables import count_rows
from pipeline.store.snapshot import Snapshot

FOLDERS = {TOKENS: "documents"} | {PACKED[split]: f"packed/{split}" for split in Split}


@dataclass(frozen=True)
class ViewFile:
    """One Parquet file of the view: its path there, and the stored file that it is a copy of."""

    folder: str
    path: str
    stored: Path
    sha256: str
    num_bytes: int


def view_files(snapshot: Snapshot) -> list[ViewFile]:
    """List the files of the view by folder, then by source, without tables that have no rows: `datasets` stops at them."""
    return [
        file
        for table, folder in FOLDERS.items()
        for source in snapshot.sources
        for file in _files(snapshot, source.name, source.rows, table, folder)
    ]


def _files(snapshot: Snapshot, source: str, rows: str, table: str, folder: str) -> list[ViewFile]:
    stored = snapshot.store.read(rows)
    entries = {entry.name: entry for entry in stored.manifest.files}
    paths = enumerate(stored.paths(table))
    return [
        ViewFile(
            folder=folder,
            path=f"{folder}/{source}-{number:05d}.parquet",
            stored=path,
            sha256=entries[path.name].sha256,
            num_bytes=entries[path.name].num_bytes,
        )
        for number, path in paths
        if count_rows(path)
    ]
