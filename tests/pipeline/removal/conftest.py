"""A store in which two small archives were collected, and an author's file in one of them."""

import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.core.digests import file_sha256, text_sha256
from pipeline.core.table_names import FILES
from pipeline.pins.pins import SourcePin
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.store.store import Store

SHARED = b"int shared(void) { return 41; }\n"
OWN = b"/* by Ada\n * Example <ada.e@host.org> */\nint own(void) { return 42; }\n"
OWN_SHA256 = text_sha256(OWN.decode())
FILES_OF = {
    "made": {"a.c": OWN, "b.c": SHARED, "LICENSE": b"MIT License, Ada Example"},
    "other": {"c.c": SHARED, "d.c": b"int d(void) { return 43; }\n"},
}


def archive(folder: Path, name: str, files: Mapping[str, bytes]) -> ArchivePin:
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for member, content in files.items():
            info = tarfile.TarInfo(f"{name}-1/{member}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return ArchivePin(name=name, path=path, sha256=file_sha256(path))


class Collected:
    """A store in which archives were collected, and are collected again without what is withdrawn."""

    def __init__(self, root: Path, files_of: Mapping[str, Mapping[str, bytes]], **fields: object) -> None:
        self.store = Store(root / "store")
        root.mkdir(exist_ok=True)
        self.pins: tuple[SourcePin, ...] = tuple(
            archive(root, name, files).model_copy(update=fields) for name, files in files_of.items()
        )
        self.first = self.collect()

    def collect(self) -> dict[str, str]:
        with open_build(BuildRequest("made", TINY.params, self.pins, "a test"), self.store) as build:
            return dict(next(run_stages(build, "collect")).parts)

    def contents(self, part_id: str) -> dict[str, bytes]:
        rows = self.store.read(part_id).table(FILES, ["path", "content"]).to_pylist()
        return {row["path"]: row["content"] for row in rows}

    def blobs(self) -> set[str]:
        return {path.name for path in (self.store.root / "blobs").iterdir()}


@pytest.fixture(scope="module")
def collected_once(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    return Collected(tmp_path_factory.mktemp("collected"), FILES_OF)


@pytest.fixture
def collected(collected_once: Collected, tmp_path: Path) -> Collected:
    copy = Collected.__new__(Collected)
    copy.store = Store(Path(shutil.copytree(collected_once.store.root, tmp_path / "store")))
    copy.pins, copy.first = collected_once.pins, collected_once.first
    return copy
