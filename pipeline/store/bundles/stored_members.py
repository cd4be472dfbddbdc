"""Stored members: the manifest of an object and its files, as members of an archive."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.core.errors import DamagedError
from pipeline.storage.checked_text import refuse_link
from pipeline.store.bundles.archive_members import ArchiveReader, ArchiveWriter, compared, file_chunks
from pipeline.store.objects import FileEntry, Manifest, StoredObject
from pipeline.store.store_layout import MANIFEST, is_id, is_name

_REMEDY = "`python -m pipeline fsck` lists all damage."
_MAX_FILE = 1 << 63


def add_object(writer: ArchiveWriter, stored: StoredObject) -> None:
    """Write the manifest of an object and its files. Raises DamagedError for a file that is not as its manifest says."""
    manifest = (stored.path / MANIFEST).read_bytes()
    writer.add(f"{stored.object_id}/{MANIFEST}", len(manifest), [manifest])
    for entry in stored.manifest.files:
        writer.add(f"{stored.object_id}/{entry.name}", entry.num_bytes, _content(stored, entry))


def read_files(reader: ArchiveReader, manifest: Manifest, folder: Path | None, remedy: str) -> None:
    """Read the files of an object into a folder; without one, read them to their ends. Raises DamagedError."""
    for entry in manifest.files:
        member = reader.member(f"{manifest.object_id}/{entry.name}", entry.num_bytes)
        subject = f"file {entry.name} of object {manifest.object_id[:12]} in the archive"
        with (folder / entry.name if folder is not None else Path(os.devnull)).open("wb") as file:
            for chunk in compared(member, entry.sha256, subject, remedy):
                file.write(chunk)


def refuse_other_names(manifest: Manifest, subject: str, remedy: str) -> None:
    """Raise DamagedError for a manifest whose names are no places in a store: its digest fits, and says nothing of that."""
    kinds, inputs = str(manifest.kind).split("/"), manifest.inputs
    files = [(entry.name, entry.sha256, entry.num_bytes) for entry in manifest.files]
    is_sound = (
        len(kinds) == 2
        and all(map(is_name, kinds))
        and isinstance(inputs, Mapping)
        and all(isinstance(each, str) and is_id(each) for each in inputs.values())
        and all(isinstance(name, str) and is_name(name) and name != MANIFEST for name, _, _ in files)
        and all(isinstance(sha256, str) and is_id(sha256) for _, sha256, _ in files)
        and all(isinstance(num_bytes, int) and 0 <= num_bytes < _MAX_FILE for _, _, num_bytes in files)
        and len({name for name, _, _ in files}) == len(files)
    )
    if not is_sound:
        found = f"the manifest of {manifest.object_id[:12]} names what no store holds"
        raise DamagedError(subject, found, "names, digests and sizes of files, and ids of inputs", remedy)


def _content(stored: StoredObject, entry: FileEntry) -> Iterator[bytes]:
    path, subject = stored.fetched(entry.name), f"file {entry.name} of object {stored.object_id[:12]}"
    refuse_link(path, 1, subject, _REMEDY)
    with path.open("rb") as file:
        yield from compared(file_chunks(file), entry.sha256, subject, _REMEDY)
