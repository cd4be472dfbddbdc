"""A checkpoint holds all that a later step depends on, shares what did not change, and admits nothing foreign."""

import fcntl
import io
import json
import os
import pickle
import resource
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import torch

from pipeline.core.durable import acquire
from pipeline.core.errors import SluiceError, StoreError, TrainingError
from pipeline.store.objects import read_manifest
from pipeline.store.store import Store
from trainer.checkpoint import archive, retention
from trainer.checkpoint.certificate import History
from trainer.checkpoint.checkpoint import KIND, STATE_FIELDS, Checkpoint, load, save
from trainer.checkpoint.retention import RetentionPolicy
from trainer.checkpoint.saver import Saver
from trainer.proof.comparison import diff_checkpoints
from trainer.train.resume import load_or_suggest

IDENTITY = {"config": {"batch_rows": 4, "model": {"depth": 2}}, "seed": 42, "snapshot_id": "a" * 64}


def made(step: int, moved: float = 0.0) -> Checkpoint:
    history = History()
    for number in range(step):
        history.extend(bytes([number]) * 32, 5.0 - number, False, None)
    parameters = {"embedding_VD": torch.arange(4096.0), "layers.0.norm.weight": torch.full((2048,), 1.0 + moved)}
    optimizer = {f"exp_avg/{name}": torch.zeros_like(value) for name, value in parameters.items()}
    return Checkpoint(
        step, IDENTITY, {"position": 4 * step}, {"torch": "1"}, {"row_length": 8}, parameters, optimizer, history
    )


def put(store: Store, checkpoint: Checkpoint, before: str | None = None) -> str:
    with store.writer("runs/r", "a test") as scratch:
        return save(store, scratch, checkpoint, before)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", ["parameters", "optimizer"])
def test_values_that_are_not_finite_are_never_saved(store: Store, kind: str, value: float) -> None:
    broken = made(3)
    tensors = getattr(broken, kind)
    name = next(iter(tensors))
    tensors[name][1] = value

    with pytest.raises(TrainingError, match=f"step 3.*{name}"):
        put(store, broken)
    assert list(store.root.glob("objects/*/*/*")) == []


def test_a_checkpoint_reads_back_as_it_was_written(store: Store) -> None:
    checkpoint = made(3)
    found = load(store, put(store, checkpoint))

    assert found.state() == checkpoint.state()
    assert all(row.is_equal for row in diff_checkpoints(found, checkpoint))


def test_a_part_that_did_not_change_is_stored_once(store: Store) -> None:
    first = put(store, made(1))
    second = put(store, made(2, moved=1.0), first)
    one, other = (store.read(name).path for name in (first, second))

    assert os.path.samefile(one / "parameters-embedding_VD.safetensors", other / "parameters-embedding_VD.safetensors")
    assert not os.path.samefile(one / "parameters-layers.0.safetensors", other / "parameters-layers.0.safetensors")
    assert second == put(Store(store.root.with_name("other")), made(2, moved=1.0)), "sharing is no part of the id"


def test_a_damaged_part_is_not_shared(store: Store) -> None:
    first = put(store, made(1))
    path = store.read(first).path / "parameters-embedding_VD.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    second = put(store, made(2), first)

    assert load(store, second).step == 2


@pytest.mark.parametrize("field", [*STATE_FIELDS, "parameters", "optimizer", "history"])
def test_every_entry_of_a_checkpoint_is_needed(store: Store, field: str) -> None:
    stored = store.read(put(store, made(2)))
    with store.writer("runs/r", "a test") as scratch:
        folder = scratch / "doctored"
        folder.mkdir()
        for entry in stored.manifest.files:
            content = stored.file(entry.name).read_bytes()
            if entry.name == "state.json" and field in STATE_FIELDS:
                state = json.loads(content)
                del state[field]
                content = json.dumps(state).encode()
            if field in STATE_FIELDS or not entry.name.startswith(field):
                (folder / entry.name).write_bytes(content)
        doctored = store.commit(folder, KIND, {"step": 2}, {})

    with pytest.raises(SluiceError):
        load(store, doctored)


def test_a_pickle_in_the_place_of_tensors_is_refused_and_never_run(store: Store, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
            return (Path.touch, (tmp_path / "exploded",))

    stored = store.read(put(store, made(2)))
    with store.writer("runs/r", "a test") as scratch:
        folder = scratch / "doctored"
        folder.mkdir()
        for entry in stored.manifest.files:
            (folder / entry.name).write_bytes(stored.file(entry.name).read_bytes())
        (folder / "parameters-layers.0.safetensors").write_bytes(pickle.dumps(Bomb()))
        doctored = store.commit(folder, KIND, {"step": 2}, {})

    with pytest.raises(TrainingError, match=r"parameters-layers\.0\.safetensors .* cannot be read as tensors"):
        load(store, doctored)
    assert not (tmp_path / "exploded").exists()


def test_an_export_is_the_same_bytes_everywhere_and_imports_as_the_same_checkpoint(
    store: Store, tmp_path: Path
) -> None:
    checkpoint_id = put(store, made(2))
    other = Store(tmp_path / "other")
    shas = {
        archive.export_archive(place, put(place, made(2)), tmp_path / name)
        for place, name in ((store, "a"), (other, "b"))
    }
    third = Store(tmp_path / "third")

    assert len(shas) == 1
    assert archive.import_archive(third, tmp_path / "a") == checkpoint_id
    assert load(third, checkpoint_id).state() == made(2).state()


def with_member(tar: tarfile.TarFile, member: tarfile.TarInfo, content: bytes = b"") -> None:
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def planted_link(path: Path) -> None:
    with tarfile.open(path, "a:") as tar:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        with_member(tar, member)


def planted_parent(path: Path) -> None:
    with tarfile.open(path, "a:") as tar:
        with_member(tar, tarfile.TarInfo("../outside"), b"x")


def another_mode(path: Path) -> None:
    content = bytearray(path.read_bytes())
    with tarfile.open(path) as tar:
        member = tar.getmembers()[-1]
    header = bytearray(content[member.offset : member.offset + 512])
    header[100:108] = b"0000755\0"
    header[148:156] = b"        "
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    content[member.offset : member.offset + 512] = header
    path.write_bytes(content)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "spoil",
    [
        planted_link,
        planted_parent,
        another_mode,
        flipped,
        lambda path: path.write_bytes(path.read_bytes() + b"\0"),
        lambda path: path.write_bytes(path.read_bytes()[:-600]),
        lambda path: path.write_bytes(b"no tar"),
    ],
    ids=["a link", "a path with ..", "another mode", "a flipped bit", "a byte more", "cut short", "no tar"],
)
def test_an_import_takes_an_export_and_nothing_else(
    store: Store, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    archive.export_archive(store, put(store, made(2)), tmp_path / "a.tar")
    spoil(tmp_path / "a.tar")
    other = Store(tmp_path / "other")

    with pytest.raises((TrainingError, StoreError)):
        archive.import_archive(other, tmp_path / "a.tar")
    assert list(other.root.glob("objects/*/*/*")) == []
    assert not (tmp_path / "outside").exists()


def write_run(store: Store, run: str, steps: range, keep: RetentionPolicy = RetentionPolicy()) -> list[str]:  # noqa: B008  # frozen
    ids = []
    with store.writer(f"runs/{run}", "a test") as scratch:
        saver = Saver(store, scratch, run, keep, print)
        for step in steps:
            saver.save(replace(made(step, moved=step), identity={**IDENTITY, "seed": len(run)}))
            ids.append(saver.finish(step))
    return ids


def test_every_damaged_file_is_found_and_named_and_the_checkpoint_before_is_offered(store: Store) -> None:
    before, last = write_run(store, "r", range(1, 3))
    for path in sorted(store.read(last).path.iterdir()):
        content = path.read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for damaged in (bytes(flipped), content[:-1], b"", None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(StoreError) as caught:
                load_or_suggest(store, "r", last)
            assert path.name in str(caught.value) or last[:12] in str(caught.value)
            assert str(caught.value).endswith(f"The one of step 1 is sound: --resume {before}")
        path.write_bytes(content)
    assert load_or_suggest(store, "r", last).step == 2


def test_a_clock_that_goes_back_changes_neither_order_nor_what_is_kept(tmp_path: Path) -> None:
    hours = iter(range(100, 0, -1))
    store = Store(tmp_path / "store", clock=lambda: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=next(hours)))
    ids = write_run(store, "r", range(1, 6), RetentionPolicy(last=2))

    assert [entry.checkpoint_id for entry in retention.list_checkpoints(store, "r")] == ids[-2:]
    assert store.ref("runs/r", "latest") == ids[-1]


def test_what_a_run_keeps_is_the_newest_the_regular_and_the_best(store: Store) -> None:
    ids = write_run(store, "r", range(1, 10), RetentionPolicy(last=2, every=4, best=1))

    assert [entry.step for entry in retention.list_checkpoints(store, "r")] == [4, 8, 9]
    assert store.ref("runs/r", "latest") == ids[-1]


def test_prune_spares_what_a_ref_a_certificate_or_a_running_job_needs(store: Store) -> None:
    ids = write_run(store, "r", range(1, 6))
    store.move_ref("runs/r", "certified-2", None, ids[1], "a session ended here")
    store.move_ref("runs/other", "started-from", None, ids[2], "resumed by id")
    rehearsed = [entry.step for entry in retention.prune(store, "r", RetentionPolicy(last=1), is_rehearsal=True)]

    assert rehearsed == [1, 4]
    with (store.root / "locks" / "runs" / "s").open("w") as held:
        # A running job `s` has written what `r` has written too: equal checkpoints are one object.
        store.move_ref("runs/s", "latest", None, ids[3], "step 4")
        store.move_ref("runs/s", "latest", ids[3], ids[4], "step 5")
        acquire(held.fileno(), Path(held.name), "run s", 0, print)
        assert [entry.step for entry in retention.prune(store, "r", RetentionPolicy(last=1))] == [1]
    assert [entry.step for entry in retention.prune(store, "r", RetentionPolicy(last=1))] == [4]
    assert [entry.step for entry in retention.list_checkpoints(store)] == [2, 3, 5]


def test_a_disk_that_is_full_in_the_middle_of_a_file_costs_that_save_alone(store: Store) -> None:
    told: list[str] = []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), told.append)
        saver.save(made(1))
        first = saver.finish(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, before[1]))  # the system refuses what a file holds beyond
        try:
            saver.save(made(2, moved=1.0))
            saver.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert store.ref("runs/r", "latest") == first
        saver.save(made(3))
        saver.finish(3)

    assert [entry.step for entry in retention.list_checkpoints(store, "r")] == [1, 3]
    assert ["step 2 was not saved" in line and first in line for line in told] == [True]


def test_a_save_that_the_disk_refuses_is_told_and_leaves_the_last_good_one(store: Store) -> None:
    told: list[str] = []
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), told.append)
        saver.save(made(1))
        first = saver.finish(1)
        (scratch / "step-2").write_bytes(b"")  # where the next save wants a folder: the system refuses it
        saver.save(made(2))
        with pytest.raises(TrainingError, match=rf"step 2 could not be saved.*last good one is {first}"):
            saver.finish(2)
        saver.save(made(3))
        third = saver.finish(3)

    assert "step 2 was not saved" in told[0]
    assert load(store, third).step == 3
    assert read_manifest(store.read(third).path).kind == KIND


def test_a_slow_disk_delays_no_step_and_the_newest_checkpoint_takes_the_turn_of_one_that_waits(store: Store) -> None:
    told: list[str] = []
    with store.writer("runs/r", "a test") as scratch:
        saver = Saver(store, scratch, "r", RetentionPolicy(), told.append)
        with (store.root / "locks" / ".refs").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # the save of step 1 hangs where it moves `latest`
            saver.save(made(1))
            while not list(store.root.glob("objects/*/*/*/manifest.json")):
                time.sleep(0.01)
            saver.save(made(2))
            saver.save(made(3))
            assert store.ref("runs/r", "latest") is None
        saver.finish(3)

    assert [entry.step for entry in retention.list_checkpoints(store, "r")] == [1, 3]
    assert ["step 2 was not saved" in line for line in told] == [True]
