"""A source that is to be built keeps the files in other languages; other sources do not."""

import hashlib
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from pipeline.contracts.part import PartJob
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.collect.stage import collect_source

FILES = {"a.cc": b"int a;\n", "CMakeLists.txt": b"project(a)\n", "data.bin": b"\0\1", "LICENSE": b"MIT\n"}


def local(root: Path, build: dict[str, object] | None) -> PartJob:
    for path, content in FILES.items():
        (root / path).write_bytes(content)
    pin = LocalPin.model_validate({"name": "made", "path": root, "digest": tree_digest(root), "build": build})
    return PartJob("made", CollectParams(), {}, pin.identity(), {"source": root})


def archive(folder: Path, build: dict[str, object] | None) -> PartJob:
    place = folder / "made.tar"
    with tarfile.open(place, "w") as tar:
        for path, content in FILES.items():
            member = tarfile.TarInfo(f"top/{path}")
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
    sha256 = hashlib.sha256(place.read_bytes()).hexdigest()
    pin = ArchivePin.model_validate({"name": "made", "path": place, "sha256": sha256, "build": build})
    return PartJob("made", CollectParams(), {}, pin.identity(), {"source": place})


@pytest.mark.parametrize("kind", [local, archive])
def test_a_source_that_is_built_keeps_its_whole_tree_and_says_no_other_thing(kind, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    plain, built = collect_source(kind(tmp_path, None)), collect_source(kind(tmp_path, {"cmake": True}))

    assert {row["path"]: row["content"] for row in built.tables["tree.parquet"].to_pylist()} == {
        "CMakeLists.txt": b"project(a)\n",
        "data.bin": b"\0\1",
    }
    assert "tree.parquet" not in plain.tables
    assert all(built.tables[name].equals(plain.tables[name]) for name in ("files.parquet", "dropped.parquet"))


def test_a_withdrawn_file_is_not_built_with(tmp_path: Path) -> None:
    job = local(tmp_path, {"cmake": True})
    job = PartJob(job.name, job.params, {}, {**job.identity, "withdrawn": ["made/data.bin"]}, job.places)

    assert [row["path"] for row in collect_source(job).tables["tree.parquet"].to_pylist()] == ["CMakeLists.txt"]


def test_a_pin_without_a_build_has_the_identity_it_had(tmp_path: Path) -> None:
    assert "build" not in local(tmp_path, None).identity
