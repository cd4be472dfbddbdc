"""Proposals of pins: releases and folders with the digest of their bytes, and what is refused."""

import hashlib
import json
import tarfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.cli.main import main
from pipeline.core.errors import ArchiveError, DigestError, FetchError
from pipeline.pins.catalog import CatalogEntry
from pipeline.pins.pins import load_pins, pin_toml
from pipeline.stages.collect.kinds.sdist import propose_release
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.network.package_index import PackageIndex, pip_configuration
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.propose_pin import propose_local
from pipeline.store.store import Store

if TYPE_CHECKING:
    from tests.pipeline.stages.collect.conftest import Index

Pack = Callable[[Mapping[str, bytes]], bytes]
Propose = Callable[..., tuple[dict[str, str], tuple[str, ...]]]
ENTRY = CatalogEntry(name="demo-pkg", homepage="https://example.com", license="BSD-3-Clause", note="Has two files.")


def sdist(tar_gz: Pack, version: str, metadata: bytes = b"") -> bytes:
    top = f"demo_pkg-{version}"
    return tar_gz({f"{top}/PKG-INFO": metadata, f"{top}/a.cpp": b"int a;", f"{top}/setup.py": b"raise SystemExit"})


@pytest.fixture
def propose(index: "Index", retry: RetryPolicy, tmp_path: Path) -> Propose:
    def call(version: str | None = None) -> tuple[dict[str, str], tuple[str, ...]]:
        store = Store(tmp_path / "store")
        index, partial = PackageIndex(pip_configuration(), retry), store.partial_blob("pin-demo-pkg")
        return propose_release(ENTRY, version, index, partial, store.put_blob)

    return call


def test_the_newest_stable_release_is_proposed_with_the_digest_of_its_bytes(
    index: "Index", tar_gz: Pack, propose: Propose, tmp_path: Path
) -> None:
    for version in ("1.9", "2.0rc1", "1.10.dev1"):
        index.add(f"demo_pkg-{version}.tar.gz", sdist(tar_gz, version))
    index.add("demo_pkg-1.11-py3-none-any.whl", b"a wheel")
    metadata = b"Metadata-Version: 2.4\nLicense-Expression: MIT OR BSL-1.0\n\nLicense-Expression: none of this\n"
    sha256 = index.add("demo_pkg-1.10.tar.gz", sdist(tar_gz, "1.10", metadata))
    entry, notes = propose()
    assert entry == {
        "name": "demo-pkg",
        "kind": "sdist",
        "project": "demo-pkg",
        "version": "1.10",
        "file_name": "demo_pkg-1.10.tar.gz",
        "sha256": sha256,
        "declared_license": "MIT OR BSL-1.0",
    }
    assert Store(tmp_path / "store").blob(sha256) is not None
    assert "1 source files" in notes[0]


def test_what_is_printed_is_a_pins_file_that_loads(
    index: "Index", tar_gz: Pack, propose: Propose, tmp_path: Path
) -> None:
    sha256 = index.add("demo_pkg-1.0.tar.gz", sdist(tar_gz, "1.0"))
    entry, notes = propose("1.0")
    (tmp_path / "pins.toml").write_text(pin_toml(entry))
    (pin,) = load_pins(tmp_path / "pins.toml", SOURCE_KINDS)
    assert (pin.name, pin.revision, pin.declared_license) == ("demo-pkg", sha256, "BSD-3-Clause")
    assert "no License-Expression; the catalog says BSD-3-Clause" in " ".join(notes)


def test_an_index_without_digests_is_noted(index: "Index", tar_gz: Pack, propose: Propose) -> None:
    sha256 = index.add("demo_pkg-1.0.tar.gz", sdist(tar_gz, "1.0"), link_digest="")
    entry, notes = propose()
    assert entry["sha256"] == sha256
    assert "The index gave no digest" in " ".join(notes)


def test_bytes_that_are_not_those_of_the_link_are_not_proposed(index: "Index", tar_gz: Pack, propose: Propose) -> None:
    index.add("demo_pkg-1.0.tar.gz", sdist(tar_gz, "1.0"), link_digest="1" * 64)
    with pytest.raises(DigestError, match="1" * 64):
        propose()


def test_an_archive_that_a_build_would_refuse_is_refused_here(index: "Index", tar_gz: Pack, propose: Propose) -> None:
    index.add("demo_pkg-1.0.tar.gz", tar_gz({"demo_pkg-1.0/../../x.cpp": b""}))
    with pytest.raises(ArchiveError, match=r"demo-pkg: .*leaves the archive"):
        propose()


def test_a_release_that_is_missing_is_refused_with_those_that_exist(
    index: "Index", tar_gz: Pack, propose: Propose
) -> None:
    for version in ("1.2", "1.10"):
        index.add(f"demo_pkg-{version}.tar.gz", sdist(tar_gz, version))
    with pytest.raises(FetchError) as caught:
        propose("7")
    assert "no source distribution of version 7; expected one of the versions there (1.10, 1.2)." in str(caught.value)
    assert "--version" in str(caught.value)


def test_an_index_that_is_away_is_not_an_index_without_releases(index: "Index", propose: Propose) -> None:
    index.page_faults = ["unavailable"]
    with pytest.raises(FetchError, match=r"no release was found .*503"):
        propose()


def test_a_name_that_is_not_listed_is_one_line_with_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "nowhere", "--store", str(tmp_path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["error"] == "PinError"
    assert "grpcio" in answer["message"]


def test_a_folder_an_archive_and_lines_of_ones_own_are_pinned_as_they_are_now(tmp_path: Path) -> None:
    folder = tmp_path / "a \u2028 \U0001f600 \\ folder"
    folder.mkdir()
    (folder / "a.c").write_bytes(b"int a;")
    archive = tmp_path / "own.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(folder / "a.c", "a.c")
    lines = tmp_path / "own.jsonl"
    lines.write_text('{"path": "a.c", "text": ""}\n')
    pins = tmp_path / "pins.toml"
    places = {"folder": folder, "archive": archive, "lines": lines}
    pins.write_text("\n".join(pin_toml(propose_local(name, path, "MIT")) for name, path in places.items()))
    found = {pin.name: pin for pin in load_pins(pins, SOURCE_KINDS)}
    assert {name: pin.kind for name, pin in found.items()} == {
        "folder": "local",
        "archive": "archive",
        "lines": "jsonl",
    }
    assert found["archive"].revision == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert tomllib.loads(pins.read_text())["pin"][0]["path"] == str(folder)
