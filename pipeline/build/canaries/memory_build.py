"""MemoryBuild: the stages of a build, run in memory over small made sources, and run again with an output that was altered.

The stages' own functions make the parts, measure them and add up their reports, and their gates judge. Only the trainer is not
started and no canaries are sent: stand-ins make what those parts would return.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.build.audit import audit, request_facts
from pipeline.build.build_context import judged
from pipeline.build.canaries.known_counts import KnownCounts
from pipeline.build.engines.part_task import measured
from pipeline.build.recipes import CorpusParams
from pipeline.contracts.gates import GateVerdict
from pipeline.contracts.part import MadePart, Part, PartJob, PartOutput, StageOutput
from pipeline.contracts.stage import AUDIT
from pipeline.contracts.stage_report import StageReport
from pipeline.core.declared import load_declared
from pipeline.core.errors import MissingError, SourceError
from pipeline.core.params import Params, canonical_json, digest
from pipeline.formats.tables import write_table
from pipeline.pins.decisions import Decision
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selector
from pipeline.stages.stages import STAGES, stage_before, stage_of_kind
from pipeline.store.objects import REPORT


@dataclass(frozen=True)
class MadeOutput:
    """The job of a part function and the output that it made."""

    job: PartJob
    output: PartOutput


@dataclass(frozen=True)
class Alteration:
    """A change of the part `part` of a stage: of its job, of what it made before that is measured, or of its report.

    A `change` may raise SourceError: then the part fails as a source does.
    """

    stage: str
    part: str
    change: Callable[[MadeOutput], MadeOutput] | None = None
    job: Callable[[PartJob], PartJob] | None = None
    report: Callable[[StageReport], StageReport] | None = None


@dataclass(frozen=True)
class Changes:
    """All differences from the sound build: of parts, of pins, and decisions that nobody asked for.

    A stage does not read a pin that `pin` makes None of.
    """

    parts: tuple[Alteration, ...] = ()
    pin: Callable[[SourcePin], SourcePin | None] = lambda pin: pin
    decisions: tuple[Decision, ...] = ()

    @property
    def is_any(self) -> bool:
        """True where something differs."""
        return self != NO_CHANGES

    def of(self, stage: str, part: str) -> tuple[Alteration, ...]:
        """Return the alterations of one part."""
        return tuple(each for each in self.parts if (each.stage, each.part) == (stage, part))


NO_CHANGES = Changes()


@dataclass(frozen=True)
class MemoryObject:
    """An object as stages read it, in memory. A file is written when a library must open it by its path."""

    object_id: str
    kind: str
    inputs: Mapping[str, str]
    output: PartOutput
    folder: Path
    identity: Mapping[str, Any] = field(default_factory=dict)
    _chunked: dict[tuple[str, tuple[str, ...] | None], pa.Table] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Tables that were read, by name and columns. An altered copy of an object begins without any."""

    @property
    def manifest(self) -> "MemoryObject":
        """The inputs and the kind, as those of a stored object."""
        return self

    @property
    def shards(self) -> "tuple[MemoryObject, ...]":
        """Itself: a made source is one part."""
        return (self,)

    is_joined = False

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table `name`, or some of its columns. Its last row is a chunk of its own, as in a large stored table."""
        key = (name, None if columns is None else tuple(columns))
        if key not in self._chunked:
            self._chunked[key] = self._in_chunks(name) if columns is None else self.table(name).select(list(columns))
        return self._chunked[key]

    def _in_chunks(self, name: str) -> pa.Table:
        table = self.output.tables[name]
        last = max(table.num_rows - 1, 0)
        return pa.concat_tables([table.slice(0, last), table.slice(last)]) if table else table

    def paths(self, name: str) -> list[Path]:
        """Write one table and return its files."""
        folder = self.folder / self.object_id
        folder.mkdir(exist_ok=True)
        return [folder / each for each in write_table(folder, name, self.output.tables[name])]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of the table `name`."""
        return list(self.table(name).to_pylist())

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        return name in self.output.files

    def json(self, name: str) -> Any:
        """Parse a JSON file, the report included."""
        return json.loads(self._content(name))

    def file(self, name: str) -> Path:
        """Write one file, unless it is there, and return its path."""
        path = self.folder / f"{self.object_id}-{name}"
        if not path.exists():
            path.write_bytes(self._content(name))
        return path

    def _content(self, name: str) -> bytes:
        return canonical_json(asdict(self.output.report)) if name == REPORT else self.output.files[name]


@dataclass
class MemoryBuild:
    """The stages over `pins`, each run once without changes by `run`, and again with changes by `verdicts`.

    `stand_ins` make, by name, the outputs of part functions that would start a program or send canaries.
    """

    params: CorpusParams
    pins: Sequence[SourcePin]
    folder: Path
    stand_ins: Mapping[str, Callable[[PartJob], PartOutput]] = field(default_factory=dict)
    decisions: Sequence[Decision] = ()
    objects: dict[str, MemoryObject] = field(default_factory=dict)
    stages: dict[str, MemoryObject] = field(default_factory=dict)
    made: dict[str, MadeOutput] = field(default_factory=dict)
    counts: KnownCounts = field(default_factory=KnownCounts)
    shared: dict[tuple[str, int], tuple[Changes, dict[str, GateVerdict]]] = field(default_factory=dict)
    """Verdicts that `shared_verdicts` has found, by stage and identity of the changes, which are kept so that no others have it."""

    def run(self, until: str | None = None) -> dict[str, GateVerdict]:
        """Run every stage up to `until`, the last one unless given, without changes, and return the verdict of every gate."""
        verdicts: dict[str, GateVerdict] = {}
        for stage in STAGES.names[: STAGES.names.index(until) + 1 if until else None]:
            output, judged = self._run(stage, NO_CHANGES)
            inputs = {f"part/{name}": object_id for name, object_id in output.parts.items()}
            content = PartOutput({}, output.report, output.files)
            self.stages[stage] = self.add(f"{stage}/stage", inputs, content, digest([stage]))
            verdicts |= judged
        return verdicts

    def parts(self, stage: str) -> dict[str, MemoryObject]:
        """Return the parts that a stage made without changes, by name."""
        inputs = self.stages[stage].inputs
        return {label.removeprefix("part/"): self.objects[object_id] for label, object_id in inputs.items()}

    def verdicts(self, stage: str, changes: Changes) -> dict[str, GateVerdict]:
        """Run one stage with changes, in its own parts or in those of stages before, and return the verdicts of its gates."""
        return self._run(stage, changes)[1]

    def shared_verdicts(self, stage: str, changes: Changes) -> dict[str, GateVerdict]:
        """Return the same for changes that several offenses have as their control: the stage is run once."""
        key = (stage, id(changes))
        if key not in self.shared:
            self.shared[key] = (changes, self.verdicts(stage, changes))
        return self.shared[key][1]

    def add(
        self,
        kind: str,
        inputs: Mapping[str, str],
        output: PartOutput,
        object_id: str,
        identity: Mapping[str, Any] | None = None,
    ) -> MemoryObject:
        """Add an object that stages can read by its id."""
        made = MemoryObject(object_id, kind, inputs, output, self.folder, identity or {})
        return self.objects.setdefault(object_id, made)

    def _run(self, stage: str, changes: Changes) -> tuple[StageOutput, dict[str, GateVerdict]]:
        context = _Context(self, stage, changes)
        output, verdicts = judged(
            STAGES[stage], context, request_facts(self.pins, self.params, decisions=self.decisions)
        )
        return output, {verdict.gate: verdict for verdict in verdicts}


class _Context:
    """Implementation of `pipeline.contracts.part.StageContext` for one run of one stage in memory."""

    withdrawn: Sequence[Selector] = ()
    offline = True
    erased = frozenset[str]()

    def __init__(self, build: MemoryBuild, stage: str, changes: Changes) -> None:
        self.build = build
        self.stage = stage
        self.changes = changes
        self.params: Any = build.params.of_stage(stage)
        self.corpus_params = build.params
        self.pins = [changed for pin in build.pins if (changed := changes.pin(pin)) is not None]
        self.decisions = (*build.decisions, *changes.decisions)
        self.held_out = build.params.held_out
        self.store_root = build.folder
        self.consumer: Mapping[str, Any] = {}  # no consumer runs: its answers are made
        self.upstream = cache(self._upstream)
        self._unaltered: dict[str, str] = {}

    @property
    def input_id(self) -> str | None:
        before = stage_before(self.stage)
        return None if before is None else self.upstream_id(before)

    @property
    def inputs(self) -> Mapping[str, str]:
        return self.inputs_of(self.stage)

    def _upstream(self, stage: str) -> Mapping[str, str]:
        return {name: self._altered(stage, name, made.object_id) for name, made in self.build.parts(stage).items()}

    def inputs_of(self, stage: str) -> Mapping[str, str]:
        before = stage_before(stage)
        return {} if before is None else self.upstream(before)

    def upstream_id(self, stage: str) -> str:
        if stage not in self.build.stages:
            raise MissingError(f"stage {stage}", f"it does not run before {self.stage}", "an earlier stage")
        return self.build.stages[stage].object_id

    def read(self, object_id: str) -> MemoryObject:
        return self.build.objects[object_id]

    def known(self, part: Part) -> str | None:
        return None  # parts in memory are made each time

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        made: dict[str, MadePart] = {}
        failed: dict[str, SourceError] = {}
        for part in parts:
            try:
                made[part.name] = self._make(part)
            except SourceError as error:
                failed[part.name] = error
        return dict(sorted(made.items())), failed

    def _make(self, part: Part) -> MadePart:
        kind = STAGES[self.stage].part_kind(part.function)
        inputs = dict(part.inputs)
        if (
            kind.measure
        ):  # what is measured apart from its inputs is not made again for a part of its own stage that was altered
            inputs = {label: self._unaltered.get(object_id, object_id) for label, object_id in inputs.items()}
        object_id = digest([kind.kind, part.function, part.name, _plain(part.params), inputs, part.identity])
        alterations = self.changes.of(self.stage, part.name)
        if object_id not in self.build.made or any(each.job for each in alterations):
            opened, count = self._opened(part), self.build.counts.count
            job = PartJob(part.name, part.params, opened, part.identity, part.places, count)
            for alteration in alterations:
                job = alteration.job(job) if alteration.job else job
            made = MadeOutput(job, measured(job, self._function(part)(job), kind.measure))
        else:
            made = self.build.made[object_id]
        if not alterations:
            self.build.made[object_id] = made
        else:
            made, sound_id, object_id = _changed(made, alterations, kind.measure), object_id, self._new_id()
            self._unaltered[object_id] = sound_id
        stored = self.build.add(kind.kind, part.inputs, made.output, object_id, part.identity)
        return MadePart(part.name, stored.object_id, made.output.report, unchanged=False)

    def _function(self, part: Part) -> Callable[[PartJob], PartOutput]:
        own: Mapping[str, Callable[[PartJob], PartOutput]] = {AUDIT: audit, **self.build.stand_ins}
        found = own.get(part.function)
        name = STAGES[self.stage].part_kind(part.function).functions[part.function]
        return found or load_declared(f"part {part.name}", "function", name)

    def _opened(self, part: Part) -> dict[str, Any]:
        return {label: self.read(object_id) for label, object_id in part.inputs.items()}

    def _altered(self, stage: str, part: str, object_id: str) -> str:
        """Return the id of an object of a stage before, or of an altered copy of it."""
        stored = self.read(object_id)
        maker = stage_of_kind(stored.kind)
        stages = _with_passed_on(stage)
        stages = stages if maker in stages or maker not in STAGES else [maker, *stages]  # its parts were passed on
        alterations = [each for name in stages for each in self.changes.of(name, part)]
        if not alterations:
            return object_id
        made = self.build.made.get(object_id) or MadeOutput(PartJob(part, Params(), {}, {}, {}), stored.output)
        made = _changed(made, alterations, None)
        altered_id = digest([object_id, [id(each) for each in alterations]])
        return self.build.add(stored.kind, stored.inputs, made.output, altered_id).object_id

    def _new_id(self) -> str:
        return digest([self.stage, "altered", len(self.build.objects)])


def _with_passed_on(stage: str) -> list[str]:
    """Return a stage, and before it those whose rows it passes on: it keeps rows in the same table."""
    stages = [stage]
    while (before := stage_before(stages[0])) and _tables_kept(before) & _tables_kept(stages[0]):
        stages.insert(0, before)
    return stages


def _tables_kept(stage: str) -> set[str]:
    return {table.name for kind in STAGES[stage].parts for table in kind.tables if table.lists_kept}


def _changed(made: MadeOutput, alterations: Sequence[Alteration], measure: str | None) -> MadeOutput:
    """Apply alterations to an output and measure it again."""
    for alteration in alterations:
        if alteration.change:
            made = alteration.change(made)
            made = replace(made, output=measured(made.job, made.output, measure))
        if alteration.report:
            made = replace(made, output=replace(made.output, report=alteration.report(made.output.report)))
    return made


def _plain(params: Params) -> Any:
    return params.model_dump(mode="json")
