"""Rerun of two trainings that differ, from the last checkpoint that they share, to the first step and tensor that differ.

A record holds the loss of every step, but tensors only of some. So both trainings are computed again with their own settings, and
their tensors are compared after every step. With equal settings both compute the same, and the result is compared with the
records: a training that leaves its own record is not repeatable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.core.registry import entries_added_to_runs
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import Checkpoint, load
from trainer.checkpoint.initial_weights import InitialWeights, open_weights
from trainer.checkpoint.retention import list_checkpoints
from trainer.config.training_config import TrainingConfig
from trainer.data.row_selection import RowSelection
from trainer.proof.comparison import TrainingRecord, compare_trainings, differing_tensor_line, training_record
from trainer.train.build_model import DevicePlacement
from trainer.train.follow_ref import RefFollower, recorded_adoptions
from trainer.train.session import RunInputs
from trainer.train.training_state import Training


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
    sides = (one, other)
    last = compare_trainings(*map(training_record, sides)).first_step
    if last is None:
        raise TrainingError("re-run", "no common step differs", "two trainings that differ", "Compare without --rerun.")
    recorded = [{state.step for state in side.history.states if state.step < last} for side in sides]
    bases = [_bases(store, side, max(recorded[0] & recorded[1], default=0)) for side in sides]
    base_step = max(bases[0].keys() & bases[1].keys())
    again = [_run_again(store, side, base[base_step], last) for side, base in zip(sides, bases, strict=True)]
    found = compare_trainings(*again)
    left = [compare_trainings(training_record(side), now).first_step for side, now in zip(sides, again, strict=True)]
    lines = _rerun_report(base_step, last, found.first_state, found.first_tensors, left)
    return Rerun(base_step, last, found.first_state, found.first_tensors, left, lines)


def start_again(store: Store, side: Checkpoint, **changes: Any) -> Training:
    """Start a training with the inputs of a checkpoint, on a device of its kind. `changes` replace fields of its configuration."""
    inputs = inputs_of(side)
    inputs = replace(inputs, config=inputs.config.model_copy(update=changes))
    return Training(store, inputs, DevicePlacement("cpu" if side.environment["device"] == "cpu" else "cuda"))


def inputs_of(side: Checkpoint) -> RunInputs:
    """Return the inputs of the run that a checkpoint belongs to. Raises TrainingError if it used what is not registered here."""
    identity: Mapping[str, Any] = side.identity
    added, registered = identity.get("added", []), entries_added_to_runs()
    if added != registered:
        remedy = "Run it again by the program that trained it."
        raise TrainingError("re-run", f"{registered} are registered", f"{added}, as in the run", remedy)
    config = TrainingConfig.model_validate(identity["config"])
    mixture = tuple(sorted(identity.get("mixture", {}).items()))
    initial = InitialWeights.of_identity(identity.get("initial"))
    selection = RowSelection.of_identity(identity.get("selection", {}))
    return RunInputs(identity["snapshot_id"], config, identity["seed"], mixture, initial, selection)


def _bases(store: Store, side: Checkpoint, limit: int) -> dict[int, str]:
    """Return the checkpoints of a training by step; its start has an empty id."""
    certificates = side.history.certificates()
    least = max((fork["step"] for fork in side.forks), default=0)
    found = {0: ""} if not side.forks else {}
    for entry in list_checkpoints(store):
        if least < entry.step <= limit and certificates.get(entry.step) == entry.certificate:
            found[entry.step] = entry.checkpoint_id
    if not found:
        why = f"there is no checkpoint between the fork at step {least} and step {limit}"
        raise TrainingError("re-run", why, "one to start from", "Compare without --rerun.")
    return found


def _run_again(store: Store, side: Checkpoint, base_id: str, last: int) -> TrainingRecord:
    """Train to step `last` and return the record, which has the state of every step."""
    training = start_again(store, side, certify_every=1)
    if base_id:
        training.restore(load(store, base_id))
    elif training.inputs.initial:
        training.begin_with(open_weights(store, training.inputs.initial.checkpoint_id))
    adoptions = recorded_adoptions(side.state())
    while training.num_steps < last:
        training.step(training.loader.batch_at(training.position, training.config.batch_rows))
        training.end_epoch(RefFollower(adoptions))
    return replace(training_record(side), history=training.history, certificate=training.history.certificate)


def _rerun_report(base: int, last: int, first: int | None, tensors: list[str], left: list[int | None]) -> list[str]:
    where = f"from the checkpoint of step {base}, which both share" if base else "from the start"
    lines = [f"run again {where}, to step {last}"]
    for label, step in zip(("first", "second"), left, strict=True):
        if step is not None:
            lines.append(f"the {label} is not repeatable: run again, it leaves its own record at step {step}")
    if first is None:
        why = "their settings are equal, so one of the records has other bits"
        return [*lines, f"run again, both compute the same: {why}"]
    return [*lines, f"first step whose tensors differ: step {first}", differing_tensor_line(tensors)]
