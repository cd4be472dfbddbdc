"""Where two trainings part: what they were told first, then the first step and tensor that differ."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.core.errors import TrainingError
from pipeline.core.params import flat
from pipeline.store.store import Store
from trainer.checkpoint import checkpoint as checkpoints
from trainer.checkpoint.certificate import StateDigest, differing_tensors
from trainer.checkpoint.checkpoint import Checkpoint

_NUM_SHOWN = 5


@dataclass(frozen=True)
class Subject:
    """One side. `told` is what it was told, by name; `batches` and `states` are empty where only result.json is left."""

    name: str
    told: Mapping[str, Any]
    certificate: str
    losses: Sequence[float]
    batches: Sequence[bytes]
    states: Mapping[int, StateDigest]
    tensors: Sequence[str]
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Comparison:
    """What differs. Steps count from 1; None where nothing does, or where it is not known."""

    is_equal: bool
    told: dict[str, list[Any]]
    first_batch: int | None
    first_loss: int | None
    first_state: int | None
    first_tensors: list[str]
    lines: list[str]


@dataclass(frozen=True)
class TensorDifference:
    """One tensor of two checkpoints. `max_difference` is None where one side lacks it or the shapes differ."""

    name: str
    is_equal: bool
    max_difference: float | None
    found: str


def read(name: str, store: Store | None) -> Subject:
    """A checkpoint by id, or a result.json: with a store, the checkpoint that it names, which knows more."""
    path = Path(name)
    if not path.is_file():
        if store is None:
            raise TrainingError(f"{name}", "it is no file, and no store was given", "--store, or a result.json")
        return _of_checkpoint(name, checkpoints.load(store, name))
    try:
        result = json.loads(path.read_bytes())
        checkpoint_id = result["checkpoint_id"]
        told = {"seed": result["seeds"]["global"], "snapshot_id": result["snapshot_id"], "config": result["config"]}
        told |= {"packing": result["packing"], "environment": result["environment"], "forks": result["forks"]}
        told |= {"mixture": result.get("mixture", {}), "adoptions": _by_position(result.get("adoptions", []))}
        subject = Subject(name, told, result["certificate"], result["losses"], (), {}, ())
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"file {name}", f"it is no result ({error!r})", "a result.json or a checkpoint id"
        ) from error
    if store is not None and store.locate(checkpoint_id):
        return _of_checkpoint(name, checkpoints.load(store, checkpoint_id))
    return subject


def compare(one: Subject, other: Subject) -> Comparison:
    """What two trainings were told differently, and where they part over the steps that both have."""
    before, now = flat(one.told), flat(other.told)
    names = sorted((name for name in before.keys() | now.keys() if before.get(name) != now.get(name)), key=_told_order)
    told = {name: [before.get(name), now.get(name)] for name in names}
    first_batch = _first_difference(one.batches, other.batches)
    first_loss = _first_difference([_bits(loss) for loss in one.losses], [_bits(loss) for loss in other.losses])
    shared = sorted(one.states.keys() & other.states.keys())
    first_state = next((step for step in shared if one.states[step].digest != other.states[step].digest), None)
    tensors: list[str] = []
    if first_state is not None and one.tensors == other.tensors:
        tensors = differing_tensors(one.states[first_state], other.states[first_state], one.tensors)
    is_equal = one.certificate == other.certificate
    found = Comparison(is_equal, told, first_batch, first_loss, first_state, tensors, [])
    found.lines.extend(_lines(one, other, found))
    return found


def diff(one: Checkpoint, other: Checkpoint) -> list[TensorDifference]:
    """Every tensor of two checkpoints, by name."""
    sides = [{**{f"parameters/{name}": t for name, t in c.parameters.items()}, **c.optimizer} for c in (one, other)]
    return [_tensor_difference(name, sides[0].get(name), sides[1].get(name)) for name in sorted(sides[0] | sides[1])]


def _of_checkpoint(name: str, found: Checkpoint) -> Subject:
    told = {**found.identity, "packing": found.packing, "environment": found.environment, "forks": found.forks}
    told["adoptions"] = _by_position(found.adoptions)
    tensors = sorted([f"parameters/{key}" for key in found.parameters] + list(found.optimizer))
    history = found.history
    states = {state.step: state for state in history.states}
    return Subject(name, told, history.certificate, history.losses, history.batches, states, tensors, found)


def _by_position(adoptions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {str(adoption["position"]): adoption["new"] for adoption in adoptions}


def _lines(one: Subject, other: Subject, found: Comparison) -> list[str]:
    if found.is_equal:
        return [f"equal: {len(one.losses)} steps, certificate {one.certificate}"]
    lines = [f"{name}: {before!r} | {now!r}" for name, (before, now) in found.told.items()]
    lines = lines or ["both were told the same: seeds, configuration, packing and environment are equal"]
    if len(one.losses) != len(other.losses):
        lines.append(f"steps: {len(one.losses)} | {len(other.losses)}; compared over those that both have")
    if not one.batches or not other.batches:
        lines.append("batches and tensors: not known from result.json alone; name the store by --store")
    for label, step in (("batch", found.first_batch), ("loss", found.first_loss), ("state", found.first_state)):
        if step is not None:
            lines.append(f"first {label} that differs: step {step}")
    if found.first_tensors:
        more = len(found.first_tensors) - _NUM_SHOWN
        lines.append(
            f"tensors that differ there: {', '.join(found.first_tensors[:_NUM_SHOWN])}"
            + (f" and {more} more" if more > 0 else "")
        )
    if found.first_loss is None and found.first_state is None and found.first_batch is None:
        lines.append("no step that both have differs")
    return lines


def _told_order(name: str) -> tuple[int, str]:
    order = ("seed", "config", "packing", "snapshot_id", "mixture", "adoptions", "forks", "manifest")
    return order.index(name.partition(".")[0]), name


def _first_difference(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    pairs = enumerate(zip(one, other, strict=False), 1)
    return next((step for step, (mine, theirs) in pairs if mine != theirs), None)


def _bits(loss: float) -> str:
    return float(loss).hex()


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
