"""Comparison of two trainings: their settings, then the first step and tensor that differ."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.core.errors import TrainingError
from pipeline.core.params import changed_values
from pipeline.store.store import Store
from trainer.checkpoint import checkpoint as checkpoints
from trainer.checkpoint.certificate import History, differing_tensors
from trainer.checkpoint.checkpoint import Checkpoint

_NUM_SHOWN = 5


@dataclass(frozen=True)
class TrainingRecord:
    """Record of one training: `settings` by name; without a checkpoint the history has nothing but losses."""

    settings: Mapping[str, Any]
    certificate: str
    history: History
    tensors: Sequence[str] = ()
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class TrainingComparison:
    """Differences of two trainings. Steps count from 1, and are None if nothing differs or nothing is recorded."""

    is_equal: bool
    settings: dict[str, list[Any]]
    first_batch: int | None
    first_loss: int | None
    first_state: int | None
    first_tensors: list[str]
    lines: list[str]

    @property
    def first_step(self) -> int | None:
        """First common step whose batch, loss or recorded state differs."""
        return min(filter(None, (self.first_batch, self.first_loss, self.first_state)), default=None)


@dataclass(frozen=True)
class TensorDifference:
    """Difference of a tensor in two checkpoints. `max_difference` is None if one lacks it or the shapes differ."""

    name: str
    is_equal: bool
    max_difference: float | None
    found: str


def read_record(name: str, store: Store) -> TrainingRecord:
    """Read a checkpoint by id, or a result.json: the checkpoint that it names, where the store has it, holds more."""
    path = Path(name)
    if not path.is_file():
        return training_record(checkpoints.load(store, name))
    try:
        result = json.loads(path.read_bytes())
        saved_id = result["checkpoint_id"]
        settings = {name: result[name] for name in ("snapshot_id", "config", "packing", "environment", "forks")}
        settings |= {
            "seed": result["seeds"]["global"],
            "mixture": result.get("mixture", {}),
            "selection": result.get("selection", {}),
        }
        settings["added"] = result.get("added", [])
        settings["adoptions"] = _by_position(result.get("adoptions", []))
        record = TrainingRecord(settings, result["certificate"], History(result["losses"]))
    except KeyError as error:
        remedy = "An earlier version wrote it, or it is another file: compare it with that version, or train again."
        raise TrainingError(
            f"file {name}", f"it has no field {error}", "a result.json of this version", remedy
        ) from error
    except (ValueError, TypeError) as error:
        found = f"it is not a result ({type(error).__name__}: {error})"
        remedy = "Name the result.json in the --out of a training, or a checkpoint."
        raise TrainingError(f"file {name}", found, "a result.json or a checkpoint id", remedy) from error
    return _saved_record(name, record, checkpoints.load(store, saved_id)) if store.locate(saved_id) else record


def _saved_record(name: str, written: TrainingRecord, saved: Checkpoint) -> TrainingRecord:
    record = training_record(saved)
    if written.certificate != record.certificate or written.history.losses != record.history.losses:
        found = f"certificate {written.certificate} after {written.history.num_steps} steps"
        expected = f"{record.certificate} after {record.history.num_steps}, as its checkpoint says, with equal losses"
        remedy = "It was changed after the session: compare the checkpoint, by its id."
        raise TrainingError(f"file {name}", found, expected, remedy)
    return record


def training_record(found: Checkpoint) -> TrainingRecord:
    """Return the record that a checkpoint holds."""
    settings = {**found.identity, "packing": found.packing, "environment": found.environment, "forks": found.forks}
    settings |= {"adoptions": _by_position(found.adoptions), "added": found.identity.get("added", [])}
    tensors = sorted([f"parameters/{name}" for name in found.parameters] + list(found.optimizer))
    return TrainingRecord(settings, found.history.certificate, found.history, tensors, found)


def compare_trainings(one: TrainingRecord, other: TrainingRecord) -> TrainingComparison:
    """Compare settings, and batches, losses and states of the steps that both have."""
    changed = changed_values(one.settings, other.settings)
    settings = {name: changed[name] for name in sorted(changed, key=_settings_order)}
    first_batch = _first_difference(one.history.batches, other.history.batches)
    first_loss = _first_difference(*([float(loss).hex() for loss in side.history.losses] for side in (one, other)))
    states = [{state.step: state for state in side.history.states} for side in (one, other)]
    pairs = ((states[0][step], states[1][step]) for step in sorted(states[0].keys() & states[1].keys()))
    differing = next((pair for pair in pairs if pair[0].digest != pair[1].digest), None)
    tensors = differing_tensors(*differing, one.tensors) if differing and one.tensors == other.tensors else []
    firsts = (first_batch, first_loss, differing[0].step if differing else None, tensors)
    same_losses = first_loss is None and one.history.num_steps == other.history.num_steps
    found = TrainingComparison(one.certificate == other.certificate and same_losses, settings, *firsts, [])
    found.lines.extend(_comparison_report(one, other, found))
    return found


def diff_checkpoints(one: Checkpoint, other: Checkpoint) -> list[TensorDifference]:
    """Compare every tensor of two checkpoints, by name."""
    sides = [{**{f"parameters/{name}": t for name, t in c.parameters.items()}, **c.optimizer} for c in (one, other)]
    return [_tensor_difference(name, sides[0].get(name), sides[1].get(name)) for name in sorted(sides[0] | sides[1])]


def _by_position(adoptions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {str(adoption["position"]): adoption["new"] for adoption in adoptions}


def differing_tensor_line(names: Sequence[str]) -> str:
    """Return a line with the first names of tensors that differ, and how many more do."""
    more = len(names) - _NUM_SHOWN
    return f"tensors that differ there: {', '.join(names[:_NUM_SHOWN])}" + (f" and {more} more" if more > 0 else "")


def _comparison_report(one: TrainingRecord, other: TrainingRecord, found: TrainingComparison) -> list[str]:
    if found.is_equal:
        return [f"equal: {one.history.num_steps} steps, certificate {one.certificate}"]
    lines = [f"{name}: {before!r} | {now!r}" for name, (before, now) in found.settings.items()]
    lines = lines or ["settings are equal: seeds, configuration, packing and environment are equal"]
    if one.certificate == other.certificate:
        lines.append("certificates are equal and losses are not: a result.json was changed after its session")
    num_steps, num_other_steps = one.history.num_steps, other.history.num_steps
    if num_steps != num_other_steps:
        lines.append(f"steps: {num_steps} | {num_other_steps}; common steps are compared")
    if not one.history.batches or not other.history.batches:
        lines.append("batches and tensors: not recorded in result.json; name the store of its checkpoints by --store")
    for label, step in (("batch", found.first_batch), ("loss", found.first_loss), ("state", found.first_state)):
        if step is not None:
            lines.append(f"first {label} that differs: step {step}")
    if found.first_tensors:
        lines.append(differing_tensor_line(found.first_tensors))
    if found.first_step is None:
        lines.append("no common step differs")
    return lines


def _settings_order(name: str) -> tuple[int, str]:
    order = (
        "seed",
        "config",
        "added",
        "packing",
        "snapshot_id",
        "mixture",
        "selection",
        "adoptions",
        "forks",
        "environment",
    )
    return order.index(name.partition(".")[0]), name


def _first_difference(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    pairs = enumerate(zip(one, other, strict=False), 1)
    return next((step for step, (mine, theirs) in pairs if mine != theirs), None)


def _tensor_difference(name: str, one: Tensor | None, other: Tensor | None) -> TensorDifference:
    if one is None or other is None:
        return TensorDifference(name, False, None, f"only in the {'second' if one is None else 'first'}")
    if one.shape != other.shape or one.dtype != other.dtype:
        shapes = f"{list(one.shape)} {one.dtype} | {list(other.shape)} {other.dtype}"
        return TensorDifference(name, False, None, shapes)
    if torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8)):
        return TensorDifference(name, True, 0.0, "equal")
    largest = float((one.double() - other.double()).abs().max())
    return TensorDifference(name, False, largest, f"largest difference {largest:.3g}")
