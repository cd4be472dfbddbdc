"""The storage of a folder reads and removes the files that are there."""

from pathlib import Path

from pipeline.core.digests import file_sha256
from pipeline.storage.storage import Storage


def test_a_folder_lists_reads_and_removes_its_own_files(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    (tmp_path / "keys").mkdir()
    for name in ("b", "a", ".c"):
        (tmp_path / "keys" / name).write_bytes(b"1")

    assert storage.names("keys") == ["a", "b"]
    assert storage.all_names("keys") == [".c", "a", "b"]
    assert storage.stored_sha256(tmp_path / "keys/a") == file_sha256(tmp_path / "keys/a")
    storage.remove("keys/a")
    assert not storage.has("keys/a")
    assert storage.has("keys/b")
