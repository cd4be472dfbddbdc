"""An archive of a checkpoint: an export is imported as the same checkpoint, and nothing else is."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.errors import FormatError, StoreError, TrainingError
from pipeline.store.store import Store
from tests.faults.injected_faults import flip
from tests.support.made.made_checkpoints import made, put
from trainer.checkpoint import checkpoint_archive
from trainer.checkpoint.checkpoint import load


def test_an_export_is_the_same_bytes_everywhere_and_imports_as_the_same_checkpoint(
    store: Store, tmp_path: Path
) -> None:
    checkpoint_id = put(store, made(2))
    other = Store(tmp_path / "other")
    shas = {
        checkpoint_archive.export_archive(place, put(place, made(2)), tmp_path / name)
        for place, name in ((store, "a"), (other, "b"))
    }
    third = Store(tmp_path / "third")

    assert len(shas) == 1
    assert checkpoint_archive.import_archive(third, tmp_path / "a") == checkpoint_id
    assert load(third, checkpoint_id).state() == made(2).state()


def with_member(tar: tarfile.TarFile, member: tarfile.TarInfo, content: bytes = b"") -> None:
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def planted_link(path: Path) -> None:
    with tarfile.open(path, "a:") as tar:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        with_member(tar, member)


def planted_parent(path: Path) -> None:
    with tarfile.open(path, "a:") as tar:
        with_member(tar, tarfile.TarInfo("../outside"), b"x")


def another_mode(path: Path) -> None:
    content = bytearray(path.read_bytes())
    with tarfile.open(path) as tar:
        member = tar.getmembers()[-1]
    header = bytearray(content[member.offset : member.offset + 512])
    header[100:108] = b"0000755\0"
    header[148:156] = b"        "
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    content[member.offset : member.offset + 512] = header
    path.write_bytes(content)


@pytest.mark.parametrize(
    "spoil",
    [
        planted_link,
        planted_parent,
        another_mode,
        flip,
        lambda path: path.write_bytes(path.read_bytes() + b"\0"),
        lambda path: path.write_bytes(path.read_bytes()[:-600]),
        lambda path: path.write_bytes(b"no tar"),
    ],
    ids=["a link", "a path with ..", "another mode", "a flipped bit", "a byte more", "cut short", "no tar"],
)
def test_an_import_takes_an_export_and_nothing_else(
    store: Store, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    checkpoint_archive.export_archive(store, put(store, made(2)), tmp_path / "a.tar")
    spoil(tmp_path / "a.tar")
    other = Store(tmp_path / "other")

    with pytest.raises((TrainingError, StoreError)):
        checkpoint_archive.import_archive(other, tmp_path / "a.tar")
    assert list(other.root.glob("objects/*/*/*")) == []
    assert not (tmp_path / "outside").exists()


def test_an_export_of_an_earlier_version_is_refused_as_such(tmp_path: Path) -> None:
    path = tmp_path / "old.tar"
    with tarfile.open(path, "w") as tar:
        content = b'{"kind": "training/checkpoint", "identity": {}, "inputs": {}, "files": []}'
        with_member(tar, tarfile.TarInfo(f"{'0' * 64}/manifest.json"), content)

    with pytest.raises(FormatError, match=r"version 1; expected 2.*Another version of Sluice wrote it"):
        checkpoint_archive.import_archive(Store(tmp_path / "store"), path)
