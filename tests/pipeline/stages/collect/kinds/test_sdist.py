"""Source distributions: the newest release is proposed with the digest of its bytes, and what is refused."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipeline.core.errors import ArchiveError, DigestError, FetchError
from pipeline.pins.catalog import CatalogEntry
from pipeline.pins.pins import load_pins, pin_toml
from pipeline.stages.collect.kinds.sdist import propose_release
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.network.package_index import PackageIndex, pip_configuration
from pipeline.stages.collect.params import RetryPolicy
from pipeline.store.store import Store
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
