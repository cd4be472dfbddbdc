"""StoredBuild: the stages that a build of a corpus has reached, found from a ref, or from any object of it.

Every question about a build is asked of one: of the last, whether a gate blocked it or not, of the candidate, of what is live,
or of any other that is still in the store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.build.recipes import RECIPES, pins_of
from pipeline.build.stage_objects import build_proof, chain, failures_of, live_proof, parts_of, stage_of
from pipeline.build.withdrawal import withdrawal_lines
from pipeline.contracts.stage import PartKind
from pipeline.core.command_line import shell_command
from pipeline.core.errors import MissingError, SluiceError, SnapshotError, did_you_mean
from pipeline.formats.snapshot_json import SNAPSHOT_KIND
from pipeline.stages.stages import STAGES, kinds_with, listing_stage, reserved_names, stage_with
from pipeline.store.named_objects import missing_corpus, resolve, showing, split_ref
from pipeline.store.objects import StoredObject
from pipeline.store.refs import LAST, LIVE
from pipeline.store.snapshot import REFS, missing_proof
from pipeline.store.store import Store


@dataclass(frozen=True)
class StoredBuild:
    """A build of a corpus: the objects of the stages that it has reached, by name and in order."""

    store: Store
    corpus: str
    stages: Mapping[str, StoredObject]
    of: str | None = None
    """The name that it was found by; None for the newest that no gate has blocked."""

    @property
    def reached(self) -> StoredObject | None:
        """The object of the last stage that it has reached; None for a corpus that was never built."""
        return next(iter(list(self.stages.values())[-1:]), None)

    @property
    def snapshot_id(self) -> str | None:
        """The snapshot that it composed, also one that a gate of verify has blocked."""
        return parts_of(self.reached).get("snapshot") if self.reached is not None else None

    @property
    def failures(self) -> tuple[Mapping[str, Any], ...]:
        """The verdicts, as JSON, that blocked the stage that it has reached."""
        return () if self.reached is None else _failures(self.store, self.reached)

    def stage(self, name: str) -> StoredObject:
        """Return the object of a stage. Raises MissingError for one that was not reached, saying what was."""
        found = self.stages.get(name)
        if found is None:
            raise self._not_reached(name)
        return found

    def part(self, stage: str, name: str) -> StoredObject:
        """Read the part of a source. Raises MissingError if the stage was not reached, or has no part of that name."""
        parts = {each: part for each, part in parts_of(self.stage(stage)).items() if each not in reserved_names()}
        if name not in parts:
            if failure := failures_of(self.stage(listing_stage().name)).get(name):
                raise MissingError(f"source {name}", f"it failed in this build: {failure.removeprefix(f'{name}: ')}")
            found = f"corpus {self.corpus} has no such source"
            remedy = did_you_mean(name, parts, "Name one of these; `--corpus` names another corpus.")
            if withdrawn := withdrawal_lines(self.store, name):
                found += f", as it was withdrawn {'; '.join(withdrawn)}"
                show = shell_command("pipeline show", corpus=self.corpus)
                remedy = f"`--of ID` asks about an earlier snapshot, as the history of `{show}` lists them."
            raise MissingError(f"source {name}", found, f"one of {', '.join(parts)}", remedy)
        return self.store.read(parts[name])

    def part_of(self, stage: str, kind: PartKind, source: str) -> StoredObject:
        """Read the part of a kind that tells of a source: that of the source, or the only one of all sources."""
        return self.store.read(parts_of(self.stage(stage))[kind.only]) if kind.only else self.part(stage, source)

    def parts_with(self, table: str) -> dict[str, StoredObject]:
        """Read the parts that hold a table, by source; none if the build has not reached their stage."""
        stage = self.stages.get(stage_with(table).name)
        parts = {} if stage is None else {name: self.store.read(part) for name, part in parts_of(stage).items()}
        return {name: part for name, part in parts.items() if part.kind in kinds_with(table)}

    def facts(self) -> dict[str, Any]:
        """Return what the build is, as JSON: the object of the last stage that it has reached, and the gates that blocked it."""
        reached = self.reached
        return {
            "id": None if reached is None else reached.object_id,
            "stage": None if reached is None else stage_of(reached),
            "snapshot_id": self.snapshot_id,
            "blocked_by": [verdict["gate"] for verdict in self.failures],
        }

    def sentence(self) -> str | None:
        """Return what must be known beside an answer: that a gate has blocked this build, or the one after it; otherwise None."""
        if self.failures:
            return f"{self._subject()} was blocked: {_told(self.reached, self.failures)}"
        last = last_build(self.store, self.corpus) if self.of is None else None
        if last is None or not last.failures:
            return None
        told = _told(last.reached, last.failures)
        has_another = any(self.store.ref(self.corpus, ref) for ref in REFS)
        shown = "This is the one before" if has_another else "No build of it has come to a candidate"
        return f"the last build of corpus {self.corpus} was blocked: {told}. {shown}; look at it by `--of {LAST}`"

    def _subject(self) -> str:
        return f"build {self.of} of corpus {self.corpus}" if self.of else f"corpus {self.corpus}"

    def _not_reached(self, name: str) -> MissingError:
        root, subject = self.store.root, self._subject()
        last = last_build(self.store, self.corpus) if self.of is None else self
        if last is not None and last.failures:
            blocked = _told(last.reached, last.failures)
            remedy = (
                f"Look at what it reached by `--of {LAST}`."
                if self.of is None
                else "Correct what blocked it, and build again."
            )
            whose = "the last build was blocked" if self.of is None else "it was blocked"
            return MissingError(subject, f"stage {name} has no output, as {whose}: {blocked}", "", remedy)
        if not self.stages and (snapshot_id := self._rows_alone()) is not None:
            found = f"stage {name} is not here: snapshot {snapshot_id[:12]} was imported with its rows alone"
            bundle = shell_command(
                "pipeline snapshot import", "FILE", corpus=self.corpus, store=self.store.storage.address
            )
            return MissingError(subject, found, "a snapshot with its evidence", f"Import its whole bundle: `{bundle}`.")
        address = self.store.storage.address
        where = f"in {address}" if root.exists() else f"as there is no store {address}"
        build = shell_command("pipeline build", *_arguments_of(self.store, self.corpus), "--until", name, store=address)
        is_known = bool(self.stages) or self.corpus in self.store.corpora()
        near = "" if is_known else did_you_mean(self.corpus, self.store.corpora())
        return MissingError(
            subject, f"stage {name} has no output {where}", "a corpus that was built", f"{near} Run `{build}`.".strip()
        )

    def _rows_alone(self) -> str | None:
        """Return the snapshot that a ref of the corpus names and whose rows alone are here."""
        alone = self.store.rows_alone()
        return next((name for name in map(partial(self.store.ref, self.corpus), REFS) if name in alone), None)


def report_path(store: Store, corpus: str, of: str | None = None) -> Path:
    """Return the file of a report page in the store; the page of another build than the usual one has its name."""
    return store.root / "reports" / (f"{corpus}-{of}.html" if of else f"{corpus}.html")


def stored_build(store: Store, corpus: str, of: str | None = None) -> StoredBuild:
    """Find a build of a corpus: `last`, `candidate`, `live`, or by the id of a snapshot or of a stage's output.

    Without a name it is the last one, or the one before where a gate has blocked that. Raises MissingError for a name of nothing,
    or for a build with a stage that this program does not know; SnapshotError for an object of no build.
    """
    build = _find_build(store, corpus, of)
    if unknown := [name for name in build.stages if name not in STAGES]:
        found = f"stage {', '.join(unknown)} is one of those that made it, and this program has registered none of that name"
        raise MissingError(
            f"build of corpus {build.corpus}", found, ", ".join(STAGES.names), "Ask by the program that built it."
        )
    return build


def _find_build(store: Store, corpus: str, of: str | None) -> StoredBuild:
    corpus, of = (corpus, of) if of is None else split_ref(store, corpus, of)
    if of in (*REFS, LAST) and not store.refs(corpus):
        make = f"Run `{shell_command('pipeline build', *_arguments_of(store, corpus))}`."
        raise missing_corpus(store, corpus, f"build {of} of corpus {corpus}", make)
    if of is not None:
        proof = live_proof(store, corpus) if of == LIVE else None
        found = proof or resolve(store, corpus, of)
        if proof is None and of in REFS:
            found = build_proof(store, corpus, found) or found
        return StoredBuild(store, corpus, _stages(store, found), of)
    last = last_build(store, corpus)
    if last is not None and not last.failures:
        return StoredBuild(store, corpus, last.stages)
    refs = (store.ref(corpus, name) for name in reversed(STAGES.names))
    return StoredBuild(store, corpus, _stages(store, next(filter(None, refs), None)))


def last_build(store: Store, corpus: str) -> StoredBuild | None:
    """Find the build that `last` names; None for a corpus that was never built."""
    last = store.ref(corpus, LAST)
    return None if last is None else StoredBuild(store, corpus, _stages(store, last), LAST)


def candidate_of_before(store: Store, corpus: str) -> str:
    """Return what must be known beside a promotion of the candidate, where a gate has blocked the last build; otherwise nothing."""
    try:
        last, candidate = last_build(store, corpus), store.ref(corpus, "candidate")
        if candidate is None or last is None or not last.failures:
            return ""
        told = _told(last.reached, last.failures)
    except SluiceError:  # a note alone needs that build: the candidate is verified by itself
        return ""
    return f"the last build of corpus {corpus} was blocked: {told}. The candidate is of a build before it: {candidate[:12]}"


def _stages(store: Store, object_id: str | None) -> dict[str, StoredObject]:
    if object_id is None:
        return {}
    kind = store.read(object_id).manifest.kind
    if kind == SNAPSHOT_KIND:
        verify_id = store.verified_by(object_id)
        if verify_id is None:
            raise missing_proof(store, object_id)
        object_id = verify_id
    elif kind not in {stage.kind for stage in STAGES}:
        found, expected = f"it is a {kind}", "a snapshot, or the output of a stage"
        raise SnapshotError(
            f"object {object_id[:12]}", found, expected, f"`{showing(store)}` lists the refs of a corpus."
        )
    return {stage_of(stored): stored for stored in reversed([*chain(store, object_id)])}


def _failures(store: Store, stored: StoredObject) -> tuple[Mapping[str, Any], ...]:
    verdicts = (store.verdicts(stored.object_id) or {"verdicts": []})["verdicts"]
    return tuple(verdict for verdict in verdicts if verdict["blocking"] and not verdict["passed"])


def _told(stored: StoredObject | None, failures: tuple[Mapping[str, Any], ...]) -> str:
    stage = "" if stored is None else f"{stage_of(stored)}, "
    each = (
        f"{one['gate']} ({one['measure']} is {one['measured']:g}, must be {one['comparison']} {one['limit']:g})"
        for one in failures
    )
    return stage + ", ".join(each)


def _arguments_of(store: Store, corpus: str) -> tuple[str, ...]:
    """Return the arguments of `build` for a corpus: a recipe's file where its sources are not those of the recipe of its name."""
    if corpus in RECIPES and RECIPES[corpus].pins is not None:
        collected = store.ref(corpus, listing_stage().name)
        pinned = {pin.name for pin in pins_of(RECIPES[corpus])}
        if collected is None or parts_of(store.read(collected)).keys() <= pinned:
            return ("--recipe", corpus)
    return ("--recipe", "FILE", "--corpus", corpus)
