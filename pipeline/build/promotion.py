"""Promotion: the only way to move `live`. The bytes are verified, the data judged again, then the ref is compared and swapped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pipeline.build.collected.collected_sources import contradiction, refuse_bad_archives
from pipeline.build.consumer_proof import consumer_measures
from pipeline.build.given_items import names_of_items
from pipeline.build.oracles.snapshots.audited_snapshot import ComposedOf, misstated_fields
from pipeline.build.recipes import CorpusParams
from pipeline.build.replay import replay
from pipeline.build.seen_red import GateSeenRed, seen_red
from pipeline.build.stage_objects import (
    PARAMS,
    all_limits,
    build_proof,
    chain,
    evidence_of,
    limits_of,
    parts_of,
    report_of,
    stage_of,
    stage_params,
)
from pipeline.build.withdrawal import refuse_withdrawn
from pipeline.contracts.gates import Gate, GateVerdict, gates_of, judge, refuse_blocked
from pipeline.contracts.stage import AUDIT
from pipeline.core.command_line import describe_defect, shell_command
from pipeline.core.digests import code_digest
from pipeline.core.errors import DamagedError, MissingError, ParamsError, SluiceError, SnapshotError
from pipeline.core.table_names import DOCUMENTS, FILES, TOKENS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_KIND
from pipeline.stages.stages import STAGES, stage_with
from pipeline.store.log import PROMOTIONS
from pipeline.store.named_objects import showing
from pipeline.store.objects import StoredObject
from pipeline.store.refs import ASKED, BY_BUILD, BY_ID, LAST, LIVE
from pipeline.store.snapshot import REFS, missing_proof, resolve_snapshot
from pipeline.store.store import Store
from pipeline.store.verification import Verified, refuse_damaged_records, verify_objects

_WITHOUT = "without_archive"
"""Field of a line of the history: the sources that were made again without an archive to compare with."""
_OF_BUILD = ("candidate", LAST)
"""Names of what the last build made: it is promoted by the proof of that build, and what has another name by any of its own."""
_JUDGED = ("measured", "limit", "outcome")
"""Fields of a verdict that a report and parameters give."""


class LimitDifference(NamedTuple):
    """A limit by which a stage was judged, and what the recipe says."""

    name: str
    judged_by: float
    recipe: float

    @property
    def text(self) -> str:
        return f"{self.name} is {self.judged_by:g}, the recipe's is {self.recipe:g}"


@dataclass(frozen=True)
class Promotion:
    """The outcome of a promotion: `old` was live before, `new` is live now; `unchanged` if they are the same."""

    corpus: str
    old: str | None
    new: str
    verdicts: tuple[GateVerdict, ...]
    seen_red: tuple[GateSeenRed, ...] = ()
    """Offenses that turned each gate red in the build that made the snapshot. None is sent again; their time has no limit."""
    verified: Verified = field(default=Verified(0, 0))
    replayed_by: str | None = None
    """Digest of the code with which another process than that of the build made its parts again, now or before."""
    reason: str = ""
    other_limits: tuple[LimitDifference, ...] = ()
    """Limits by which the snapshot was judged and that its recipe has otherwise, where a recipe was given."""
    without_archive: tuple[str, ...] = ()
    """Sources that were not compared with what they were read from: the store has no archive of them by its rules."""
    is_logged: bool = True
    """The history has a line of it with the reason: where nothing moved, only if it was proved anew."""

    @property
    def unchanged(self) -> bool:
        return self.old == self.new


def promote(
    store: Store,
    corpus: str,
    to: str = "candidate",
    reason: str | None = None,
    num_workers: int = 1,
    expected: CorpusParams | None = None,
    how: str = "promoted",
    is_of_last_build: bool = False,
) -> Promotion:
    """Make a snapshot live. `to` is `candidate` or the id of any snapshot in the store: rolling back is the same move.

    Every file of the snapshot, of the stages that made it and of their inputs is verified, the archives that these were read from
    where the store has them, and what the store records of all.
    Unless the history says that a process made the parts of the same proof again, they are made again and compared. The consumer
    that is installed must be the one that proved it, or proves it now, also for what is live.

    `expected` are the Params of the corpus's recipe; without it, limits that the build had otherwise than its own recipe count.
    Where the limits of gates were others, a `reason` must be given, and the history names them; so for a snapshot that a person
    rolled back from, by the id of another. `how` is in the history where no reason is given. What the last build made is promoted
    by the proof of that build: where `to` is a name of it, and with `is_of_last_build` an id too.

    Raises DamagedError and MissingError for bytes that are not as written, BlockedError naming every gate that fails, SnapshotError
    for stored data that contradicts itself or holds withdrawn documents, RefMovedError if another promotion came first.
    """
    old, reason = store.ref_text(corpus, LIVE), _in_words(reason)
    new = resolve_snapshot(store, corpus, to)
    if reason is None and (found := rolled_back(store, corpus, new)):
        remedy = f"Promote another, or {_give_reason(corpus, '--to', new[:12])}"
        subject = f"promotion of snapshot {new[:12]} in corpus {corpus}"
        raise ParamsError(subject, found, "a snapshot that nobody rolled back from, or a reason", remedy)
    with store.in_use():  # `gc` does not run meanwhile
        is_of_build = is_of_last_build or to in _OF_BUILD
        verify_id = _proof_of_build(store, corpus, new) if is_of_build else _proof(store, corpus, new, expected)
        verified = verify_objects(store, (new, verify_id))
        with _refusing_what_cannot_be_read(new):
            refuse_withdrawn(store, new)
            stages = evidence(store, new, verify_id)
            refuse_damaged_records(store, corpus, [new, *(stored.object_id for stored in stages)], moved=LIVE)
            without_archive = refuse_bad_archives(store, stages[0], names_of_items(store, store.read(new)))
            _refuse_misstated(store, stages)
            measures = consumer_measures(store, stages[-1])
            verdicts = _judge(stages, measures)
            refuse_blocked(verdicts, f"promotion of snapshot {new[:12]} in corpus {corpus}")
            recipe = _recipe_limits(store, corpus, verify_id) if expected is None else all_limits(expected.of_stage)
            others = other_limits(stages, recipe)
            _refuse_unexplained(others, reason, corpus, new)
            replayed_by = _replayed_by(store, verify_id, without_archive)
            proof = {"proof": verify_id}
            if replayed_by is None and replay(store, stages, num_workers):
                replayed_by = proof["replayed_by"] = code_digest()
                proof[_WITHOUT] = " ".join(without_archive)
            _refuse_other_verdicts(store, stages)
            proof |= {"other_limits": "; ".join(each.text for each in others)} if others else {}
            proof |= {ASKED: BY_BUILD if is_of_build else BY_ID} if new != old else {}
            seen = seen_red(store, verify_id)
        is_logged = store.move_ref(corpus, LIVE, old, new, reason or how, proof)
    known = (verdicts, seen, verified, replayed_by, reason or how, others, without_archive)
    return Promotion(corpus, old, new, *known, is_logged)


def other_limits(stages: Sequence[StoredObject], recipe: Mapping[str, float]) -> tuple[LimitDifference, ...]:
    """List the limits, bands of drops among them, by which stages were judged and that the recipe has otherwise."""
    own: dict[str, float] = {}
    for stored in stages:
        name = stage_of(stored)
        own |= {f"{name}.{limit}": value for limit, value in limits_of(name, stage_params(stored)).items()}
    return tuple(
        LimitDifference(name, value, recipe[name]) for name, value in own.items() if recipe.get(name, value) != value
    )


def _recipe_limits(store: Store, corpus: str, verify_id: str) -> dict[str, float]:
    """Return the limits that the recipe of the build that made a verify stage had otherwise, as the history of a corpus says."""
    moves = [entry for entry in store.history(corpus) if entry["ref"] == STAGES.names[-1] and entry["new"] == verify_id]
    found: dict[str, float] = json.loads(moves[-1].get("recipe_limits", "{}")) if moves else {}
    return found


def _refuse_unexplained(others: Sequence[LimitDifference], reason: str | None, corpus: str, new: str) -> None:
    if others and not reason:
        found = f"it was judged by other limits than the recipe's: {'; '.join(each.text for each in others)}"
        subject = f"promotion of snapshot {new[:12]} in corpus {corpus}"
        remedy = f"Build again with the limits of the recipe, or {_give_reason(corpus, '--to', new[:12])}"
        raise ParamsError(subject, found, "the limits of the recipe, or a reason", remedy)


def _give_reason(corpus: str, *arguments: str) -> str:
    promote = shell_command("pipeline promote", *arguments, "--reason", "REASON", corpus=corpus)
    return f"give a reason: `{promote}`, or `reason` in the launchpad."


def rolled_back(store: Store, corpus: str, snapshot_id: str) -> str:
    """Return when and why a person rolled back from a snapshot, in words; the empty string where nobody did."""
    move = store.rolled_back(corpus).get(snapshot_id)
    if move is None:
        return ""
    when = f"{move['when'][:10]} {move['when'][11:16]} UTC"
    return f"it was rolled back from at {when}, to {move['new'][:12]}: {move['reason']}"


def refuse_foreign(store: Store, corpus: str, to: str, reason: str | None) -> None:
    """Raise ParamsError for a snapshot that was never the candidate of a corpus, nor live in it, unless a reason is given."""
    new, reason = resolve_snapshot(store, corpus, to), _in_words(reason)
    is_known = any(entry["new"] == new and entry["ref"] in REFS for entry in store.history(corpus))
    if reason or is_known or store.read(new).manifest.kind != SNAPSHOT_KIND:  # promotion refuses other kinds
        return
    subject, found = f"promotion of snapshot {new[:12]} in corpus {corpus}", "its history has no such candidate or live"
    listed = f"`{showing(store, corpus)}` lists those of it. Or " if store.refs(corpus) else ""
    given = _give_reason(corpus, "--to", to)
    remedy = f"{listed}{given}" if listed else f"{given[0].upper()}{given[1:]}"
    raise ParamsError(subject, found, "what was the candidate of this corpus, or live in it, or a reason", remedy)


def _in_words(reason: str | None) -> str | None:
    """Return a reason as one line of what can be printed, without secrets; None for one that says nothing."""
    words = " ".join("".join(each if each.isprintable() else " " for each in reason or "").split())
    if not words:
        return None
    from pipeline.stages.normalize.scrub.shown_text import (
        shown_words,  # commands without a reason do not wait for its libraries
    )

    return shown_words(words)


def judge_again(store: Store, snapshot_id: str, proof: str | None = None) -> tuple[GateVerdict, ...]:
    """Judge every gate of every stage that made a snapshot, from the reports and Params that the stages stored."""
    return _judge(evidence(store, snapshot_id, proof), {})


def evidence(store: Store, snapshot_id: str, proof: str | None = None) -> list[StoredObject]:
    """Read the stage objects that made a snapshot, in stage order, up to the `proof`, the newest verify stage unless given.

    Raises MissingError if one is missing.
    """
    stages = list(chain(store, proof or _verify_id(store, snapshot_id)))
    subject = f"snapshot {snapshot_id[:12]}"
    if stages[0].manifest.inputs.get("part/snapshot") != snapshot_id:
        found = f"they name {stages[0].object_id[:12]}, which did not verify it"
        raise DamagedError(f"proof of {subject}", found, "its verify stage", "Build it again.")
    names = [stage_of(stored) for stored in reversed(stages)]
    expected = STAGES.names[: STAGES.names.index(stage_of(stages[0])) + 1]
    if names != list(expected):
        raise MissingError(subject, f"the stages {', '.join(names)} made it", ", ".join(expected), "Build it again.")
    return stages[::-1]


@contextmanager
def _refusing_what_cannot_be_read(snapshot_id: str) -> Iterator[None]:
    """Raise SnapshotError for stored data whose digests fit, but which lacks a field or a column, or has one of another type."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = f"it cannot be judged again: {describe_defect(error)}"
        remedy = "Build it again; if that ends so too, the code is at fault and not the data: report it with that line."
        raise SnapshotError(f"snapshot {snapshot_id[:12]}", found, "data as a build stores it", remedy) from error


def _refuse_misstated(store: Store, stages: list[StoredObject]) -> None:
    """Raise SnapshotError for a field of the snapshot that is not what the stored data gives, also if this process wrote it."""
    by_name = {
        stage_of(stage): {name: store.read(part_id) for name, part_id in parts_of(stage).items()} for stage in stages
    }
    collect, normalize, tokenize = (stage_with(table).name for table in (FILES, DOCUMENTS, TOKENS))
    params = next(stage.json(PARAMS) for stage in stages if stage_of(stage) == tokenize)
    request = store.read(evidence_of(stages[-1])[AUDIT]).manifest.identity
    of = ComposedOf(by_name[collect], by_name[normalize], by_name[tokenize], params, request)
    snapshot = by_name[stage_of(stages[-1])]["snapshot"]
    for each in misstated_fields(snapshot, snapshot.manifest.inputs, of):
        found = f"its {SNAPSHOT_FILE} has {each.found} as {each.place}"
        expected = f"{each.expected}, as the stored data gives it"
        raise SnapshotError(f"snapshot {snapshot.object_id[:12]}", found, expected, "Build again and promote that.")


def _refuse_other_verdicts(store: Store, stages: list[StoredObject]) -> None:
    """Raise SnapshotError for a stored verdict that the stored report does not give; of a gate that is no longer, none does.

    A limit that is no parameter may have been another in the version that judged: its verdict must follow from that one. By today's
    limit the snapshot was judged again before.
    """
    for stored in stages:
        verdicts = {each["gate"]: each for each in store.verdicts(stored.object_id)["verdicts"]}
        measures, params = report_of(stored).gate_measures, stage_params(stored)
        gates = (_of_limit_then(gate, verdicts.get(gate.name, {})) for gate in gates_of(stage_of(stored)))
        judged = {gate.name: gate.judge(measures, params).as_json() for gate in gates}
        known = judged.keys() & verdicts.keys()
        other = sorted(gate for gate in known for name in _JUDGED if judged[gate][name] != verdicts[gate].get(name))
        if other or (judged and not known):
            found = f"its verdict of {other[0]} differs" if other else "it has no verdicts"
            raise contradiction(stored, found, "those that its report gives")


def _of_limit_then(gate: Gate, verdict: Mapping[str, Any]) -> Gate:
    """Return a gate with the limit that a stored verdict names, unless its limit is a parameter, which is stored too."""
    if isinstance(gate.limit.value, str) or "limit" not in verdict:
        return gate
    return replace(gate, limit=replace(gate.limit, value=float(verdict["limit"])))


def _judge(stages: list[StoredObject], measures: Mapping[str, float]) -> tuple[GateVerdict, ...]:
    """Judge the gates of stored stages; `measures` replace those of the last, verify."""
    verdicts: list[GateVerdict] = []
    for stored in stages:
        fresh = measures if stored is stages[-1] else {}
        verdicts.extend(judge(stage_of(stored), {**report_of(stored).gate_measures, **fresh}, stage_params(stored)))
    return tuple(verdicts)


def _replayed_by(store: Store, verify_id: str, without_archive: Sequence[str]) -> str | None:
    """Return the code by which the parts of a verify stage, and of those before, were made again; None if they never were.

    Its id is the hash of all bytes that were compared then, so that it is no matter with which code, nor when; but what has an
    archive by now and had none then was not compared with it.
    """
    moves = (entry for entry in store.entries(PROMOTIONS) if entry["ref"] == LIVE and entry.get("proof") == verify_id)
    made = (each for each in moves if "replayed_by" in each and {*each.get(_WITHOUT, "").split()} <= {*without_archive})
    return next((str(entry["replayed_by"]) for entry in made), None)


def _proof_of_build(store: Store, corpus: str, snapshot_id: str) -> str:
    """Return the verify stage by which the last build of a corpus proved a snapshot; if it was another's, the newest one."""
    newest = _verify_id(store, snapshot_id)
    return build_proof(store, corpus, snapshot_id) or newest


def _proof(store: Store, corpus: str, snapshot_id: str, expected: CorpusParams | None) -> str:
    """Return the newest verify stage of a snapshot that was judged by the limits of the recipe; if none was, the newest."""
    newest = _verify_id(store, snapshot_id)
    if expected is None:
        return newest
    moves = (entry for entry in reversed(store.history(corpus)) if entry["ref"] in (LIVE, STAGES.names[-1]))
    known = dict.fromkeys([newest, *(str(entry.get("proof", entry["new"])) for entry in moves)])
    is_by_recipe = (each for each in known if _is_by_limits(store, snapshot_id, each, expected))
    return next(is_by_recipe, newest)


def _is_by_limits(store: Store, snapshot_id: str, proof: str, expected: CorpusParams) -> bool:
    """Return whether an object proved a snapshot by the limits of a recipe. What cannot be read did not."""
    try:
        return not other_limits(evidence(store, snapshot_id, proof), all_limits(expected.of_stage))
    except (SluiceError, LookupError, TypeError, ValueError):
        return False  # refused in its own words where no other proof is found


def _verify_id(store: Store, snapshot_id: str) -> str:
    kind, name = store.read(snapshot_id).manifest.kind, snapshot_id[:12]
    if kind != SNAPSHOT_KIND:
        remedy = f"`{shell_command('pipeline show')}` lists a corpus's refs."
        raise SnapshotError(f"object {name}", f"it is a {kind}", "a snapshot", remedy)
    found = store.verified_by(snapshot_id)
    if found is None:
        raise missing_proof(store, snapshot_id)
    return found
