"""Resuming a run: the checkpoint that a session begins with is found, compared with its arguments, and restored."""

from dataclasses import replace

from pipeline.core.errors import StoreError, TrainingError
from pipeline.core.params import changed_values
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from pipeline.store.store_layout import INITIALIZED_FROM
from trainer.checkpoint import checkpoint as checkpoints
from trainer.checkpoint.adoption_record import ResumedPlace
from trainer.checkpoint.checkpoint import Checkpoint
from trainer.checkpoint.initial_weights import WeightsSource
from trainer.checkpoint.resume_rules import check_resume
from trainer.checkpoint.retention import is_sound, list_checkpoints
from trainer.checkpoint.stored_state import find, open_stored, read_state
from trainer.distributed.ranks import Ranks
from trainer.train.session import TrainSession
from trainer.train.training_state import Training

_ONE_RANK = Ranks()


def find_checkpoint(store: Store, session: TrainSession) -> str:
    """Return the id of the checkpoint to resume, or "".

    Raises TrainingError where the run would begin anew with other inputs than those of its checkpoints.
    """
    run = f"runs/{session.run_name}"
    if not (session.resume or session.is_restart):
        _refuse_other_inputs(store, session, store.ref(run, "latest"))
    return (find(store, session.run_name, session.resume) if session.resume else None) or ""


def _refuse_other_inputs(store: Store, session: TrainSession, latest: str | None) -> None:
    if latest is None:
        return
    changed = changed_values(read_state(open_stored(store, latest))["identity"], session.inputs.identity)
    if session.follow:  # it begins with what the ref names now
        changed.pop("snapshot_id", None)
    if changed:
        changes = "; ".join(f"{name} was {before!r}, is now {now!r}" for name, (before, now) in changed.items())
        raise TrainingError(
            f"run {session.run_name}",
            f"its newest checkpoint {latest[:12]} is of another configuration: {changes}",
            "the same",
            "Name another --run, or begin this one anew by --restart: its name then names the new checkpoints.",
        )


def with_first_snapshot(store: Store, session: TrainSession, found_id: str) -> TrainSession:
    """Return a session that follows a ref with the snapshot that its run began with."""
    if not (session.follow and found_id):
        return session
    first = read_state(open_stored(store, found_id))["identity"]["snapshot_id"]
    return replace(session, inputs=replace(session.inputs, snapshot_id=first))


def with_initial_weights(store: Store, session: TrainSession, weights: WeightsSource) -> TrainSession:
    """Return a session whose run begins with these weights. Raises TrainingError if they are of another model or vocabulary."""
    snapshot = open_snapshot(store, session.inputs.snapshot_id)
    config = weights.continued(session.inputs.config, snapshot)
    return replace(session, inputs=replace(session.inputs, config=config, initial=weights.initial))


def mark_origin(store: Store, session: TrainSession, found_id: str) -> None:
    """Set the ref that keeps what a run begins with, once nothing refuses it: a checkpoint of another run, or its weights."""
    run, initial = f"runs/{session.run_name}", session.inputs.initial
    if found_id and found_id not in store.refs(run).values():
        store.move_ref(run, "started-from", store.ref_text(run, "started-from"), found_id, "resumed by id")
    elif not found_id and initial is not None and store.locate(initial.checkpoint_id):
        before = store.ref_text(run, INITIALIZED_FROM)
        store.move_ref(run, INITIALIZED_FROM, before, initial.checkpoint_id, "the weights that it begins with")


def restore_checkpoint(training: Training, session: TrainSession, store: Store, found_id: str) -> None:
    """Restore a checkpoint. Raises TrainingError where it is of another configuration, or was requested and is past `stop_after`.

    A run whose newest checkpoint is past `stop_after` has done what was requested already: it stays as it is.
    """
    found = load_or_suggest(store, session.run_name, found_id, training.writers)
    tokenizer = training.run_data.packing["vocabulary_sha256"]
    changes = check_resume(
        found_id,
        {**found.identity, "environment": found.environment, "tokenizer": found.packing["vocabulary_sha256"]},
        {**session.inputs.identity, "environment": training.environment(), "tokenizer": tokenizer},
        session.allowed_drift,
    )
    if found.step > session.stop_after and session.resume != "latest":
        subject, limit = f"checkpoint {found_id[:12]}", f"at most {session.stop_after}"
        raise TrainingError(subject, f"it is at step {found.step}", limit, "Set a later --stop-after.")
    training.restore(found, changes)


def resumed_place(session: TrainSession, training: Training, found_id: str) -> ResumedPlace:
    """Return the place at which a run begins, or goes on after a resume."""
    return ResumedPlace(
        run=session.run_name,
        name=session.resume or "",
        checkpoint_id=found_id,
        identity=training.inputs.identity,
        history=training.history,
        position=training.position,
        adoptions=[adoption._asdict() for adoption in training.run_data.adoptions],
        forks=training.forks,
    )


def load_or_suggest(store: Store, run: str, found_id: str, ranks: Ranks = _ONE_RANK) -> Checkpoint:
    """Load a checkpoint; if it is damaged or missing, the error names the newest sound one of the run."""
    try:
        return checkpoints.load(store, found_id, ranks)
    except (StoreError, TrainingError) as error:
        for entry in reversed(list_checkpoints(store, run)):
            if entry.checkpoint_id != found_id and is_sound(store, entry.checkpoint_id):
                remedy = f"The one of step {entry.step} is sound: --resume {entry.checkpoint_id}"
                raise type(error)(error.subject, error.found, error.expected, remedy) from error
        raise
