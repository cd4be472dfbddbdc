"""AdoptionRecord: a stored checkpoint that goes on from the one that is resumed, with the adoptions that its run has decided since.

No checkpoint holds what its run decided later. A resumed run repeats it: its own, else that of the run whose checkpoint it resumes.
The ref REPEATED of a run names the checkpoint whose adoptions it repeats, so that they are kept until the run has gone past them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.core.errors import SluiceError, TrainingError
from pipeline.core.params import changed_values
from pipeline.store.log import PROMOTIONS
from pipeline.store.store import Store
from pipeline.store.store_layout import REPEATED, RUNS
from trainer.checkpoint.certificate import History
from trainer.checkpoint.stored_state import HISTORY_FILE, changes_rows, open_stored, read_state
from trainer.checkpoint.tensor_files import read_tensors

_LATEST = "latest"
Adoptions = Sequence[Mapping[str, Any]]


class AdoptionRecord(NamedTuple):
    """Adoptions up to a position, as a checkpoint of a run states them."""

    run: str
    checkpoint_id: str
    position: int
    adoptions: Adoptions


@dataclass(frozen=True)
class ResumedPlace:
    """The place at which a run goes on. `name` is that of its checkpoint as it was given; a new run has no `checkpoint_id`."""

    run: str
    name: str = ""
    checkpoint_id: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    history: History = field(default_factory=History)
    position: int = 0
    adoptions: Adoptions = ()
    forks: Sequence[Mapping[str, Any]] = ()

    @property
    def named_run(self) -> str:
        """The run of a checkpoint that was named RUN@STEP, or as a ref of its run; else empty."""
        run, _, _ = self.name.rpartition("@")
        place, _, _ = self.name.rpartition("/")
        return run or (place.removeprefix(f"{RUNS}/") if place.startswith(f"{RUNS}/") else "")


def find_record(store: Store, resumed: ResumedPlace) -> AdoptionRecord | None:
    """Return the record that goes furthest beyond a place, or None where none does.

    Raises TrainingError where several runs have saved the checkpoint, none of them is named, and they have gone on apart.
    """
    if not resumed.checkpoint_id:
        return None
    own = _furthest(store, resumed, resumed.run)
    if own is not None:
        return own
    if resumed.named_run not in ("", resumed.run):
        return _furthest(store, resumed, resumed.named_run)
    saved = _runs_of(store, resumed.checkpoint_id)
    if resumed.run in saved:
        return None
    records = [record for run in saved if (record := _furthest(store, resumed, run))]
    furthest = max(records, key=lambda record: record.position, default=None)
    others = [record for record in records if furthest and not _agrees(record, furthest)]
    if furthest and others:
        step, apart = resumed.history.num_steps, sorted((others[0], furthest))
        raise TrainingError(
            f"checkpoint {resumed.checkpoint_id[:12]}",
            "; ".join(f"run {each.run} went on from it and adopted {spelled(each.adoptions)}" for each in apart),
            "one run that is gone on with",
            f"Name its run: {' or '.join(f'--resume {each.run}@{step}' for each in apart)}.",
        )
    return furthest


def mark_record(store: Store, run: str, checkpoint_id: str | None) -> None:
    """Set the ref by which a run repeats the adoptions of a checkpoint, also when it is resumed again; None removes it."""
    place = f"{RUNS}/{run}"
    before = store.ref_text(place, REPEATED)
    if checkpoint_id is not None:
        store.move_ref(place, REPEATED, before, checkpoint_id, "its adoptions are repeated")
    elif before is not None:
        store.remove_ref(place, REPEATED, "the run begins anew")


def spelled(adoptions: Adoptions) -> str:
    """Return adoptions in words."""
    each = (f"{adoption['new'][:12]} at position {adoption['position']}" for adoption in adoptions)
    return ", then ".join(each) or "nothing"


def _runs_of(store: Store, checkpoint_id: str) -> list[str]:
    """Return the runs that have saved a checkpoint."""
    moves = (each for each in store.entries(PROMOTIONS) if each["ref"] == _LATEST and each["new"] == checkpoint_id)
    return sorted(
        {str(each["corpus"]).removeprefix(f"{RUNS}/") for each in moves if each["corpus"].startswith(f"{RUNS}/")}
    )


def _furthest(store: Store, resumed: ResumedPlace, run: str) -> AdoptionRecord | None:
    """Return of a run the record that goes furthest: that of its newest checkpoint, or the one that it repeats."""
    newest = (each["new"] for each in reversed(store.history(f"{RUNS}/{run}")) if each["ref"] == _LATEST)
    repeated = store.ref(f"{RUNS}/{run}", REPEATED)
    records = [_first_readable(store, resumed, run, each) for each in (newest, [repeated] if repeated else [])]
    return max((record for record in records if record), key=lambda record: record.position, default=None)


def _first_readable(store: Store, resumed: ResumedPlace, run: str, names: Iterable[str]) -> AdoptionRecord | None:
    """Return the record of the first checkpoint that can be read, if it goes on from the place: `fsck` names the others."""
    for name in dict.fromkeys(names):
        try:
            stored = open_stored(store, name)
            state = read_state(stored)
            record = AdoptionRecord(run, name, int(state["loader"]["position"]), state["adoptions"])
            if record.position <= resumed.position or not _is_of_same_rows(state, resumed):
                return None
            history = History.of_tensors(read_tensors(stored, HISTORY_FILE), state["certificate"])
        except SluiceError:
            continue
        return record if _goes_on(record, history, resumed) else None
    return None


def _is_of_same_rows(state: Mapping[str, Any], resumed: ResumedPlace) -> bool:
    return not changes_rows(changed_values(state["identity"], resumed.identity))


def _goes_on(record: AdoptionRecord, history: History, resumed: ResumedPlace) -> bool:
    """Return whether both are one run up to the place, or up to a fork before it, and have adopted the same there."""
    certificates, own = history.certificates(), resumed.history.certificates()
    steps = {resumed.history.num_steps, *(fork["step"] for fork in resumed.forks)}
    is_one_run = any(step in own and own[step] == certificates.get(step) for step in steps)
    before = [each["new"] for each in record.adoptions if each["position"] <= resumed.position]
    return is_one_run and before == [each["new"] for each in resumed.adoptions]


def _agrees(record: AdoptionRecord, further: AdoptionRecord) -> bool:
    return list(record.adoptions) == [each for each in further.adoptions if each["position"] <= record.position]
