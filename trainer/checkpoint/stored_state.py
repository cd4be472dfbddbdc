"""StoredState: what a checkpoint says of itself beside its tensors. Loads no torch: commands that list or refuse read it alone."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.core.errors import MissingError, TrainingError
from pipeline.store.named_objects import resolve
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import or_undo
from pipeline.store.store import Store
from pipeline.store.store_layout import ANCESTOR, RUNS

CHECKPOINT_KIND = "training/checkpoint"
HISTORY_FILE, STATE = "history.safetensors", "state.json"
FORMAT_VERSION = 6
OTHER = "Resume an earlier checkpoint: `python -m trainer checkpoints list` shows them."


@dataclass(frozen=True)
class TrainingPlace:
    """The place of a training after `step` steps: the fields that state.json holds as they are.

    `identity` is that of the run's inputs, `environment` that of `trainer.checkpoint.environment`; `packing` describes the rows.
    `forks` lists the changes on a resume, each with its step, and with the snapshots of before where those changed; `adoptions`
    the snapshots that the run continued with, each with its position.
    """

    step: int
    identity: Mapping[str, Any]
    loader: Mapping[str, Any]
    environment: Mapping[str, Any]
    packing: Mapping[str, Any]
    forks: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    adoptions: list[dict[str, Any]] = field(default_factory=list, kw_only=True)

    @property
    def snapshots(self) -> dict[str, str]:
        """Every snapshot that ever shaped the weights, by its role: those that this run reads, then what is left of its ancestors.

        Ancestors are the snapshots of the initial weights, and those that were read before a resume with other ones.
        """
        mixture = sorted(self.identity.get("mixture", {}))
        adopted = {f"adopted/{adoption['position']}": adoption["new"] for adoption in self.adoptions}
        own = {"snapshot": self.identity["snapshot_id"], **{f"mixture/{name}": name for name in mixture}, **adopted}
        before = {name for fork in self.forks for name in fork.get("snapshots", ())}
        ancestors = before.union(self.identity.get("initial", {}).get("snapshots", ())) - set(own.values())
        return own | {f"{ANCESTOR}{name}": name for name in sorted(ancestors)}

    @property
    def last_snapshot(self) -> str:
        """The snapshot that is read at the end; of a mixture the first."""
        return str([self.identity["snapshot_id"], *(adoption["new"] for adoption in self.adoptions)][-1])


PLAIN_FIELDS = tuple(each.name for each in fields(TrainingPlace))
STATE_FIELDS = (*PLAIN_FIELDS, "certificate", "parameters_sha256", "optimizer_sha256")


def changes_rows(fields: Collection[str]) -> bool:
    """Return whether a resume that changed these fields of the identity reads other rows than before."""
    return any(name.partition(".")[0] in ("snapshot_id", "mixture", "selection") for name in fields)


def checkpoint_id(store: Store, name: str) -> str:
    """Return the id of a checkpoint by its id, by the first digits of it, as RUN@STEP or RUN@latest.

    Raises MissingError, and TrainingError if the object is not a checkpoint.
    """
    return open_stored(store, resolve(store, "", name, CHECKPOINT_KIND)).object_id


def open_stored(store: Store, checkpoint_id: str) -> StoredObject:
    """Return the object of a checkpoint. Raises MissingError, or TrainingError if the object is not a checkpoint."""
    stored = store.read(checkpoint_id)
    if stored.manifest.kind != CHECKPOINT_KIND:
        remedy = "`python -m trainer checkpoints list` lists them."
        raise TrainingError(f"object {checkpoint_id[:12]}", f"it is a {stored.manifest.kind}", "a checkpoint", remedy)
    return stored


def read_state(stored: StoredObject) -> dict[str, Any]:
    """Read the state.json of a checkpoint. Raises TrainingError for another format or a missing field."""
    subject = f"checkpoint {stored.object_id[:12]}"
    state: dict[str, Any] = stored.json(STATE)
    if state.get("format_version") != FORMAT_VERSION:
        remedy = "Another version of this program wrote it: resume it with that version, or start a new run."
        raise TrainingError(subject, f"it has format {state.get('format_version')}", f"{FORMAT_VERSION}", remedy)
    missing = sorted(set(STATE_FIELDS) - state.keys())
    if missing:
        raise TrainingError(subject, f"its state has no {', '.join(missing)}", f"{', '.join(STATE_FIELDS)}", OTHER)
    return state


def training_place(stored: StoredObject) -> TrainingPlace:
    """Read the place of a training at a checkpoint. Raises TrainingError as `read_state` does."""
    state = read_state(stored)
    return TrainingPlace(**{name: state[name] for name in PLAIN_FIELDS})


TRAIN_AGAIN = "Train again on a snapshot that was built since"


def withdrawn_from(store: Store, snapshots: Collection[str]) -> str | None:
    """Return the first of the snapshots that shaped weights, and held what is withdrawn now or may have, in words, or None."""
    for selector, holding in store.withdrawn_snapshots().items():
        for names, words in zip(holding, ("holds", "may hold, as nothing in the store tells,"), strict=True):
            for snapshot in sorted(names.intersection(snapshots)):
                return f"snapshot {snapshot[:12]}, which shaped its weights, {words} what {selector} withdraws"
    return None


def refuse_withdrawn_weights(store: Store, name: str, snapshots: Collection[str], remedy: str = TRAIN_AGAIN) -> None:
    """Raise TrainingError for weights that a snapshot has shaped which held what is withdrawn now."""
    if (found := withdrawn_from(store, snapshots)) is not None:
        remedy = f"{remedy}, {or_undo('SELECTOR')}"
        raise TrainingError(name, found, "no withdrawn document in any ancestor", remedy)


def find(store: Store, run: str, name: str) -> str | None:
    """Return the id of `latest`, or that of a checkpoint after looking it up; None where the run has no checkpoint yet."""
    latest = store.ref(f"{RUNS}/{run}", "latest")
    if name == "latest":
        return latest
    try:
        return checkpoint_id(store, name)
    except MissingError as error:
        hint = f"The newest of run {run} is {latest}" if latest else f"Run {run} has no checkpoint yet"
        hint += "; `python -m trainer checkpoints list` lists all."
        raise MissingError(f"checkpoint {name}", error.found, f"`latest`, or {error.expected}", hint) from error
