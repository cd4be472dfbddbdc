"""Following a ref: when the epoch turns, a run may go on with the snapshot that the ref names then.

The epoch of a run is that of the source which is furthest behind: it turns when every row of every source was read once more.
The ref is looked at between two steps, in front of the first batch that begins where it turned or later. What it named is
recorded in the checkpoint, and a checkpoint is written before a row of the new snapshot is read: what is behind a checkpoint was
decided, and is never asked of the ref again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import SluiceError, TrainingError
from pipeline.store.store import Store
from trainer.checkpoint.certificate import History
from trainer.checkpoint.checkpoint import load, open_stored, read_state
from trainer.distributed.ranks import Ranks
from trainer.train.run_data import Adoption, Reading

REFS = ("live", "candidate")


@dataclass(frozen=True)
class Turn:
    """What became of a turn of the epoch: the adoption, or why the snapshot found was refused; neither where none is newer."""

    adoption: Adoption | None = None
    refusal: str = ""

    @property
    def metrics(self) -> dict[str, Any]:
        """What the line of metrics of the step before says of it."""
        adopted = {"adopted": self.adoption.as_json()} if self.adoption else {}
        return adopted | ({"refused": self.refusal} if self.refusal else {})

    @property
    def words(self) -> list[str]:
        """What a person is told of it."""
        if self.refusal:
            return [f"warning: the epoch turned, and the run goes on with the snapshot it has: {self.refusal}"]
        if self.adoption is None:
            return []
        position, old, new = self.adoption
        return [f"from position {position} on: snapshot {new[:12]}, adopted in place of {old[:12]}"]


@dataclass(frozen=True)
class Following:
    """Where a run finds snapshots to adopt: in a record up to a position, and in a ref behind it.

    `look` returns the id that the ref names now, or None; it is None itself where only the record counts.
    """

    record: tuple[Adoption, ...] = ()
    known_until: int = -1
    look: Callable[[], str | None] | None = None

    @classmethod
    def of_ref(
        cls, store: Store, corpus: str, name: str, record: tuple[Adoption, ...] = (), known_until: int = -1
    ) -> "Following":
        """Follow a ref of a corpus, behind what a record knows."""
        return cls(record, known_until, lambda: store.ref(corpus, name))

    def turn(self, reading: Reading, before: int, position: int, ranks: Ranks) -> Turn:
        """Adopt what is to be adopted behind the step from `before` to `position`."""
        recorded = [adoption for adoption in self.record if before < adoption.position <= position]
        if recorded:
            adoption = Adoption(position, reading.snapshot.snapshot_id, recorded[-1].new)
            reading.adopt(adoption)
            return Turn(adoption)
        loader = reading.loader
        is_known = position <= self.known_until or self.look is None
        if is_known or loader.finished_epochs(position) == loader.finished_epochs(before):
            return Turn()
        return self._adopt_found(reading, position, ranks)

    def _adopt_found(self, reading: Reading, position: int, ranks: Ranks) -> Turn:
        assert self.look is not None
        now = reading.snapshot.snapshot_id
        found = ranks.tell((self.look() or "") if ranks.rank == 0 else "")
        if found in ("", now):
            return Turn()
        adoption = Adoption(position, now, found)
        try:
            reading.adopt(adoption)
        except SluiceError as error:
            return Turn(refusal=str(error))
        return Turn(adoption)


def following_of(store: Store, follow: str | None, run: str, reading: Reading, history: History) -> Following:
    """What a sitting follows: `CORPUS/live` or `CORPUS/candidate`, a checkpoint whose adoptions are repeated, or nothing.

    What the newest checkpoint of this run's own way decided behind the one resumed is repeated before the ref is asked.
    """
    if follow is None:
        return Following()
    corpus, _, name = follow.partition("/")
    if name not in REFS:
        record = recorded_by(read_state(open_stored(store, follow)))
        _check_record(record, reading, f"checkpoint {follow[:12]}")
        return Following(record)
    newest = store.ref(run, "latest") if history.num_steps else None
    if newest is not None:
        found = load(store, newest)
        if found.history.certificates().get(history.num_steps) == history.certificate:
            return Following.of_ref(store, corpus, name, recorded_by(found.state()), int(found.loader["position"]))
    return Following.of_ref(store, corpus, name)


def recorded_by(state: Mapping[str, Any]) -> tuple[Adoption, ...]:
    """The adoptions in the state of a checkpoint."""
    return tuple(Adoption.of(content) for content in state.get("adoptions", ()))


def _check_record(record: tuple[Adoption, ...], reading: Reading, subject: str) -> None:
    """Raise TrainingError unless what was adopted so far is how the record begins."""
    if list(record[: len(reading.adoptions)]) != reading.adoptions:
        raise TrainingError(
            "the run to go on",
            f"it adopted {_spelled(reading.adoptions)}",
            f"{_spelled(record)}, as {subject} records",
            "Begin a new run, or resume a checkpoint of the run that is repeated.",
        )


def _spelled(adoptions: Iterable[Adoption]) -> str:
    return ", then ".join(f"{adoption.new[:12]} at position {adoption.position}" for adoption in adoptions) or "nothing"
