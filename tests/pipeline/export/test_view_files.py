"""Files of the view: each has rows, and is under the name of its source."""

from pathlib import Path

from pipeline.core.digests import file_sha256
from pipeline.export.view_files import view_files
from pipeline.formats.tables import count_rows
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


def test_the_files_hold_every_document_and_row_once(tiny_store: Store, tmp_path: Path) -> None:
    snapshot = open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")
    files = view_files(snapshot, tmp_path / "a")
    rows: dict[str, int] = {}
    for file in files:
        rows[file.folder] = rows.get(file.folder, 0) + count_rows(file.stored)

    assert rows == {
        "documents": sum(source.num_documents for source in snapshot.sources),
        "packed/train": sum(source.num_rows_train for source in snapshot.sources),
        "packed/held_out": sum(source.num_rows_held_out for source in snapshot.sources),
    }
    assert len({file.path for file in files}) == len(files)
    assert all(count_rows(file.stored) for file in files), "`datasets` stops at a file without rows"
    assert all(
        (file_sha256(file.stored), file.stored.stat().st_size) == (file.sha256, file.num_bytes) for file in files
    )
    again = view_files(snapshot, tmp_path / "b")
    assert [(file.path, file.sha256) for file in again] == [(file.path, file.sha256) for file in files]
