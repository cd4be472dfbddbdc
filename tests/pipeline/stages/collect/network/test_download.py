"""Downloads: bounded attempts, transfers that are continued, and bytes that are stored as they are."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipeline.core.digests import file_sha256
from pipeline.core.errors import FetchError
from pipeline.stages.collect.network.package_index import (
    IndexConfiguration,
    PackageIndex,
)
from pipeline.stages.collect.params import RetryPolicy
from tests.pipeline.stages.collect.conftest import Index
from tests.support.made.made_index import ARCHIVE, FILE_NAME, package_index, pin


def test_a_file_arrives_whole(index: "Index", retry: RetryPolicy, tmp_path: Path, delays: list[float]) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == ARCHIVE
    assert delays == []


@pytest.mark.parametrize("fault", ["truncate", "stall"])
def test_a_broken_transfer_is_continued_where_it_stopped(
    index: "Index", retry: RetryPolicy, tmp_path: Path, delays: list[float], fault: str
) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.faults = [fault]
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert file_sha256(tmp_path / "partial") == sha256
    assert index.file_requests == [None, f"bytes={len(ARCHIVE) // 2}-"]
    assert delays == [1.0]


def test_a_server_that_cannot_continue_is_requested_from_its_start(
    index: "Index", retry: RetryPolicy, tmp_path: Path
) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.faults, index.continues = ["truncate"], False
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == ARCHIVE
    assert len(index.file_requests) == 2


def test_a_download_of_an_earlier_run_is_continued(index: "Index", retry: RetryPolicy, tmp_path: Path) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    (tmp_path / "partial").write_bytes(ARCHIVE[:1000])
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == ARCHIVE
    assert index.file_requests == ["bytes=1000-"]


@pytest.mark.parametrize("stale", [b"other bytes", ARCHIVE + b"too long"])
def test_a_stale_partial_download_is_thrown_away_and_fetched_anew(
    index: "Index", retry: RetryPolicy, tmp_path: Path, stale: bytes
) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    (tmp_path / "partial").write_bytes(stale)
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == ARCHIVE


def test_attempts_are_bounded_their_delay_doubles_and_what_came_is_kept(
    index: "Index", retry: RetryPolicy, tmp_path: Path, delays: list[float]
) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.faults = ["unavailable", "truncate", "unavailable"]
    with pytest.raises(FetchError) as caught:
        package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    message = str(caught.value)
    assert f"{index.address}/files/{FILE_NAME}: could not be downloaded" in message
    assert "attempt 1: the server answered 503" in message
    assert "attempt 3: the server answered 503" in message
    assert "what has arrived is kept" in message
    assert delays == [1.0, 2.0]
    assert (tmp_path / "partial").stat().st_size == len(ARCHIVE) // 2


def test_a_file_that_is_gone_is_not_requested_twice(index: "Index", retry: RetryPolicy, tmp_path: Path) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.faults = ["gone"]
    with pytest.raises(FetchError, match="the server answered 404"):
        package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert len(index.file_requests) == 1


def test_a_certificate_that_does_not_exist_is_named(retry: RetryPolicy) -> None:
    with pytest.raises(FetchError, match=r"pip's option `cert`: names '/nowhere.pem', which does not exist"):
        PackageIndex(IndexConfiguration(certificate="/nowhere.pem"), retry)


def test_an_archive_is_never_unpacked_on_its_way(
    index: "Index", retry: RetryPolicy, tmp_path: Path, tar_gz: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    packed = tar_gz({"demo-1.0/a.cpp": b"int a;"})
    sha256 = index.add(FILE_NAME, packed)
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == packed
