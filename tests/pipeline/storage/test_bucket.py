"""A store in a bucket holds what one in a folder holds: ids, refs, history, refusals; and no move is lost among processes."""

import multiprocessing
import os
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, LockedError, MissingError, RefMovedError, StoreError
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.store import Store
from pipeline.store.store_layout import store_folder
from tests.pipeline.storage.conftest import Machine
from tests.pipeline.storage.s3_server import faulty_proxy
from tests.support.stored_text import commit_text


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
