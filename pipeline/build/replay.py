"""Replay: the stages that made a snapshot run again over what the store holds, and each part is compared with the stored one.

A contradiction inside the stored data, whose digests fit, is found because a part made again from its inputs has other bytes. What
cannot be made again: see `docs/architecture.md`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.build.audit import request_facts
from pipeline.build.build import Build, BuildRequest
from pipeline.build.build_context import BuildContext, audited, stage_identity
from pipeline.build.collected.collected_sources import contradiction, refuse_contradictions
from pipeline.build.engines.local_engine import LocalEngine
from pipeline.build.engines.part_task import PartTask, measured
from pipeline.build.given_items import with_kept_items
from pipeline.build.recipes import CorpusParams, with_vocabulary
from pipeline.build.seen_red import CANARIES_PART
from pipeline.build.stage_objects import (
    FAILURES,
    PARAMS,
    chain_params,
    evidence_of,
    parts_of,
    report_of,
    stage_of,
    stage_params,
    was_made_here,
)
from pipeline.contracts.part import DUPLICATES_PART, VOCABULARY_PART, MadePart, Part, PartJob, PartOutput, StageOutput
from pipeline.contracts.stage import AUDIT, Stage
from pipeline.contracts.stage_report import StageReport
from pipeline.core.declared import load_declared
from pipeline.core.digests import file_sha256
from pipeline.core.durable import make_folder
from pipeline.core.errors import SnapshotError, SourceError
from pipeline.core.params import canonical_json, digest, flat
from pipeline.core.table_names import DOCUMENTS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.decisions import Decision
from pipeline.pins.selection import Selector
from pipeline.stages.stages import STAGES, kinds_with, listing_stage
from pipeline.stages.verify.consumer import CONSUMER_FIELD
from pipeline.store.objects import REPORT, StoredObject
from pipeline.store.store import Store

NOT_REPLAYED = ("num_languages_outside_band", "num_language_bands")
"""Measures that depend on what the store does not hold: the bands of languages that a pins file names."""


@dataclass(frozen=True)
class StoredPin:
    """A pin as far as the store holds it: what a source was collected as, and what later stages read of its pin."""

    name: str
    fields: Mapping[str, Any]
    weight: float
    upstreams: Mapping[str, str]
    languages: Mapping[str, tuple[float, float]]

    @property
    def revision(self) -> str:
        return str(self.fields["revision"])

    @property
    def declared_license(self) -> str:
        return str(self.fields["declared_license"])

    @property
    def inherit_license(self) -> bool:
        return bool(self.fields["inherit_license"])

    @property
    def build(self) -> BuildBlock | None:
        found = self.fields.get("build")
        return None if found is None else BuildBlock.model_validate_json(canonical_json(found))

    def identity(self) -> dict[str, Any]:
        """Return the identity of the pin, as the snapshot holds it."""
        return dict(self.fields)


def replay(store: Store, stages: Sequence[StoredObject], num_workers: int = 1) -> bool:
    """Make every part of a snapshot's stages again, but for what this process has just made, and compare.

    `stages` are in order, verify last. Returns whether every part was made again: a process does not judge what it made itself.
    Raises SnapshotError for the first part or stage that is not what its inputs give, also if another version of a stage or library
    is installed than the one that made it: that one is named.
    """
    snapshot = store.read(parts_of(stages[-1])["snapshot"])
    pins = _pins(store, stages, snapshot)
    asked = store.read(evidence_of(stages[0])[AUDIT]).manifest.identity
    held_out = asked["held_out"]
    # What is withdrawn may differ by now: the audit of the collected sources says what was.
    withdrawn = tuple(Selector(text) for text in asked.get("withdrawn", ()))
    params = CorpusParams.model_validate({**chain_params(store, stages[-1].object_id), "held_out": held_out})
    make_folder(store.root / "tmp")
    with TemporaryDirectory(dir=store.root / "tmp", prefix=".replay-") as folder, LocalEngine(num_workers) as engine:
        params = with_kept_items(store, params, snapshot, Path(folder) / "evaluation-items")
        kept = store.read(snapshot.manifest.inputs[VOCABULARY_PART])
        files = {
            entry.name: kept.file(entry.name).read_bytes() for entry in kept.manifest.files if entry.name != REPORT
        }
        params = with_vocabulary(params, files, Path(folder) / "vocabulary")
        request = BuildRequest("replay", params, pins, "a replay", num_workers, offline=True)  # type: ignore[arg-type]  # stages
        request = replace(request, decisions=tuple(_decisions(store, stages)))
        build = Build(request, store, engine, Path(folder), lambda event: None, withdrawn)
        for index, stored in enumerate(stages):
            _refuse_other_identity(stored)
            if stage_of(stored) == listing_stage().name:
                refuse_contradictions(store, stored, {pin.name: pin.fields for pin in pins})
            _replay_stage(build, stored, stages[index - 1].object_id if index else None)
    return not any(was_made_here(part_id) for stored in stages for part_id in _made_again(store, stored))


def _made_again(store: Store, stage: StoredObject) -> Iterator[str]:
    """Yield the ids of the parts of a stage that can be made again."""
    for part_id in (parts_of(stage) | evidence_of(stage)).values():
        stored = store.read(part_id)
        if stored.identity["name"] != CANARIES_PART and CONSUMER_FIELD not in stored.identity:
            yield from _with_inputs(store, STAGES[stage_of(stage)], [stored])


def _with_inputs(store: Store, stage: Stage, parts: Iterable[StoredObject]) -> dict[str, StoredObject]:
    """Return parts of a stage, and those of many that it made them from, by id: shards, and what is made of shards."""
    of_many = {kind.kind for kind in stage.parts if kind.only is None}
    found: dict[str, StoredObject] = {}
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        found[part.object_id] = part
        inputs = {object_id: store.read(object_id) for object_id in set(part.inputs.values()) - found.keys()}
        waiting += [each for each in inputs.values() if each.kind in of_many]
    return found


def _replay_stage(build: Build, stored: StoredObject, input_id: str | None) -> None:
    stage = STAGES[stage_of(stored)]
    if stored.manifest.inputs.get("previous") != input_id:
        raise contradiction(stored, "its input is not the stage before", str(input_id)[:12])
    context = _ReplayContext(build, stored, input_id)
    output = (
        _collected(stored)
        if stage == listing_stage()
        else load_declared(f"stage {stage.name}", "run", stage.run)(context)
    )
    request, withdrawn = build.request, (each.text for each in build.withdrawn)
    output = audited(stage, context, output, request_facts(request.pins, build.params, withdrawn, request.decisions))
    for found, made in ((parts_of(stored), output.parts), (evidence_of(stored), output.evidence)):
        if found != dict(made):
            names = sorted({name for name, _ in set(found.items()) ^ set(made.items())})
            raise contradiction(stored, f"its parts differ: {', '.join(names)}", "those of its inputs")
    _refuse_other_output(stored, output)


def _collected(stored: StoredObject) -> StageOutput:
    """Return the output of the stage that reads sources as it is stored: its sources are fetched by builds alone."""
    listings = {name: object_id for name, object_id in evidence_of(stored).items() if name != AUDIT}
    return StageOutput(parts_of(stored), report_of(stored), evidence=listings)


def _refuse_other_output(stored: StoredObject, output: StageOutput) -> None:
    """Raise SnapshotError unless a stage's report and files are what its parts add up to."""
    found, made = report_of(stored), output.report
    kept = {name: found.measures[name] for name in NOT_REPLAYED if name in found.measures}
    made = replace(made, measures={**made.measures, **kept})
    if _as_stored(made) != _as_stored(found):
        raise contradiction(stored, f"its report has other {_differing(found, made)}", "what its parts add up to")
    if sorted(output.failures) != stored.manifest.identity["failed"]:
        raise contradiction(stored, "other sources failed", ", ".join(sorted(output.failures)) or "none")
    names = {entry.name for entry in stored.manifest.files} - {REPORT, PARAMS, FAILURES}
    if names != set(output.files) or any(
        stored.file(name).read_bytes() != content for name, content in output.files.items()
    ):
        raise contradiction(stored, f"its files {', '.join(sorted(names))} differ", "those of its parts")


def _as_stored(report: StageReport) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(canonical_json(asdict(report)))
    return content


def _differing(found: StageReport, made: StageReport) -> str:
    first, second = found.gate_measures, made.gate_measures
    names = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return ", ".join(names) or "fields"


def _refuse_other_identity(stored: StoredObject) -> None:
    """Raise SnapshotError unless a stage was made by the version, parameters and libraries that are here now."""
    made_by = {name: value for name, value in stored.manifest.identity.items() if name != "failed"}
    if digest(stored.json(PARAMS)) != made_by["params"]:
        raise contradiction(stored, f"its {PARAMS} are other parameters", "those that it was made with")
    here = json.loads(canonical_json(stage_identity(STAGES[stage_of(stored)], stage_params(stored))))
    found, expected = (flat(identity) for identity in (made_by, here))
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    if names:
        raise _of_other_code(
            stored, f"it was made with {_names_and_values(names, found)}", _names_and_values(names, expected)
        )


def _names_and_values(names: Sequence[str], identity: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {identity.get(name)}" for name in names)


def _of_other_code(stored: StoredObject, found: str, expected: str) -> SnapshotError:
    """Return the error of what cannot be made again, because something else is installed than what made it."""
    remedy = (
        "No other process than its build's has made it again, so that it must be proved. Build again and promote that, or promote "
        "with what made it."
    )
    subject = f"{stored.manifest.kind} {stored.object_id[:12]}"
    return SnapshotError(subject, found, f"{expected}, which is installed here", remedy)


class _ReplayContext(BuildContext):
    """A context that makes the parts of a stored stage again and compares them."""

    def __init__(self, build: Build, stored: StoredObject, input_id: str | None) -> None:
        super().__init__(STAGES[stage_of(stored)], build, input_id)
        self._stored = stored

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        made: dict[str, MadePart] = {}
        tasks: list[PartTask] = []
        for part in parts:
            stored = self._stored_part(part)
            made[part.name] = MadePart(part.name, stored.object_id, report_of(stored), unchanged=True)
            if _cannot_be_made_again(part):
                self._refuse_other_report(part, stored)
            elif not was_made_here(stored.object_id):
                tasks.append(replace(self.task(part), is_of_source=False))
        for task, result in self.build.engine.run(tasks):
            stored = self.build.store.read(made[task.part.name].object_id)
            if isinstance(result, SourceError):
                raise contradiction(stored, f"its source fails: {result}", "the part that is stored") from result
            _refuse_other_files(stored, task.folder)
        return made, {}

    def _refuse_other_report(self, part: Part, stored: StoredObject) -> None:
        """Raise SnapshotError unless the report of a part is what its stored files say, if they say anything."""
        kind = self.kind_of(part)
        names = [entry.name for entry in stored.manifest.files if entry.name != REPORT]
        if kind.measure is None or not names:
            return
        inputs = {label: self.build.store.read(object_id) for label, object_id in part.inputs.items()}
        job = PartJob(part.name, part.params, inputs, part.identity, part.places)
        output = PartOutput({}, files={name: stored.file(name).read_bytes() for name in names})
        if _as_stored(measured(job, output, kind.measure).report) != _as_stored(report_of(stored)):
            raise contradiction(stored, f"its report is not that of its {', '.join(names)}", "what they add up to")

    def _refuse_other_work(self, part: Part, stored: StoredObject) -> None:
        """Raise SnapshotError unless a part says of its work what its stage asks for, but for the consumer: that may be another."""
        made_by, expected = (
            flat(
                {name: value for name, value in json.loads(canonical_json(identity)).items() if name != CONSUMER_FIELD}
            )
            for identity in (stored.manifest.identity, self._identity(part))
        )
        names = sorted(name for name in made_by.keys() | expected.keys() if made_by.get(name) != expected.get(name))
        if names:
            raise contradiction(
                stored, f"part {part.name} has {_names_and_values(names, made_by)}", _names_and_values(names, expected)
            )

    @cached_property
    def _beside(self) -> dict[str, str]:
        """The parts that the stored parts were made from in the same stage: name -> object id."""
        parts = (self.build.store.read(part_id) for part_id in parts_of(self._stored).values())
        found = _with_inputs(self.build.store, self.stage, parts)
        return {str(each.identity["name"]): object_id for object_id, each in found.items()}

    def _stored_part(self, part: Part) -> StoredObject:
        """Return the stored part of that name. Raises SnapshotError unless it is of exactly this work."""
        object_id = (self._beside | parts_of(self._stored) | evidence_of(self._stored)).get(part.name)
        if object_id is None:
            raise contradiction(self._stored, f"it has no part {part.name}", "one for each of its inputs")
        stored = self.build.store.read(object_id)
        if not _cannot_be_made_again(part) and stored.manifest.key != self.key_of_part(part):
            expected = f"the part {part.name} of {self.stage.name} that its inputs give with the code"
            raise _of_other_code(stored, "its key is of other inputs, parameters or code", expected)
        if (CONSUMER_FIELD in stored.manifest.identity) != (CONSUMER_FIELD in part.identity):
            raise contradiction(
                stored, f"part {part.name} does not say which consumer it ran", "the consumer's identity"
            )
        if _cannot_be_made_again(part):
            self._refuse_other_work(part, stored)
        if stored.manifest.kind != self.kind_of(part).kind or dict(stored.manifest.inputs) != dict(part.inputs):
            raise contradiction(stored, f"part {part.name} has other inputs", "those of its stage")
        return stored


def _cannot_be_made_again(part: Part) -> bool:
    """Return whether a part is of its own build: canaries are sent in builds alone, and the consumer is proved apart."""
    return part.always or CONSUMER_FIELD in part.identity


def _refuse_other_files(stored: StoredObject, folder: Path) -> None:
    found = {entry.name: entry.sha256 for entry in stored.manifest.files}
    made = {path.name: file_sha256(path) for path in sorted(folder.iterdir())}
    if found != made:
        names = sorted(name for name in found.keys() | made.keys() if found.get(name) != made.get(name))
        raise contradiction(stored, f"made again, it has other {', '.join(names)}", "the stored bytes")


def _decisions(store: Store, stages: Sequence[StoredObject]) -> Iterator[Decision]:
    """Yield the decisions that the sources of a snapshot were cleaned by, in order of sources."""
    for stored in stages:
        for _, part_id in sorted(parts_of(stored).items()):
            part = store.read(part_id)
            if part.kind in kinds_with(DOCUMENTS):
                yield from map(Decision.model_validate, part.manifest.identity.get("decisions", ()))


def _pins(store: Store, stages: Sequence[StoredObject], snapshot: StoredObject) -> tuple[StoredPin, ...]:
    """Return the pins of a snapshot. Raises SnapshotError unless snapshot.json has the sources that were collected."""
    content, weights = snapshot.json(SNAPSHOT_FILE), snapshot.manifest.identity["weights"]
    compared = store.read(snapshot.manifest.inputs[DUPLICATES_PART]).manifest.identity
    sources = parts_of(next(stored for stored in stages if stage_of(stored) == listing_stage().name))
    if not set(sources) <= set(content["pins"]):
        raise contradiction(snapshot, "it has other pins", ", ".join(sources))
    return tuple(
        StoredPin(name, fields, weights.get(name, 1.0), compared.get("upstreams", {}).get(name, {}), {})
        for name, fields in sorted(content["pins"].items())
    )
