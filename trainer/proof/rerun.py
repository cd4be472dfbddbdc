"""Two trainings that parted, run again from the last checkpoint that they share: the first step and tensor that differ.

A record holds a loss a step, and the tensors only now and then. So both sides are computed once more, each as it was told, and
their tensors are compared after every step. Where both were told the same, the two are one, and what is held against it is
the record: the side that leaves it did not repeat.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.certificate import History, StateDigest, describe_state, differing_tensors
from trainer.checkpoint.checkpoint import Checkpoint, load
from trainer.checkpoint.retention import list_checkpoints
from trainer.config.training import TrainingConfig
from trainer.train.build_model import DevicePlacement
from trainer.train.follow_ref import RefFollower, recorded_adoptions
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


@dataclass(frozen=True)
class Trail:
    """What one side does when it is run again: loss and tensors of each step, and the first step that leaves its record."""

    losses: Mapping[int, float]
    states: Mapping[int, StateDigest]
    names: list[str]
    left_record_at: int | None


@dataclass(frozen=True)
class Rerun:
    """What two trails show. `first_step` is None where they are the same over `base_step` + 1 to `last_step`."""

    base_step: int
    last_step: int
    first_step: int | None
    first_tensors: list[str]
    left_record_at: list[int | None]
    lines: list[str]


def rerun(store: Store, one: Checkpoint, other: Checkpoint) -> Rerun:
    """Run both sides again up to the first step at which their records part. Raises TrainingError where they do not part."""
    last = _first_recorded_difference(one.history, other.history)
    if last is None:
        raise TrainingError(
            "re-run", "no step that both have differs", "two trainings that parted", "Compare without --rerun."
        )
    agreed = max((0, *(_steps_before(one, other, last))))
    bases = [_bases(store, side, agreed) for side in (one, other)]
    base_step = max(bases[0].keys() & bases[1].keys())
    trails = [_trail(store, side, base[base_step], last) for side, base in zip((one, other), bases, strict=True)]
    steps = range(base_step + 1, last + 1)
    first = next((step for step in steps if _parted(trails, step)), None)
    tensors: list[str] = []
    if first is not None and trails[0].names == trails[1].names:
        tensors = differing_tensors(trails[0].states[first], trails[1].states[first], trails[0].names)
    left = [trail.left_record_at for trail in trails]
    return Rerun(base_step, last, first, tensors, left, _lines(base_step, last, first, tensors, left))


def _parted(trails: list[Trail], step: int) -> bool:
    return trails[0].states[step].digest != trails[1].states[step].digest


def _first_recorded_difference(one: History, other: History) -> int | None:
    """The first step at which batch, loss or recorded state differ."""
    states = [{state.step: state.digest for state in history.states} for history in (one, other)]
    for step in range(1, min(one.num_steps, other.num_steps) + 1):
        place = step - 1
        digests = [found.get(step) for found in states]
        if one.batches[place] != other.batches[place] or _bits(one.losses[place]) != _bits(other.losses[place]):
            return step
        if None not in digests and digests[0] != digests[1]:
            return step
    return None


def _steps_before(one: Checkpoint, other: Checkpoint, last: int) -> list[int]:
    """The steps before the difference at which both recorded their tensors: these are equal there."""
    recorded = [{state.step for state in side.history.states} for side in (one, other)]
    return [step for step in recorded[0] & recorded[1] if step < last]


def _bases(store: Store, side: Checkpoint, limit: int) -> dict[int, str]:
    """The checkpoints on a side's own way, by step; the beginning is one without an id."""
    certificates = side.history.certificates()
    least = max((fork["step"] for fork in side.forks), default=0)
    found = {0: ""} if not side.forks else {}
    for entry in list_checkpoints(store):
        if least < entry.step <= limit and certificates.get(entry.step) == entry.certificate:
            found[entry.step] = entry.checkpoint_id
    if not found:
        raise TrainingError(
            "re-run",
            f"no checkpoint is left between the fork at step {least} and step {limit}",
            "one to begin at",
            "Compare without --rerun.",
        )
    return found


def _trail(store: Store, side: Checkpoint, base_id: str, last: int) -> Trail:
    training = _training_like(store, side)
    if base_id:
        training.restore(load(store, base_id))
    losses, states = {}, {}
    record = recorded_adoptions(side.state())
    left: int | None = None
    recorded = {state.step: state.digest for state in side.history.states}
    while training.num_steps < last:
        training.step(training.loader.batch_at(training.position, training.config.batch_rows))
        training.end_epoch(RefFollower(record))
        step = training.num_steps
        losses[step] = training.history.losses[-1]
        states[step] = describe_state(step, training.tensors())
        is_same = _bits(losses[step]) == _bits(side.history.losses[step - 1])
        if left is None and not (is_same and recorded.get(step) in (None, states[step].digest)):
            left = step
    return Trail(losses, states, sorted(training.tensors()), left)


def _training_like(store: Store, side: Checkpoint) -> Training:
    """Start a training with the inputs of a checkpoint, on a device of its kind."""
    identity: Mapping[str, Any] = side.identity
    config = TrainingConfig.model_validate(identity["config"])
    mixture = tuple(sorted(identity.get("mixture", {}).items()))
    inputs = RunInputs(identity["snapshot_id"], config, identity["seed"], mixture)
    return Training(store, inputs, DevicePlacement("cpu" if side.environment["device"] == "cpu" else "cuda"))


def _lines(base: int, last: int, first: int | None, tensors: list[str], left: list[int | None]) -> list[str]:
    where = f"from the checkpoint of step {base}, which both share" if base else "from the start"
    lines = [f"run again {where}, to step {last}"]
    for label, step in zip(("first", "second"), left, strict=True):
        if step is not None:
            lines.append(f"the {label} does not repeat: run again, it leaves its own record at step {step}")
    if first is None:
        return [
            *lines,
            "run again, both compute the same: they were told the same, so one of the records is of other bits",
        ]
    shown = ", ".join(tensors[:5]) + (f" and {len(tensors) - 5} more" if len(tensors) > 5 else "")
    return [*lines, f"first step whose tensors differ: step {first}", f"tensors that differ there: {shown}"]


def _bits(loss: float) -> str:
    return float(loss).hex()
