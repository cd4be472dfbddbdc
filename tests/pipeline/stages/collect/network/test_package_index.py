"""Package indexes: links found as pip is configured, compared by digest, and errors that name what was tried."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.core.digests import file_sha256
from pipeline.core.errors import DigestError, FetchError
from pipeline.stages.collect.network.package_index import (
    IndexConfiguration,
    PackageIndex,
    configuration_of,
    default_index,
    pip_configuration,
)
from pipeline.stages.collect.params import RetryPolicy
from tests.pipeline.stages.collect.conftest import Index
from tests.support.made.made_index import ARCHIVE, FILE_NAME, package_index, pin


def test_the_link_is_found_through_the_index_that_pip_is_configured_with(index: "Index", retry: RetryPolicy) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.add("demo_pkg-1.0-py3-none-any.whl", b"a wheel")
    link = PackageIndex(pip_configuration(), retry).find(pin(sha256))
    assert link.url_without_fragment == f"{index.address}/files/{FILE_NAME}"
    assert [path for path, _ in index.requests] == ["/simple/demo-pkg/"]


def test_an_index_in_json_is_read_too(index: "Index", retry: RetryPolicy, tmp_path: Path) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.in_json = True
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert file_sha256(tmp_path / "partial") == sha256


def test_a_link_with_another_digest_is_refused_before_any_byte_with_both_digests(
    index: "Index", retry: RetryPolicy, tmp_path: Path
) -> None:
    offered = index.add(FILE_NAME, ARCHIVE)
    with pytest.raises(DigestError) as caught:
        package_index(index, retry).fetch(pin("0" * 64), tmp_path / "partial")
    message = str(caught.value)
    assert f"offers {FILE_NAME} with sha256 {offered}" in message
    assert f"expected {'0' * 64}" in message
    assert index.file_requests == []


def test_a_link_without_a_digest_is_used_and_its_bytes_are_left_to_be_judged(
    index: "Index", retry: RetryPolicy, tmp_path: Path
) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE, link_digest="")
    package_index(index, retry).fetch(pin(sha256), tmp_path / "partial")
    assert file_sha256(tmp_path / "partial") == sha256


def test_a_missing_file_is_reported_with_all_that_was_tried(index: "Index", retry: RetryPolicy, tmp_path: Path) -> None:
    index.add("demo_pkg-2.0.tar.gz", ARCHIVE)
    configuration = IndexConfiguration((f"{index.address}/simple",), (str(tmp_path),))
    with pytest.raises(FetchError) as caught:
        PackageIndex(configuration, retry).find(pin("0" * 64))
    message = str(caught.value)
    assert message.startswith(f"demo: {FILE_NAME} was not found")
    assert f"{index.address}/simple: not among 1 archives" in message
    assert f"{tmp_path}: not among 0 archives" in message
    assert "Check project, version and file name" in message


def test_an_index_page_that_fails_for_a_while_is_requested_again(index: "Index", retry: RetryPolicy) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    index.page_faults = ["unavailable", "unavailable"]
    assert package_index(index, retry).find(pin(sha256)).filename == FILE_NAME


def test_an_index_that_stays_away_is_named_without_its_credentials(retry: RetryPolicy, delays: list[float]) -> None:
    configuration = IndexConfiguration(index_urls=("http://user:word@127.0.0.1:9/simple",))
    with pytest.raises(FetchError) as caught:
        PackageIndex(configuration, retry).find(pin("0" * 64))
    assert "http://***@127.0.0.1:9/simple: " in str(caught.value)
    assert "word" not in str(caught.value)
    assert delays == [1.0, 2.0]


def test_a_folder_and_an_index_of_files_serve_without_a_network(retry: RetryPolicy, tmp_path: Path) -> None:
    archive = tmp_path / "files" / FILE_NAME
    archive.parent.mkdir()
    archive.write_bytes(ARCHIVE)
    sha256 = file_sha256(archive)
    page = tmp_path / "simple" / "demo-pkg" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../files/{FILE_NAME}#sha256={sha256}">{FILE_NAME}</a>')
    places = [
        IndexConfiguration(find_links=(str(archive.parent),)),
        IndexConfiguration(index_urls=((tmp_path / "simple").as_uri(),)),
    ]
    for number, configuration in enumerate(places):
        PackageIndex(configuration, retry).fetch(pin(sha256), tmp_path / str(number))
        assert (tmp_path / str(number)).read_bytes() == ARCHIVE


def test_an_index_with_other_bytes_gives_way_to_one_with_the_pinned_ones_even_if_that_is_away_at_first(
    index: "Index", retry: RetryPolicy, tmp_path: Path
) -> None:
    sha256 = index.add(FILE_NAME, ARCHIVE)
    page = tmp_path / "demo-pkg" / "index.html"
    page.parent.mkdir()
    page.write_text(f'<a href="{FILE_NAME}#sha256={"1" * 64}">{FILE_NAME}</a>')
    configuration = IndexConfiguration((tmp_path.as_uri(), f"{index.address}/simple"))
    index.page_faults = ["unavailable"]
    assert PackageIndex(configuration, retry).find(pin(sha256)).hash == sha256


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, {}),
        ({"index-url": "http://a/s"}, {"index_urls": ("http://a/s",)}),
        ({"index-url": "/a/s"}, {"index_urls": ("file:///a/s",)}),
        (
            {"index-url": "http://a/s", "extra-index-url": "http://b/s\nhttp://c/s"},
            {"index_urls": ("http://a/s", "http://b/s", "http://c/s")},
        ),
        ({"no-index": "1", "find-links": "/nowhere http://d/l"}, {"index_urls": (), "find_links": ("http://d/l",)}),
        ({"trusted-host": "a b", "cert": "/c.pem"}, {"trusted_hosts": ("a", "b"), "certificate": "/c.pem"}),
    ],
)
def test_pip_options_mean_what_they_mean_to_pip(options: Mapping[str, str], changed: dict[str, object]) -> None:
    assert configuration_of(options) == replace(IndexConfiguration((default_index(),)), **changed)


def test_pip_prints_its_options_and_its_environment_wins_over_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = http://file/s\nextra-index-url =\n  http://b/s\n  http://c/s\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    assert pip_configuration().index_urls == ("http://file/s", "http://b/s", "http://c/s")
    monkeypatch.setenv("PIP_INDEX_URL", "http://environment/s")
    assert pip_configuration().index_urls[0] == "http://environment/s"


def test_an_index_out_of_reach_is_waited_for_once_and_not_for_every_pin(
    retry: RetryPolicy, delays: list[float]
) -> None:
    index = PackageIndex(IndexConfiguration(index_urls=("http://127.0.0.1:9/simple",)), retry)
    for _ in range(3):
        with pytest.raises(FetchError, match="was not found"):
            index.find(pin("0" * 64))

    assert len(delays) == retry.num_attempts - 1


def test_without_pip_the_remedy_is_to_install_it(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'raise SystemExit(1)'\n")
    python.chmod(0o755)
    with pytest.raises(FetchError, match="Install pip into this environment"):
        pip_configuration(str(python))
