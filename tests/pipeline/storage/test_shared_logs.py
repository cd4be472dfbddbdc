"""The logs of a bucket: each append sees every one before, also where its answer was lost, and long logs are read in segments."""

import pytest

from pipeline.core.errors import DamagedError, StoreError
from pipeline.storage.bucket_client import BucketClient, parse_address
from pipeline.storage.shared_logs import SharedLogs
from pipeline.storage.storage import Lines, LogConflictError
from tests.pipeline.storage.s3_server import faulty_proxy


def _lines(logs: SharedLogs, known: Lines | None = None) -> Lines:
    found: list[Lines] = []
    logs.pull(lambda: known or {}, found.append)
    return found[-1] if found else {}


def test_lines_beyond_the_last_are_in_segments_that_are_read_once(bucket_address: str) -> None:
    client = BucketClient(parse_address(bucket_address))
    logs, expected = SharedLogs(client), [b"%d" % number for number in range(130)]
    logs.create()
    for number, line in enumerate(expected, start=1):
        _lines(logs, {"blobs": expected})
        logs.publish("blobs", number, line, 0)

    assert _lines(SharedLogs(client)) == {"blobs": expected}
    segments = client.names("log/blobs")
    assert [int(name.partition("-")[0]) for name in segments] == [64, 128]
    client.put(f"log/blobs/{segments[0]}", b"[]")
    assert _lines(SharedLogs(client), {"blobs": expected[:128]}) == {"blobs": expected}
    with pytest.raises(DamagedError, match="lines up to 64 of log blobs"):
        _lines(SharedLogs(client))


def test_of_two_writers_of_a_line_one_is_refused(bucket_address: str) -> None:
    client = BucketClient(parse_address(bucket_address))
    one, other = SharedLogs(client), SharedLogs(client)
    one.create()
    _lines(one), _lines(other)
    one.publish("blobs", 1, b"same", 0)

    with pytest.raises(LogConflictError):
        other.publish("blobs", 1, b"same", 0)
    assert _lines(other) == {"blobs": [b"same"]}
    other.publish("blobs", 2, b"same", 0)
    assert _lines(one) == {"blobs": [b"same", b"same"]}


def test_an_append_whose_answer_is_lost_is_known_as_its_own(bucket_address: str, s3_endpoint: str) -> None:
    lost: list[str] = []

    def lose(number: int, method: str, path: str) -> str:
        if method != "PUT" or not path.endswith("/logs") or lost:
            return ""
        lost.append(path)
        return "lose"

    SharedLogs(BucketClient(parse_address(bucket_address))).create()
    with faulty_proxy(s3_endpoint, lose) as proxy:
        logs = SharedLogs(BucketClient(parse_address(bucket_address.replace(s3_endpoint, proxy))))
        _lines(logs)
        logs.publish("blobs", 1, b"line", 0)
    assert lost
    assert _lines(SharedLogs(BucketClient(parse_address(bucket_address)))) == {"blobs": [b"line"]}


def test_a_server_without_conditional_puts_is_refused(bucket_address: str, s3_endpoint: str) -> None:
    with faulty_proxy(s3_endpoint, lambda number, method, path: "unconditional") as proxy:
        logs = SharedLogs(BucketClient(parse_address(bucket_address.replace(s3_endpoint, proxy))))
        with pytest.raises(StoreError, match="the server ignores If-None-Match or If-Match"):
            logs.create()
