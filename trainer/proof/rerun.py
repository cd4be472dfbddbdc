"""Rerun of two trainings that differ, from the last checkpoint that they share, to the first step and tensor that differ.

A record holds the loss of every step, but tensors only of some. So both trainings are computed again with their own settings, and
their tensors are compared after every step. With equal settings both compute the same, and the result is compared with the
records: a training that leaves its own record is not repeatable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.certificate import StateDigest, describe_state, differing_tensors
from trainer.checkpoint.checkpoint import Checkpoint, load
from trainer.checkpoint.retention import list_checkpoints
from trainer.config.training import TrainingConfig
from trainer.proof.comparison import compare_trainings, differing_tensor_line, loss_bits, record_of
from trainer.train.build_model import DevicePlacement
from trainer.train.follow_ref import RefFollower, recorded_adoptions
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


@dataclass(frozen=True)
class RerunTrace:
    """Trace of one training run again: state of each step, and the first step that leaves its record."""

    states: Mapping[int, StateDigest]
    names: list[str]
    left_record_at: int | None


@dataclass(frozen=True)
class Rerun:
    """Result of running both again. `first_step` is None if they are equal over `base_step` + 1 to `last_step`."""

    base_step: int
    last_step: int
    first_step: int | None
    first_tensors: list[str]
    left_record_at: list[int | None]
    lines: list[str]


def rerun(store: Store, one: Checkpoint, other: Checkpoint) -> Rerun:
    """Run both again up to the first step at which their records differ. Raises TrainingError if they do not differ."""
    last = compare_trainings(record_of("first", one), record_of("second", other)).first_step
    if last is None:
        raise TrainingError("re-run", "no common step differs", "two trainings that differ", "Compare without --rerun.")
    agreed = max((0, *(_steps_before(one, other, last))))
    bases = [_bases(store, side, agreed) for side in (one, other)]
    base_step = max(bases[0].keys() & bases[1].keys())
    traces = [_trace(store, side, base[base_step], last) for side, base in zip((one, other), bases, strict=True)]
    steps = range(base_step + 1, last + 1)
    first = next((step for step in steps if _differ(traces, step)), None)
    tensors: list[str] = []
    if first is not None and traces[0].names == traces[1].names:
        tensors = differing_tensors(traces[0].states[first], traces[1].states[first], traces[0].names)
    left = [trace.left_record_at for trace in traces]
    return Rerun(base_step, last, first, tensors, left, _lines(base_step, last, first, tensors, left))


def _differ(traces: list[RerunTrace], step: int) -> bool:
    return traces[0].states[step].digest != traces[1].states[step].digest


def _steps_before(one: Checkpoint, other: Checkpoint, last: int) -> list[int]:
    """Return the steps before the difference at which both recorded their tensors, which are equal there."""
    recorded = [{state.step for state in side.history.states} for side in (one, other)]
    return [step for step in recorded[0] & recorded[1] if step < last]


def _bases(store: Store, side: Checkpoint, limit: int) -> dict[int, str]:
    """Return the checkpoints of a training by step; its start has an empty id."""
    certificates = side.history.certificates()
    least = max((fork["step"] for fork in side.forks), default=0)
    found = {0: ""} if not side.forks else {}
    for entry in list_checkpoints(store):
        if least < entry.step <= limit and certificates.get(entry.step) == entry.certificate:
            found[entry.step] = entry.checkpoint_id
    if not found:
        raise TrainingError(
            "re-run",
            f"there is no checkpoint between the fork at step {least} and step {limit}",
            "one to start from",
            "Compare without --rerun.",
        )
    return found


def _trace(store: Store, side: Checkpoint, base_id: str, last: int) -> RerunTrace:
    training = _training_like(store, side)
    if base_id:
        training.restore(load(store, base_id))
    states = {}
    record = recorded_adoptions(side.state())
    left: int | None = None
    recorded = {state.step: state.digest for state in side.history.states}
    while training.num_steps < last:
        training.step(training.loader.batch_at(training.position, training.config.batch_rows))
        training.end_epoch(RefFollower(record))
        step = training.num_steps
        states[step] = describe_state(step, training.tensors())
        is_same = loss_bits(training.history.losses[-1]) == loss_bits(side.history.losses[step - 1])
        if left is None and not (is_same and recorded.get(step) in (None, states[step].digest)):
            left = step
    return RerunTrace(states, sorted(training.tensors()), left)


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
            lines.append(f"the {label} is not repeatable: run again, it leaves its own record at step {step}")
    if first is None:
        return [
            *lines,
            "run again, both compute the same: their settings are equal, so one of the records has other bits",
        ]
    return [*lines, f"first step whose tensors differ: step {first}", differing_tensor_line(tensors)]
