"""Fetching that kinds share: bytes are transferred once, verified, and never over the network offline."""

import hashlib
from pathlib import Path

import pytest

from pipeline.core.errors import DigestError, FetchError, SourceError
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.collect.kinds.source_kind import Fetcher
from pipeline.stages.collect.params import RetryPolicy
from tests.pipeline.stages.collect.conftest import Create

CONTENT = b"an archive"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def pin_of(path: Path) -> ArchivePin:
    return ArchivePin(name="demo", path=path, sha256=SHA256)


def test_missing_bytes_are_transferred_once_and_no_partial_file_stays(
    surroundings: Create, tmp_path: Path, retry: RetryPolicy
) -> None:
    context, transfers = surroundings(), list[Path]()

    def transfer(partial: Path) -> None:
        partial.write_bytes(CONTENT)
        transfers.append(partial)

    fetcher, pin = Fetcher(context, retry), pin_of(tmp_path / "gone")
    found = [fetcher.blob(pin, SHA256, "demo.tar", transfer) for _ in range(2)]

    assert [path.read_bytes() for path in found] == [CONTENT] * 2
    assert len(transfers) == 1
    assert not transfers[0].exists()


def test_offline_missing_bytes_are_refused_before_a_transfer(
    surroundings: Create, tmp_path: Path, retry: RetryPolicy
) -> None:
    fetcher, transfers = Fetcher(surroundings(offline=True), retry), list[Path]()
    with pytest.raises(FetchError, match=rf"demo\.tar \(sha256 {SHA256}\) is not in the store.*offline"):
        fetcher.blob(pin_of(tmp_path), SHA256, "demo.tar", transfers.append)

    assert transfers == []


def test_a_file_is_read_from_its_path_and_refused_if_it_is_missing_or_another(
    surroundings: Create, tmp_path: Path, retry: RetryPolicy
) -> None:
    path, fetcher = tmp_path / "demo.tar", Fetcher(surroundings(), retry)
    with pytest.raises(SourceError, match=r"demo\.tar is not a file"):
        fetcher.file(pin_of(path), "an archive")
    path.write_bytes(b"another")
    with pytest.raises(DigestError):
        fetcher.file(pin_of(path), "an archive")
    path.write_bytes(CONTENT)

    assert fetcher.file(pin_of(path), "an archive").read_bytes() == CONTENT
