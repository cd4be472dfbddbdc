"""A checkpoint holds all that a later step depends on, shares what did not change, and admits nothing foreign."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.errors import SluiceError, TrainingError
from pipeline.store.store import Store
from tests.support.made_checkpoints import made, put
from trainer.checkpoint.checkpoint import CHECKPOINT_KIND, STATE_FIELDS, load
from trainer.proof.comparison import diff_checkpoints


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
        doctored = store.commit(folder, CHECKPOINT_KIND, {"step": 2}, {})

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
        doctored = store.commit(folder, CHECKPOINT_KIND, {"step": 2}, {})

    with pytest.raises(TrainingError, match=r"parameters-layers\.0\.safetensors .* cannot be read as tensors"):
        load(store, doctored)
    assert not (tmp_path / "exploded").exists()
