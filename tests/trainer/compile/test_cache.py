"""The cache of compiled code: its place, its status, and the copy of a populated one, whole or not at all."""

from pathlib import Path

import pytest

from pipeline.core.errors import StoreError
from trainer.compile.cache import copy_cache, record, status, variables_of


def warm(place: Path, vocabulary: str = "v" * 64) -> Path:
    (place / "inductor" / "ab").mkdir(parents=True)
    (place / "inductor" / "ab" / "code.py").write_text("pass")
    (place / "triton").mkdir()
    (place / "triton" / "kernel.cubin").write_bytes(b"\x7fELF")
    record(place, vocabulary, hits=3, misses=1)
    return place


def test_the_cache_is_in_the_store_that_the_command_names(tmp_path: Path) -> None:
    added, warning = variables_of(["train", f"--store={tmp_path}"], {"LOCAL_RANK": "0", "TRITON_CACHE_DIR": "/mine"})

    assert added["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "compiled" / "inductor")
    assert "TRITON_CACHE_DIR" not in added
    assert added["TORCHINDUCTOR_MAX_AUTOTUNE_GEMM"] == "0"
    assert added["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] == "7200"
    assert warning == ""
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_be_written_a_private_folder_is_named_in_a_warning(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("a file in place of the folder")

    added, warning = variables_of(["train", "--store", str(tmp_path)], {})

    place = Path(added["TORCHINDUCTOR_CACHE_DIR"]).parent
    assert str(place) in warning
    assert place.stat().st_mode & 0o777 == 0o700
    place.rmdir()


def test_a_warm_cache_is_copied_once_and_counts_its_hits(tmp_path: Path) -> None:
    source, place = warm(tmp_path / "warm"), tmp_path / "store" / "compiled"

    first, again = copy_cache(source, place, "v" * 64), copy_cache(source, place, "v" * 64)

    assert (first["copied"], again["copied"]) == (True, False)
    assert status(place).sha256 == status(source).sha256
    assert (place / "triton" / "kernel.cubin").read_bytes() == b"\x7fELF"
    assert (status(source).hits, status(source).misses) == (3, 1)


def test_a_changed_file_is_copied_anew(tmp_path: Path) -> None:
    source, place = warm(tmp_path / "warm"), tmp_path / "compiled"
    copy_cache(source, place, "v" * 64)
    (source / "inductor" / "ab" / "code.py").write_text("other")

    assert copy_cache(source, place, "v" * 64)["copied"]
    assert (place / "inductor" / "ab" / "code.py").read_text() == "other"


def test_a_cache_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    source = warm(tmp_path / "warm")
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="its vocabulary is v"):
        copy_cache(source, tmp_path / "place", "w" * 64)
    with pytest.raises(StoreError, match="holds no compiled code"):
        copy_cache(tmp_path / "cold", tmp_path / "place", "v" * 64)
    with pytest.raises(StoreError, match="not writable"):
        copy_cache(source, tmp_path / "file" / "place", "v" * 64)
    assert not (tmp_path / "place").exists()
