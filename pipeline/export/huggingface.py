"""The Hugging Face view of a snapshot: which stored files it is made of, and where they lie in it."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.core.records import Split
from pipeline.formats.tables import count_rows
from pipeline.store.snapshot import Snapshot

TOKENS = "tokens.parquet"
FOLDERS = {TOKENS: "documents"} | {f"packed_{split}.parquet": f"packed/{split}" for split in Split}


@dataclass(frozen=True)
class ViewFile:
    """One Parquet file of the view: where it lies in it, and the stored file that it is a copy of."""

    folder: str
    path: str
    stored: Path
    sha256: str
    num_bytes: int


def view_files(snapshot: Snapshot) -> list[ViewFile]:
    """Every file of the view, by folder and then by source. Tables without rows are left out: `datasets` reads no such file."""
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
