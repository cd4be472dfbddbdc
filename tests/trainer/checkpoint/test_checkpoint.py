"""A checkpoint holds all that a later step depends on, shares what did not change, and admits nothing foreign."""

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pipeline.core.errors import MissingError, SluiceError, TrainingError
from pipeline.store.store import Store
from tests.support.made.made_checkpoints import made, put, write_run
from trainer.checkpoint.checkpoint import load, optimizer_tensors, restore_model, restore_optimizer
from trainer.checkpoint.retention import is_sound
from trainer.checkpoint.stored_state import CHECKPOINT_KIND, STATE_FIELDS, find
from trainer.checkpoint.tensor_files import digest_tensors
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


@pytest.mark.parametrize("step", [2, 4])
def test_a_step_that_is_not_that_of_the_history_is_refused(store: Store, step: int) -> None:
    checkpoint = replace(made(3), step=step)

    with pytest.raises(TrainingError, match=f"its history has 3 steps; expected {step}"):
        load(store, put(store, checkpoint))


@pytest.mark.parametrize("kind", ["a/kind", "verify/kind"])
def test_an_object_of_another_kind_is_no_checkpoint(store: Store, kind: str) -> None:
    with store.writer("corpus", "a test") as scratch:
        folder = scratch / "made"
        folder.mkdir()
        (folder / "content.txt").write_text("text")
        object_id = store.commit(folder, kind, {}, {})

    assert not is_sound(store, object_id)
    with pytest.raises(TrainingError, match=f"it is a {kind}; expected a checkpoint"):
        load(store, object_id)


def test_a_checkpoint_is_found_by_its_name_or_its_id_and_another_name_is_refused(store: Store) -> None:
    (checkpoint_id,) = write_run(store, "r", range(1, 2))

    assert find(store, "r", "latest") == find(store, "r", checkpoint_id) == checkpoint_id
    assert is_sound(store, checkpoint_id)
    assert find(store, "another", "latest") is None
    with pytest.raises(MissingError, match=f"checkpoint newest: .*The newest of run [a-z]+ is {checkpoint_id}"):
        find(store, "r", "newest")


@pytest.mark.parametrize("change", [lambda names: names[:-1], lambda names: [*names, "step/another"]])
def test_a_state_of_an_optimizer_with_an_entry_less_or_more_is_refused(change: Callable) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    tensors = {name: value + 1 for name, value in optimizer_tensors(optimizer, model).items()}
    restore_optimizer(optimizer, model, tensors)
    assert digest_tensors(optimizer_tensors(optimizer, model)) == digest_tensors(tensors)

    names = change(sorted(tensors))
    with pytest.raises(TrainingError, match="optimizer state: entries differ"):
        restore_optimizer(optimizer, model, {name: tensors.get(name, torch.zeros(1)) for name in names})


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


def test_weights_of_another_shape_or_type_are_refused_before_any_is_copied() -> None:
    model = torch.nn.Linear(2, 1)
    before = digest_tensors(model.state_dict())
    for bias in (torch.ones(2), torch.ones(1, dtype=torch.float64)):
        with pytest.raises(
            TrainingError, match=r"checkpoint's parameters: bias is torch\.float.*expected torch\.float32"
        ):
            restore_model(model, {"weight": torch.ones(1, 2), "bias": bias})

    assert digest_tensors(model.state_dict()) == before
    restore_model(model, {"weight": torch.ones(1, 2), "bias": torch.ones(1)})
    assert model.bias.item() == 1.0
