"""Addresses of buckets are parsed or refused, and what a server refuses is said in words."""

import sys
from pathlib import Path

import pytest

from pipeline.core.errors import ParamsError, StoreError
from pipeline.storage.bucket_client import BucketAddress, BucketClient, parse_address
from tests.pipeline.storage.s3_server import faulty_proxy


def test_an_address_names_bucket_prefix_and_endpoint() -> None:
    address = parse_address("s3://b/a/c?endpoint=http://127.0.0.1:9000/")

    assert address == BucketAddress("b", "a/c", "http://127.0.0.1:9000")
    assert parse_address(address.text) == address


@pytest.mark.parametrize(
    "text", ["s3://b", "s3:///a", "s3://b/../a", "s3://b/a?endpoint=", "s3://b/a?x=1", "s3://b/a#c"]
)
def test_another_address_is_refused(text: str) -> None:
    with pytest.raises(ParamsError, match="expected s3://BUCKET/PREFIX"):
        parse_address(text)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    with pytest.raises(StoreError, match=r"obstore is not installed.*pip install -e \.\[s3\]"):
        BucketClient(BucketAddress("b", "a"))


def test_a_bucket_that_is_not_there_is_named(bucket_address: str) -> None:
    client = BucketClient(parse_address(bucket_address.replace("//sluice/", "//no-such-bucket/")))

    for ask in (client.get, client.names, client.sizes, lambda key: client.put(key, b""), client.delete):
        with pytest.raises(StoreError, match="there is no bucket no-such-bucket"):
            ask("key")


def test_a_large_file_is_put_in_parts_and_read_whole(bucket_address: str, tmp_path: Path) -> None:
    client, content = BucketClient(parse_address(bucket_address)), bytes(range(256)) * 50_000
    (tmp_path / "large").write_bytes(content)
    client.put("large", tmp_path / "large")

    assert client.download("large", tmp_path / "read")
    assert (tmp_path / "read").read_bytes() == content
    assert client.sizes("") == {"large": len(content)}
    assert not client.download("other", tmp_path / "read")


def test_a_server_that_refuses_the_credentials_is_named(bucket_address: str, s3_endpoint: str) -> None:
    with faulty_proxy(s3_endpoint, lambda number, method, path: "forbid") as proxy:
        client = BucketClient(parse_address(bucket_address.replace(s3_endpoint, proxy)))
        with pytest.raises(StoreError, match=r"the server refuses: .*expected credentials that may read and write it"):
            client.put("key", b"")
