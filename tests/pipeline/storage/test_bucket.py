"""A store in a bucket holds what one in a folder holds: ids, refs, history, refusals; no move is lost, whatever breaks."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, LockedError, MissingError, RefMovedError, StoreError
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.store import Store
from pipeline.store.store_layout import store_folder
from tests.pipeline.storage.s3_server import CREDENTIALS, faulty_proxy
from tests.support.paths import ROOT
from tests.support.stored_text import commit_text

Machine = Callable[[str], Store]


def test_what_one_machine_writes_another_reads(machine: Machine) -> None:
    here = machine("here")
    object_id = commit_text(here, b"1")
    here.move_ref("corpus", "live", None, object_id, "built")
    here.put_verdicts(object_id, [])
    blob = here.put_blob([b"abc"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc")
    here.name_blob("git/abc", blob.name)

    there = machine("there")
    assert there.ref("corpus", "live") == object_id
    assert there.refs("corpus") == {"live": object_id}
    assert [entry["reason"] for entry in there.history("corpus")] == ["built"]
    stored = there.read(object_id)
    assert [there.read(object_id).file(entry.name).is_file() for entry in stored.manifest.files]
    assert there.verdicts(object_id)["verdicts"] == []
    assert (found := there.named_blob("git/abc")) is not None
    assert found.read_bytes() == b"abc"
    assert fsck(there) == []


def test_a_move_is_refused_where_a_writer_elsewhere_was_first(machine: Machine) -> None:
    here, there = machine("here"), machine("there")
    first, second = commit_text(here, b"1"), commit_text(there, b"2")
    here.move_ref("corpus", "live", None, first, "one")

    with pytest.raises(RefMovedError, match=first[:12]):
        there.move_ref("corpus", "live", None, second, "other")
    there.move_ref("corpus", "live", first, second, "other")
    here.move_ref("corpus", "live", second, first, "back")

    assert [entry["new"] for entry in there.history("corpus")] == [first, second, first]
    assert there.ref("corpus", "live") == first
    here.remove_ref("corpus", "live", "gone")
    assert there.refs("corpus") == {}


def test_a_changed_file_of_the_bucket_is_named_refused_and_made_again(machine: Machine) -> None:
    here = machine("here")
    object_id = commit_text(here, b"1")
    (entry,) = here.read(object_id).manifest.files
    here.storage.client.put(f"objects/{object_id}/{entry.name}", b"x" * entry.num_bytes)

    there = machine("there")
    (problem,) = fsck(there)
    assert entry.name in problem
    assert object_id[:12] in problem
    with pytest.raises(DamagedError, match=object_id[:12]):
        there.read(object_id).file(entry.name)
    assert commit_text(there, b"1") == object_id
    assert fsck(here) == fsck(there) == []


def test_a_changed_manifest_is_named_and_made_again(machine: Machine) -> None:
    here = machine("here")
    other, object_id = commit_text(here, b"0"), commit_text(here, b"1")
    here.storage.client.put(f"objects/{object_id}/manifest.json", b"{}")

    there = machine("there")
    assert any(object_id[:12] in problem for problem in fsck(there))
    with pytest.raises(DamagedError, match="its manifest hashes to"):
        there.read(object_id)
    assert there.read(other).object_id == other
    assert commit_text(there, b"1") == object_id
    assert fsck(there) == []


def test_an_older_copy_of_the_logs_is_refused(machine: Machine) -> None:
    here = machine("here")
    object_id = commit_text(here, b"1")
    before, _ = here.storage.client.get("logs")
    here.log_withdrawal("code", "asked")
    here.storage.client.put("logs", before)

    with pytest.raises(DamagedError, match="another one than this machine has seen"):
        here.move_ref("corpus", "live", None, object_id, "built")


def test_gc_removes_from_the_bucket_and_not_while_another_machine_uses_it(machine: Machine) -> None:
    here, there = machine("here"), machine("there")
    kept, gone = commit_text(here, b"1"), commit_text(here, b"2")
    here.move_ref("corpus", "live", None, kept, "built")
    assert there.read(gone).object_id == gone

    with there.in_use(), pytest.raises(LockedError, match="it is used by"), here.in_use(alone=True, wait_seconds=0.0):
        pass
    assert reclaim(here, lambda snapshot: False).object_ids == (gone,)
    with pytest.raises(MissingError):
        there.read(gone)
    assert there.read(kept).object_id == kept
    assert fsck(there) == []


def test_a_writer_that_slept_through_a_collection_moves_no_ref(machine: Machine) -> None:
    here, there = machine("here"), machine("there")
    object_id = commit_text(here, b"1")
    with there.in_use():
        for name in there.storage.client.names("leases/use"):
            there.storage.client.delete(f"leases/use/{name}")  # as whoever finds no sign of life does
        with here.in_use(alone=True):
            pass
        with pytest.raises(LockedError, match="garbage collection"):
            there.move_ref("corpus", "live", None, object_id, "built")


def test_a_cache_is_cut_to_its_bound_and_filled_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    store = machine("here")
    object_id = commit_text(store, b"1")
    (entry,) = store.read(object_id).manifest.files
    path = store.read(object_id).file(entry.name)
    monkeypatch.setenv("SLUICE_CACHE_BYTES", "0")
    with store.in_use(), store.in_use():
        pass

    assert not path.exists()
    assert path.with_name("manifest.json").exists()
    with pytest.raises(StoreError, match=r"a table of it has 1 bytes.*Set SLUICE_CACHE_BYTES to more"):
        store.read(object_id).paths(entry.name)
    assert store.read(object_id).file(entry.name).exists()


def test_credentials_that_may_not_write_read_and_are_refused_a_write(
    machine: Machine, bucket_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = machine("here")
    object_id = commit_text(store, b"1")
    store.move_ref("corpus", "live", None, object_id, "built")
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "reader"))
    with faulty_proxy(
        s3_endpoint, lambda number, method, path: "forbid" if method in ("PUT", "POST", "DELETE") else ""
    ) as proxy:
        reader = Store(store_folder(bucket_address.replace(s3_endpoint, proxy)))
        with reader.in_use():
            assert reader.ref("corpus", "live") == object_id
        assert fsck(reader) == []
        with pytest.raises(StoreError, match="the server refuses"), reader.writer("corpus", "a writer"):
            pass
    assert store.ref("corpus", "live") == object_id


def test_the_cache_of_a_store_that_is_gone_is_emptied_unless_a_process_uses_it(machine: Machine) -> None:
    store = machine("here")
    object_id = commit_text(store, b"1")
    store.storage.client.delete("format")
    with store.in_use():
        store.storage.refresh()
        assert (store.root / "objects").exists()
    for key in store.storage.client.sizes(""):
        store.storage.client.delete(key)

    store = machine("here")
    assert not (store.root / "objects").exists()
    assert commit_text(store, b"1") == object_id
    assert fsck(store) == []


def test_a_cache_that_names_no_bucket_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "bucket").write_text("{}")
    with pytest.raises(DamagedError, match=r"its file bucket is not as written. Remove that folder"):
        Store(tmp_path)


def test_what_a_bucket_does_not_support_is_refused(machine: Machine) -> None:
    store = machine("here")
    commit_text(store, b"1")
    with pytest.raises(StoreError, match="fsck --accept-logs is not supported in a bucket"):
        store.accept_logs()


@pytest.mark.slow
def test_of_200_moves_by_8_processes_each_is_in_the_history(
    machine: Machine, bucket_address: str, tmp_path: Path
) -> None:
    store = machine("here")
    ids = [commit_text(store, b"%d" % number) for number in range(8)]
    context = multiprocessing.get_context("spawn")
    places = [(bucket_address, str(tmp_path / f"machine-{number}"), ids[number], 25) for number in range(8)]
    workers = [context.Process(target=_move, args=place) for place in places]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 8
    moves = store.history("corpus")
    assert sorted(entry["reason"] for entry in moves) == sorted(f"{each} {n}" for each in ids for n in range(25))
    assert [entry["old"] for entry in moves] == [None, *(entry["new"] for entry in moves[:-1])]
    assert fsck(machine("there")) == []


def _move(address: str, cache: str, new: str, num_moves: int) -> None:
    os.environ["SLUICE_CACHE"] = cache
    store = Store(store_folder(address))
    for number in range(num_moves):
        while True:
            old = store.ref("corpus", "live")
            try:
                store.move_ref("corpus", "live", old, new, f"{new} {number}", {"move": str(number)})
                break
            except RefMovedError:
                continue


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
    golden = (ROOT / "tests/golden.txt").read_text().strip()
    assert [json.loads(said)["snapshot_id"] for said, _ in answers] == [golden] * 8
    assert fsck(machine("there")) == []
