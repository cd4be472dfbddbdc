"""Promotion: the only way to move `live`. Every gate is judged again from stored reports, then the ref is compared and swapped."""

from dataclasses import dataclass

from pipeline.build.seen_red import GateSeenRed, seen_red
from pipeline.build.stage_objects import chain, report_of, stage_of, stage_params
from pipeline.build.withdrawal import refuse_withdrawn
from pipeline.contracts.gates import GateVerdict, judge, refuse_blocked
from pipeline.core.errors import DamagedError, MissingError, SnapshotError
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.stages.stages import STAGES
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import resolve_snapshot
from pipeline.store.store import Store


@dataclass(frozen=True)
class Promotion:
    """The outcome of a promotion: `old` was live before, `new` is live now; `unchanged` if they are the same."""

    corpus: str
    old: str | None
    new: str
    verdicts: tuple[GateVerdict, ...]
    seen_red: tuple[GateSeenRed, ...] = ()
    """How the build that made the snapshot saw each gate red. Nothing is sent again, and no time is too old."""

    @property
    def unchanged(self) -> bool:
        return self.old == self.new


def promote(store: Store, corpus: str, to: str = "candidate", reason: str = "promoted") -> Promotion:
    """Make a snapshot live. `to` is `candidate` or the id of any snapshot in the store: rolling back is the same move.

    Raises BlockedError naming every gate that fails on the stored reports, SnapshotError for a snapshot that holds withdrawn
    documents, RefMovedError if another promotion came first.
    """
    old = store.ref_text(corpus, "live")
    new = resolve_snapshot(store, corpus, to)
    refuse_withdrawn(store, new)
    verdicts = judge_again(store, new)
    refuse_blocked(verdicts, f"promotion of snapshot {new[:12]} in corpus {corpus}")
    seen = seen_red(store, store.verified_by(new))
    store.move_ref(corpus, "live", old, new, reason)
    return Promotion(corpus, old, new, verdicts, seen)


def judge_again(store: Store, snapshot_id: str) -> tuple[GateVerdict, ...]:
    """Judge every gate of every stage that made a snapshot, from the reports and Params that the stages stored."""
    verdicts: list[GateVerdict] = []
    for stored in evidence(store, snapshot_id):
        verdicts.extend(judge(stage_of(stored), report_of(stored).gate_measures, stage_params(stored)))
    return tuple(verdicts)


def evidence(store: Store, snapshot_id: str) -> list[StoredObject]:
    """Read the stage objects that made a snapshot, in stage order. Raises MissingError if one is missing."""
    stages = list(chain(store, _verify_id(store, snapshot_id)))
    subject = f"snapshot {snapshot_id[:12]}"
    if stages[0].manifest.inputs.get("part/snapshot") != snapshot_id:
        found = f"they name {stages[0].object_id[:12]}, which did not verify it"
        raise DamagedError(f"proof of {subject}", found, "its verify stage", "Build it again.")
    if len(stages) != len(STAGES):
        raise MissingError(subject, f"{len(stages)} stages made it", f"{len(STAGES)}", "Build it again.")
    return stages[::-1]


def _verify_id(store: Store, snapshot_id: str) -> str:
    kind, name = store.read(snapshot_id).manifest.kind, snapshot_id[:12]
    if kind != SNAPSHOT_KIND:
        raise SnapshotError(f"object {name}", f"it is a {kind}", "a snapshot", "`show` lists a corpus's refs.")
    found = store.verified_by(snapshot_id)
    if found is None:
        raise MissingError(f"proof of snapshot {name}", "no verify stage is recorded", "", "Build it again.")
    return found
