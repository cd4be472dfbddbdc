"""Faults of a bucket: requests that are refused, cut, lost or slow, and a writer or a build that ends at any of them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import StoreError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from pipeline.store.store_layout import store_folder
from tests.pipeline.storage.conftest import Machine, bucket_address, machine, s3_endpoint
from tests.pipeline.storage.s3_server import CREDENTIALS, faulty_proxy
from tests.support.paths import ROOT, golden_id
from tests.support.stored_text import commit_text

__all__ = ["bucket_address", "machine", "s3_endpoint"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refuse", "cut", "lose", "slow"])
def test_each_request_may_break_once_and_no_move_is_lost(
    kind: str, bucket_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "through"))
    asked: set[tuple[str, str]] = set()

    def breaks_once(number: int, method: str, path: str) -> str:
        is_first = (method, path) not in asked
        asked.add((method, path))
        return kind if is_first and (kind != "slow" or number % 15 == 0) else ""

    with faulty_proxy(s3_endpoint, breaks_once) as proxy:
        store = Store(store_folder(bucket_address.replace(s3_endpoint, proxy)))
        ids = [commit_text(store, b"%d" % number) for number in range(3)]
        for old, new in zip([None, *ids], ids, strict=False):
            with store.writer("corpus", "a writer"):
                store.move_ref("corpus", "live", old, new, "built")

    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "there"))
    there = Store(store_folder(bucket_address))
    assert [entry["new"] for entry in there.history("corpus")] == ids
    assert fsck(there) == []


@pytest.mark.slow
@pytest.mark.parametrize("last", ["forbid", "lose"])
def test_a_writer_that_ends_at_any_request_leaves_whole_objects_and_whole_moves(
    last: str, bucket_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each request from one on is refused, as after a kill; with `lose`, the one before was answered to nobody."""
    for number_of_end in range(200):
        address = f"{bucket_address.partition('?')[0]}-{last}-{number_of_end}?endpoint={s3_endpoint}"

        def ends(number: int, method: str, path: str, end: int = number_of_end) -> str:
            return last if number == end else "forbid" if number > end else ""

        with faulty_proxy(s3_endpoint, ends) as proxy:
            monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / f"dead-{number_of_end}"))
            is_whole = _is_written(address.replace(s3_endpoint, proxy))
        monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / f"next-{number_of_end}"))
        store = Store(store_folder(address))
        for name in store.storage.leased(""):
            store.storage.client.delete(f"leases/corpora/{name}")  # as is done after 45 s without a sign of life
        object_id = commit_text(store, b"1")
        with store.writer("corpus", "the next"):
            if store.ref("corpus", "live") is None:
                store.move_ref("corpus", "live", None, object_id, "built")
        assert [(entry["old"], entry["new"]) for entry in store.history("corpus")] == [(None, object_id)]
        assert fsck(store) == []
        if is_whole:
            assert number_of_end > 15
            return
    pytest.fail("the writer never ended")


def _is_written(address: str) -> bool:
    try:
        store = Store(store_folder(address))
        with store.writer("corpus", "one that ends"):
            object_id = commit_text(store, b"1")
            store.move_ref("corpus", "live", None, object_id, "built")
    except (StoreError, OSError):
        return False
    return True


def _run(address: str, cache: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **CREDENTIALS, "SLUICE_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "pipeline", *arguments, "--store", address]
    return subprocess.Popen(line, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_a_build_that_is_killed_at_a_request_is_finished_by_8_at_once_with_the_golden_id(
    machine: Machine, bucket_address: str, s3_endpoint: str, tmp_path: Path
) -> None:
    build = ("build", "--recipe", "tiny", "--no-report", "--json")
    for at in (7, 60, 200):
        killed: list[subprocess.Popen[str]] = []

        def kill(
            number: int, method: str, path: str, at: int = at, killed: list[subprocess.Popen[str]] = killed
        ) -> str:
            if number == at and killed:
                killed[0].send_signal(signal.SIGKILL)
            return ""

        with faulty_proxy(s3_endpoint, kill) as proxy:
            killed.append(_run(bucket_address.replace(s3_endpoint, proxy), tmp_path / f"killed-{at}", *build))
            killed[0].communicate()
        assert killed[0].returncode == -signal.SIGKILL

    builders = [_run(bucket_address, tmp_path / f"builder-{number}", *build) for number in range(8)]
    answers = [builder.communicate() for builder in builders]
    assert [json.loads(said)["snapshot_id"] for said, _ in answers] == [golden_id()] * 8
    assert fsck(machine("there")) == []
