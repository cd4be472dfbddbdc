"""Result cache: an entry comes back as it was written, or not at all."""

from pathlib import Path

import pytest

from pipeline.stages.enrich.compiler.result_cache import ResultCache


def test_an_entry_is_read_by_its_key_and_kind(tmp_path: Path) -> None:
    ResultCache(tmp_path, "unit").write(["a", 1], {"value": [1, "é"]})

    assert ResultCache(tmp_path, "unit").read(["a", 1]) == {"value": [1, "é"]}
    assert ResultCache(tmp_path, "unit").read(["a", 2]) is None
    assert ResultCache(tmp_path, "other").read(["a", 1]) is None


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b'{"value": 2, "digest": "0"}', b"\xff"])
def test_a_damaged_entry_is_missing(tmp_path: Path, damage: bytes) -> None:
    cache = ResultCache(tmp_path, "unit")
    cache.write("key", {"value": 1})
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)

    assert cache.read("key") is None


def test_an_entry_that_cannot_be_written_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (None, tmp_path / "file"):
        ResultCache(folder, "unit").write("key", {"value": 1})
        assert ResultCache(folder, "unit").read("key") is None
