"""A lease is held by one process, given back at its end, and taken over from a dead one alone."""

import pytest

from pipeline.core.errors import LockedError
from pipeline.storage import leases
from pipeline.storage.bucket_client import BucketClient, parse_address
from pipeline.storage.leases import Leases


def test_the_lease_of_a_dead_process_of_the_same_machine_is_taken_at_once(bucket_address: str) -> None:
    client = BucketClient(parse_address(bucket_address))
    dead, next_one = Leases(client, "here"), Leases(client, "here")
    with _held(dead, "one"), _held(next_one, "other"):
        dead._renew(dead._held[0])
        assert [lease.who for lease in dead.lost] == ["one"]


def _held(holder: Leases, who: str, wait_seconds: float = 0.0):
    return holder.held("leases/corpora/tiny", who, wait_seconds, lambda other: None, "corpus tiny")


def test_a_second_writer_is_told_for_whom_it_waits(bucket_address: str) -> None:
    client = BucketClient(parse_address(bucket_address))
    with _held(Leases(client, "here"), "one"), pytest.raises(LockedError, match="corpus tiny: it is held by one on "):
        _held(Leases(client, "there"), "other").__enter__()

    with _held(Leases(client, "there"), "other"):
        assert client.names("leases/corpora") == ["tiny"]
    assert client.names("leases/corpora") == []


def test_a_dead_writer_loses_its_lease_and_a_living_one_keeps_it(
    bucket_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)
    client = BucketClient(parse_address(bucket_address))
    living, dead = Leases(client, "here"), Leases(client, "there")
    with _held(living, "one"), pytest.raises(LockedError):
        _held(dead, "other", wait_seconds=2.0).__enter__()

    monkeypatch.setattr(dead, "_beat", lambda ends: None)
    with _held(dead, "one"):
        with _held(living, "other", wait_seconds=5.0):
            dead._renew(dead._held[0])
        assert [lease.who for lease in dead.lost] == ["one"]
