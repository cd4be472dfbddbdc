"""Checkpoints of a store: the list of them, and the policy by which old ones are removed."""

import fcntl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.numpy import load_file

from pipeline.core.errors import SluiceError
from pipeline.store.store import Store
from trainer.checkpoint.stored_state import CHECKPOINT_KIND, HISTORY_FILE, open_stored, read_state

NUM_RECENT_LOSSES = 10
"""Steps whose mean loss ranks a checkpoint."""


@dataclass(frozen=True)
class RetentionPolicy:
    """Checkpoints of a run to keep besides those that are needed: the newest, those at multiples of a step, those of least loss.

    If nothing is set, all are kept.
    """

    last: int | None = None
    every: int | None = None
    best: int | None = None

    @property
    def is_limited(self) -> bool:
        return any(value is not None for value in (self.last, self.every, self.best))


@dataclass(frozen=True)
class CheckpointEntry:
    """One checkpoint in the store. `num_own_bytes` leaves out the files that other checkpoints share."""

    checkpoint_id: str
    step: int
    recent_loss: float
    certificate: str
    num_bytes: int
    num_own_bytes: int
    refs: tuple[str, ...]


def list_checkpoints(store: Store, run: str | None = None) -> list[CheckpointEntry]:
    """Return all checkpoints, or those that a run has written, by step. Damaged ones are left out: `fsck` names them."""
    store.storage.fetch_all("objects")
    names = sorted(
        path.name for path in store.root.glob(f"objects/{CHECKPOINT_KIND}/*") if (path / "manifest.json").exists()
    )
    if run is not None:
        written = _written_by(store, run)
        names = [name for name in names if name in written]
    refs = store.named_by()
    entries = [_entry(store, name, tuple(refs.get(name, ()))) for name in names]
    return sorted((entry for entry in entries if entry), key=lambda entry: (entry.step, entry.checkpoint_id))


def is_sound(store: Store, checkpoint_id: str) -> bool:
    """Return whether every byte of a checkpoint is as it was written."""
    try:
        open_stored(store, checkpoint_id).verify()
    except SluiceError:
        return False
    return True


def prune(store: Store, run: str, keep: RetentionPolicy, is_rehearsal: bool = False) -> list[CheckpointEntry]:
    """Remove checkpoints of a run that are neither kept nor needed, and return them. The caller holds the run's lock.

    Needed are those that a ref names (the newest of each run, the last of each session, those that a run started from), and all
    of any other run that is being written now.
    """
    entries = list_checkpoints(store, run)
    kept = _kept(entries, keep) | _needed_by_running(store, run)
    removed = [entry for entry in entries if not entry.refs and entry.checkpoint_id not in kept]
    for entry in removed if not is_rehearsal else ():
        store.discard(entry.checkpoint_id)
    return removed


def _kept(entries: Sequence[CheckpointEntry], keep: RetentionPolicy) -> set[str]:
    newest = entries[-keep.last :] if keep.last else []
    regular = [entry for entry in entries if keep.every and entry.step % keep.every == 0]
    best = sorted(entries, key=lambda entry: (entry.recent_loss, entry.step))[: keep.best or 0]
    chosen = [*newest, *regular, *best] if keep.is_limited else entries
    return {entry.checkpoint_id for entry in chosen}


def _needed_by_running(store: Store, run: str) -> set[str]:
    others = [path for path in sorted((store.root / "locks" / "runs").glob("*")) if path.name != run]
    running = {path.name for path in others if _is_held(path)} | {*store.storage.leased("runs")} - {run}
    return {name for each in sorted(running) for name in _written_by(store, each)}


def _is_held(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _written_by(store: Store, run: str) -> set[str]:
    return {entry["new"] for entry in store.history(f"runs/{run}") if entry["ref"] == "latest"}


def _entry(store: Store, name: str, refs: tuple[str, ...]) -> CheckpointEntry | None:
    try:
        stored = open_stored(store, name)
        state = read_state(stored)
        losses = load_file(str(stored.file(HISTORY_FILE)))["losses"][-NUM_RECENT_LOSSES:]
        own = sum(entry.num_bytes for entry in stored.manifest.files if not _is_linked(stored.path / entry.name))
    except (SluiceError, FileNotFoundError):  # damaged: `fsck` names it, and it cannot be resumed
        return None
    total = sum(entry.num_bytes for entry in stored.manifest.files)
    return CheckpointEntry(name, state["step"], float(losses.mean()), state["certificate"], total, own, refs)


def _is_linked(path: Path) -> bool:
    """Return whether another checkpoint shares a file; in a bucket none does."""
    return path.exists() and path.stat().st_nlink > 1
