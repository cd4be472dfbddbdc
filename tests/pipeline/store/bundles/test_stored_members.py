"""Names in a manifest are places in a store, or are refused, and the files of an object are read back as they were written."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import DamagedError
from pipeline.store.bundles.archive_members import ArchiveReader, ArchiveWriter
from pipeline.store.bundles.stored_members import add_object, read_files, refuse_other_names
from pipeline.store.objects import FileEntry, Manifest, parse_manifest
from pipeline.store.store import Store
from tests.support.stored_text import commit_text

ENTRY = FileEntry("a.txt", "1" * 64, 5)
MADE = Manifest("test/object", {}, {"a": "2" * 64}, (ENTRY,))
FILES: list[dict[str, Any]] = [
    *({"name": name} for name in ("../outside", "sub/file", ".hidden", "manifest.json", "", 7)),
    *({"num_bytes": size} for size in (-1, 1 << 80, "5")),
    *({"sha256": digest} for digest in ("x", None)),
]
HOSTILE: list[dict[str, Any]] = [
    *({"files": (replace(ENTRY, **change),)} for change in FILES),
    {"files": (ENTRY, ENTRY)},
    *({"kind": kind} for kind in ("../outside", "a/../b", "one", "/etc/passwd", 7)),
    *({"inputs": inputs} for inputs in ({"a": "../x"}, {"a": 1}, [1])),
]


@pytest.mark.parametrize("change", HOSTILE, ids=str)
def test_what_is_no_place_in_a_store_is_refused(change: dict[str, Any]) -> None:
    refuse_other_names(MADE, "bundle x", "")
    with pytest.raises(DamagedError, match=r"^bundle x: the manifest of .* names what no store holds"):
        refuse_other_names(replace(MADE, **change), "bundle x", "")


def test_an_object_is_read_as_it_was_written(store: Store, tmp_path: Path) -> None:
    stored, file = store.read(commit_text(store, b"text")), io.BytesIO()
    add_object(ArchiveWriter(file), stored)
    reader = ArchiveReader(io.BytesIO(file.getvalue()), "archive x", "")
    name, content = reader.first()
    read_files(reader, parse_manifest(content, stored.object_id, ""), tmp_path, "")

    assert name == f"{stored.object_id}/manifest.json"
    assert (tmp_path / "content.txt").read_bytes() == b"text"
    (stored.path / "content.txt").write_bytes(b"test")
    with pytest.raises(DamagedError, match=r"file content\.txt of object .*: sha256"):
        add_object(ArchiveWriter(io.BytesIO()), stored)
