"""Promotion: the one move of `live`. Every gate is judged again from stored evidence, and the ref is compared and swapped."""

from dataclasses import dataclass

from pipeline.build.stages import STAGES, measures_of, report_of, stage_params
from pipeline.build.withdrawal import refuse_withdrawn
from pipeline.contracts.gates import Verdict, judge, refuse_blocked
from pipeline.core.errors import DamagedError, MissingError, SnapshotError
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import resolve
from pipeline.store.store import Store


@dataclass(frozen=True)
class Promotion:
    """What a promotion did: `old` was live before, `new` is live now; `unchanged` where they are the same."""

    corpus: str
    old: str | None
    new: str
    verdicts: tuple[Verdict, ...]

    @property
    def unchanged(self) -> bool:
        return self.old == self.new


def promote(store: Store, corpus: str, to: str = "candidate", reason: str = "promoted") -> Promotion:
    """Make a snapshot live. `to` is `candidate` or the id of any snapshot in the store: rolling back is the same move.

    Raises BlockedError naming every gate that fails on the stored evidence; SnapshotError for a snapshot that holds what is
    withdrawn; RefMovedError if another promotion came first.
    """
    old = store.ref_text(corpus, "live")
    new = resolve(store, corpus, to)
    refuse_withdrawn(store, new)
    verdicts = judge_again(store, new)
    refuse_blocked(verdicts, f"promotion of snapshot {new[:12]} in corpus {corpus}")
    store.move_ref(corpus, "live", old, new, reason)
    return Promotion(corpus, old, new, verdicts)


def judge_again(store: Store, snapshot_id: str) -> tuple[Verdict, ...]:
    """The verdicts of every gate of every stage behind a snapshot, from the reports and Params that its stages stored."""
    verdicts: list[Verdict] = []
    for stored in evidence(store, snapshot_id):
        name = stored.manifest.kind.split("/")[0]
        verdicts.extend(judge(name, measures_of(report_of(stored)), stage_params(stored)))
    return tuple(verdicts)


def evidence(store: Store, snapshot_id: str) -> list[StoredObject]:
    """The stage objects behind a snapshot, in stage order. Raises MissingError where a link of the chain is gone."""
    chain = [store.read(_verify_id(store, snapshot_id))]
    if chain[0].manifest.inputs.get("part/snapshot") != snapshot_id:
        raise DamagedError(
            f"verdicts of snapshot {snapshot_id[:12]}",
            f"they name {chain[0].object_id[:12]}, which is no proof of it",
            "",
            "Build it again.",
        )
    while "previous" in chain[-1].manifest.inputs:
        chain.append(store.read(chain[-1].manifest.inputs["previous"]))
    chain.reverse()
    if len(chain) != len(STAGES):
        raise MissingError(f"snapshot {snapshot_id[:12]}", f"{len(chain)} stages stand behind it", f"{len(STAGES)}")
    return chain


def _verify_id(store: Store, snapshot_id: str) -> str:
    kind = store.read(snapshot_id).manifest.kind
    if kind != SNAPSHOT_KIND:
        raise SnapshotError(
            f"object {snapshot_id[:12]}", f"it is a {kind}", "a snapshot", "`show` lists a corpus's refs."
        )
    found = store.verdicts(snapshot_id)
    if found is None:
        raise MissingError(f"snapshot {snapshot_id[:12]}", "no verify stage names it", "", "Build it again.")
    verify_id = found["verdicts"].get("verify") if isinstance(found["verdicts"], dict) else None
    if not isinstance(verify_id, str):
        raise DamagedError(
            f"verdicts of snapshot {snapshot_id[:12]}", "they name no verify stage", "", "Build it again."
        )
    return verify_id
