"""Following a ref: at the end of an epoch, a run may continue with the snapshot that the ref names then.

The epoch of a run is that of its slowest source: it ends when every row of every source was read once more. The ref is read
between two steps, before the first batch that begins at the end of the epoch or later. The snapshot found is recorded in a
checkpoint before any of its rows is read: the ref is never read again for a position that a checkpoint has passed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import SluiceError, TrainingError
from pipeline.store.snapshot import REFS, open_usable
from pipeline.store.store import Store
from trainer.checkpoint.adoption_record import ResumedPlace, find_record, mark_record, spelled
from trainer.checkpoint.stored_state import open_stored, read_state
from trainer.distributed.ranks import Ranks
from trainer.train.run_data import Adoption, RunData


@dataclass(frozen=True)
class EpochEnd:
    """Outcome of an epoch's end: the adoption, or why the snapshot found was refused. Both are empty if the ref has not moved."""

    adoption: Adoption | None = None
    refusal: str = ""

    @property
    def metrics(self) -> dict[str, Any]:
        """Entries for the metrics of the step before."""
        adopted = {"adopted": self.adoption._asdict()} if self.adoption else {}
        return adopted | ({"refused": self.refusal} if self.refusal else {})

    @property
    def messages(self) -> list[str]:
        """Lines for the log."""
        if self.refusal:
            return [f"warning: at the end of the epoch the run continues with its snapshot: {self.refusal}"]
        if self.adoption is None:
            return []
        position, old, new = self.adoption
        return [f"from position {position} on: snapshot {new[:12]}, adopted in place of {old[:12]}"]


@dataclass(frozen=True)
class RefFollower:
    """Source of the snapshots to adopt: a record up to the position `known_until`, and a ref after it.

    `read_ref` returns the id that the ref names now, or None. Without it, only the record counts. `sentence` tells of the record.
    """

    record: tuple[Adoption, ...] = ()
    known_until: int = -1
    read_ref: Callable[[], str | None] | None = None
    sentence: str = ""

    def follow(self, run_data: RunData, before: int, position: int, ranks: Ranks) -> EpochEnd:
        """Adopt the snapshot that is due after the step from `before` to `position`, if any."""
        now = run_data.snapshot.snapshot_id
        recorded = [adoption for adoption in self.record if before < adoption.position <= position]
        if recorded:
            adoption = Adoption(position, now, recorded[-1].new)
            run_data.adopt(adoption)
            return EpochEnd(adoption)
        loader = run_data.loader
        is_end = loader.finished_epochs(position) > loader.finished_epochs(before)
        if self.read_ref is None or position <= self.known_until or not is_end:
            return EpochEnd()
        found = ranks.broadcast((self.read_ref() or "") if ranks.rank == 0 else "")
        if found in ("", now):
            return EpochEnd()
        adoption = Adoption(position, now, found)
        try:
            open_usable(run_data.snapshot.store, found)
            run_data.adopt(adoption)
        except SluiceError as error:
            return EpochEnd(refusal=str(error))
        return EpochEnd(adoption)


def open_follower(store: Store, follow: str | None, resumed: ResumedPlace, ranks: Ranks) -> RefFollower:
    """Open the follower of `CORPUS/live`, of `CORPUS/candidate`, or of a checkpoint, whose adoptions are repeated.

    What was adopted beyond the resumed place is repeated before the ref is read, and where no ref is followed too.
    """
    corpus, _, name = (follow or "").partition("/")
    if follow is not None and name not in REFS:
        state = read_state(open_stored(store, follow))
        if list(state["adoptions"][: len(resumed.adoptions)]) != list(resumed.adoptions):
            raise TrainingError(
                "the run to resume",
                f"it adopted {spelled(resumed.adoptions)}",
                f"{spelled(state['adoptions'])}, as checkpoint {follow[:12]} records",
                "Start a new run, or resume a checkpoint of the run that is repeated.",
            )
        ranks.first(lambda: mark_record(store, resumed.run, follow))
        return RefFollower(recorded_adoptions(state))
    read_ref = (lambda: store.ref(corpus, name)) if follow else None
    record = ranks.first(lambda: find_record(store, resumed))
    if record is None:
        if not resumed.checkpoint_id:
            ranks.first(lambda: mark_record(store, resumed.run, None))
        return RefFollower(read_ref=read_ref)
    later = [adoption for adoption in record.adoptions if adoption["position"] > resumed.position]
    if not (follow or later):
        return RefFollower()
    ranks.first(lambda: mark_record(store, resumed.run, record.checkpoint_id))
    sentence = (
        f"up to position {record.position} the run adopts {spelled(later)}, as {record.checkpoint_id[:12]} of run "
    )
    sentence += (
        f"{record.run} records, and a ref only after it" if follow else f"{record.run} records, and nothing after it"
    )
    return RefFollower(recorded_adoptions(record._asdict()), record.position, read_ref, sentence)


def recorded_adoptions(state: Mapping[str, Any]) -> tuple[Adoption, ...]:
    """Return the adoptions in the state of a checkpoint."""
    return tuple(Adoption(**adoption) for adoption in state["adoptions"])
