"""Stage runs: `run_stage()`, the one way to run a stage, inside Dagster and without it, and its result."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as library_version
from pathlib import Path
from typing import Any

from pipeline.build.audit import NOT_COLLECTED, audit_part, request_facts
from pipeline.build.build import Build, ProgressEvent
from pipeline.build.engine import PartTask, write_output
from pipeline.build.given_items import keep_items
from pipeline.build.stage_objects import PARAMS, chain, mark_made, parts_of, report_of, stage_of
from pipeline.contracts.gates import CONSERVED, GATES, GateVerdict, gates_of, judge, refuse_blocked
from pipeline.contracts.part import MadePart, Part, PartOutput, StageOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.declared import CORRECT, load_declared
from pipeline.core.errors import MeasureError, MissingError, ParamsError, RefMovedError, SourceError, StageError
from pipeline.core.params import Params, fingerprint
from pipeline.core.registry import added_entries
from pipeline.lexing.languages import LANGUAGES
from pipeline.pins.pins import SourcePin
from pipeline.stages.stages import AUDIT, STAGES, PartKind, Stage, stage_before
from pipeline.stages.verify.consumer import consumer_identity
from pipeline.store.objects import key_of


@dataclass(frozen=True)
class StageResult:
    """The outcome of one stage: its stored object, its parts, and the verdicts of its gates."""

    stage: str
    object_id: str
    report: StageReport
    verdicts: tuple[GateVerdict, ...]
    parts: Mapping[str, str]
    unchanged: bool
    failures: Mapping[str, SourceError] = field(default_factory=dict)
    source_reports: Mapping[str, StageReport] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def snapshot_id(self) -> str | None:
        """The snapshot that the stage composed; None for every stage but verify."""
        return self.parts.get("snapshot")

    @property
    def blocked(self) -> bool:
        """True where a blocking gate failed: no later stage may run."""
        return any(verdict.blocking and not verdict.passed for verdict in self.verdicts)

    def refuse_blocked(self, corpus: str) -> None:
        """Raise BlockedError naming each gate that failed with its value and limit, and each source that failed."""
        failed = [f"Source {name} failed: {error}" for name, error in sorted(self.failures.items())]
        refuse_blocked(self.verdicts, f"stage {self.stage} of corpus {corpus}", " ".join([*failed, *self.notes]))


class BuildCallback:
    """Hooks of a build and of the training after it, which do nothing. `assets.demo` draws bars."""

    def progress(self, progress: ProgressEvent) -> None:
        """Run after each part."""

    def finished(self, result: StageResult, seconds: float) -> None:
        """Run after each stage, blocked or not."""

    def said(self, text: str) -> None:
        """Run for each line that the trainer logs."""


def run_stage(name: str, build: Build, previous_id: str | None) -> StageResult:
    """Run one stage of a build: make its parts, judge its gates, move its ref.

    `previous_id` is the id that the stage before returned; it is refused unless the ref of the corpus still names it. If a
    blocking gate failed, the output and its verdicts are kept, the result is `blocked`, and no ref moves.
    """
    stage = STAGES[name]
    _refuse_bad_gates(stage)
    _refuse_stale(stage, build, previous_id)
    context = BuildContext(stage, build, previous_id)
    keep_items(build.store, build.params)
    withdrawn = (each.text for each in build.withdrawn)
    request = request_facts(build.request.pins, build.params, withdrawn, build.request.decisions)
    output, verdicts = judged(stage, context, request)
    object_id, existed = _commit_stage(stage, context, output)
    build.store.put_verdicts(object_id, [verdict.as_json() for verdict in verdicts])
    result = StageResult(
        stage=name,
        object_id=object_id,
        report=output.report,
        verdicts=verdicts,
        parts=output.parts,
        unchanged=existed and context.all_unchanged,
        failures=output.failures,
        source_reports=context.reports,
        notes=output.notes,
        warnings=output.warnings,
    )
    if not result.blocked:
        _move_refs(result, build)
    return result


def run_stages(build: Build, until: str | None = None) -> Iterator[StageResult]:
    """Run the stages in order up to `until`, the last one unless given, yielding each result. A blocked stage is the last."""
    last = STAGES[until].name if until else STAGES.names[-1]
    previous: str | None = None
    for name in STAGES.names:
        result = run_stage(name, build, previous)
        yield result
        if result.blocked or name == last:
            return
        previous = result.object_id


def judged(stage: Stage, context: Any, request: Mapping[str, Any]) -> tuple[StageOutput, tuple[GateVerdict, ...]]:
    """Run a stage in a StageContext, audit its output, and judge its gates. Canaries go through here too.

    `request` is what `request_facts` returns of the build's request: an audit does not read it from the context of the stage.
    """
    output = audited(stage, context, load_declared(f"stage {stage.name}", "run", stage.run)(context), request)
    try:
        return output, judge(stage.name, output.report.gate_measures, context.params)
    except MeasureError as error:
        if not output.failures:
            raise
        failed = " ".join(f"Source {name} failed: {failure}" for name, failure in sorted(output.failures.items()))
        raise StageError(f"stage {stage.name}", "no source came through", "one at least", failed) from error


def audited(stage: Stage, context: Any, output: StageOutput, request: Mapping[str, Any]) -> StageOutput:
    """Audit an output: rows in are those that the stage before stored, and what the report says of the others must be stored.

    Of a measure that the stage reports too, the larger value counts. Rows of a stage that passes them on are those that are found.
    """
    before, after = _with_rows(context, context.inputs), _with_rows(context, {**output.parts, **output.evidence})
    made, _ = context.make([audit_part(stage.name, before, after, request)])
    audit, reported = made[AUDIT], output.report
    if stage.passes_rows_on:
        reported = replace(reported, rows_out=audit.report.rows_out)
    num_wrong = audit.report.measures[CONSERVED] + _num_misreported(reported, audit.report)
    found = {name: max(value, reported.measures.get(name, 0)) for name, value in audit.report.measures.items()}
    measures = {**reported.measures, **found, CONSERVED: num_wrong}
    names = context.read(audit.object_id).json("audit.json")
    names[NOT_COLLECTED] = sorted(set(names[NOT_COLLECTED]) - output.failures.keys())
    notes = tuple(f"{what}: {', '.join(some)}." for what, some in sorted(names.items()) if some)
    return replace(
        output,
        report=replace(reported, rows_in=audit.report.rows_in, measures=dict(sorted(measures.items()))),
        evidence={**output.evidence, AUDIT: audit.object_id},
        notes=(*output.notes, *notes),
    )


def _with_rows(context: Any, parts: Mapping[str, str]) -> dict[str, str]:
    """Return parts, and those with the rows of the snapshot among them."""
    rows = context.read(parts["snapshot"]).manifest.inputs if "snapshot" in parts else {}
    return {**parts, **{label: object_id for label, object_id in rows.items() if label.startswith("rows/")}}


def _refuse_bad_gates(stage: Stage) -> None:
    """Raise ParamsError for a gate of no stage, which would never be judged, and for a stage that could lose rows."""
    for gate in GATES:
        if gate.stage not in STAGES:
            raise ParamsError(f"gate {gate.name}", f"its stage is {gate.stage}", f"one of {', '.join(STAGES.names)}")
    if stage.steps and CONSERVED not in {gate.measure for gate in gates_of(stage.name)}:
        remedy = "Register one with the limit NONE: without it the stage could lose rows."
        raise ParamsError(f"stage {stage.name}", f"no gate of it judges {CONSERVED}", "one gate", remedy)


def _refuse_stale(stage: Stage, build: Build, previous_id: str | None) -> None:
    before = stage_before(stage.name)
    if before is None:
        return
    found = build.store.ref(build.corpus, before)
    if previous_id is None or found is None:
        raise MissingError(
            f"stage {stage.name} of corpus {build.corpus}",
            f"stage {before} has no promoted output",
            "",
            f"Run {before} first.",
        )
    if found != previous_id:
        raise RefMovedError(
            f"ref {build.corpus}/{before}",
            f"it is at {found[:12]}",
            f"{previous_id[:12]}, the output that this build made",
            f"Run the build again from {before}.",
        )


def _num_misreported(reported: StageReport, found: StageReport) -> int:
    """Return by how many rows a report differs from what is stored."""
    reasons = Counter(found.dropped)
    reasons.subtract(reported.dropped)
    return abs(reported.rows_out - found.rows_out) + sum(map(abs, reasons.values()))


def _commit_stage(stage: Stage, context: "BuildContext", output: StageOutput) -> tuple[str, bool]:
    folder = context.scratch_folder()
    files = {**output.files, PARAMS: context.params.model_dump_json(indent=1).encode() + b"\n"}
    write_output(folder, PartOutput({}, output.report, files))
    inputs = {f"part/{name}": object_id for name, object_id in output.parts.items()}
    inputs |= {f"evidence/{name}": object_id for name, object_id in output.evidence.items()}
    if context.input_id is not None:
        inputs["previous"] = context.input_id
    identity = stage_identity(stage, context.params) | {"failed": sorted(output.failures)}
    before = {path.name for path in context.build.store.root.glob(f"objects/{stage.kind}/*")}
    object_id = context.build.store.commit(folder, stage.kind, identity, inputs)
    return object_id, object_id in before


def _move_refs(result: StageResult, build: Build) -> None:
    moves = {result.stage: result.object_id}
    if result.snapshot_id is not None:
        moves["candidate"] = result.snapshot_id
        build.store.mark_verified(result.snapshot_id, result.object_id)
    for name, new in moves.items():
        build.store.move_ref(build.corpus, name, build.store.ref_text(build.corpus, name), new, "built")


@cache
def _version(library: str) -> str:
    return library_version(library)


def _versions(stage: Stage) -> dict[str, str]:
    """Return the versions of a stage's libraries. Raises ParamsError naming who declares one that is not installed."""
    try:
        return {library: _version(library) for library in stage.library_names()}
    except PackageNotFoundError as error:
        declaring = (
            f"language {each.name}" for each in LANGUAGES if each.grammar and each.grammar.distribution == error.name
        )
        declaration = next(declaring, f"stage {stage.name}")
        found = f"{error.name}, whose version the output depends on, is not installed"
        raise ParamsError(declaration, found, "an installed distribution", CORRECT) from error


def stage_identity(stage: Stage, params: Params) -> dict[str, Any]:
    """Return what the output of a stage depends on besides its inputs, and each part's by its own Params."""
    added = added_entries()
    return {
        "stage": stage.name,
        "version": stage.version,
        "params": fingerprint(params),
        "libraries": _versions(stage),
        **({"added": added} if added else {}),
    }


class BuildContext:
    """Implementation of `pipeline.contracts.part.StageContext` for one stage of one build."""

    def __init__(self, stage: Stage, build: Build, input_id: str | None) -> None:
        self.stage = stage
        self.build = build
        self.input_id = input_id
        self.params: Any = build.params.of_stage(stage.name)
        self.corpus_params = build.params
        self.pins: Sequence[SourcePin] = build.pins
        self.withdrawn = build.withdrawn
        self.decisions = build.request.decisions
        self.held_out = frozenset(build.params.held_out)
        self.offline = build.request.offline
        self.store_root = build.store.root
        self.blob = build.store.blob
        self.partial_blob = build.store.partial_blob
        self.put_blob = build.store.put_blob
        self.named_blob = build.store.named_blob
        self.name_blob = build.store.name_blob
        self.read = build.store.read
        self.all_unchanged = True
        self.reports: dict[str, StageReport] = {}
        self._num_folders = 0

    @property
    def inputs(self) -> Mapping[str, str]:
        return {} if self.input_id is None else parts_of(self.read(self.input_id))

    def upstream(self, stage: str) -> Mapping[str, str]:
        return parts_of(self.read(self.upstream_id(stage)))

    def inputs_of(self, stage: str) -> Mapping[str, str]:
        return parts_of(self.read(self.read(self.upstream_id(stage)).manifest.inputs["previous"]))

    def upstream_id(self, stage: str) -> str:
        found = next((stored for stored in chain(self.build.store, self.input_id) if stage_of(stored) == stage), None)
        if found is None:
            raise MissingError(f"stage {stage}", f"it does not run before {self.stage.name}", "an earlier stage")
        return found.object_id

    @property
    def consumer(self) -> Mapping[str, Any]:
        return consumer_identity()

    def scratch_folder(self) -> Path:
        self._num_folders += 1
        folder = self.build.scratch / f"{self.stage.name}-{self._num_folders}"
        folder.mkdir(parents=True)
        return folder

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        made: dict[str, MadePart] = {}
        failed: dict[str, SourceError] = {}
        tasks: list[PartTask] = []
        num_bytes = 0

        def finish(part: MadePart) -> None:
            nonlocal num_bytes
            made[part.name] = part
            num_bytes += part.report.num_bytes_in
            num_done = len(made) + len(failed)
            self.build.listen(
                ProgressEvent(self.stage.name, num_done, len(parts), num_bytes, part.name, part.unchanged)
            )

        for part in parts:
            object_id = None if part.always else self.build.store.known(self.key_of_part(part))
            if object_id is None:
                kind = self.kind_of(part)
                function, folder = kind.functions[part.function], self.scratch_folder()
                task = PartTask(
                    part, function, self.build.store.root, folder, kind.measure, is_of_source=kind.only is None
                )
                tasks.append(task)
            else:
                finish(MadePart(part.name, object_id, report_of(self.read(object_id)), unchanged=True))
        for task, result in self.build.engine.run(tasks):
            if isinstance(result, SourceError):
                failed[task.part.name] = result
            else:
                finish(self._commit(task, result))
        self.reports.update({name: part.report for name, part in sorted(made.items()) if name != AUDIT})
        return dict(sorted(made.items())), dict(sorted(failed.items()))

    def kind_of(self, part: Part) -> PartKind:
        """Return the kind of a part. Raises StageError for one that the stage does not declare."""
        kind = self.stage.part_kind(part.function)
        if kind.only not in (None, part.name):
            found = f"its part {part.name} is made by {part.function}"
            raise StageError(f"stage {self.stage.name}", found, f"the part {kind.only}")
        return kind

    def _commit(self, task: PartTask, report: StageReport) -> MadePart:
        part, store, key = task.part, self.build.store, self.key_of_part(task.part)
        before = store.known(key) if part.always else None
        object_id = store.commit(task.folder, self.kind_of(part).kind, self._identity(part), part.inputs)
        store.remember(key, object_id)
        mark_made(object_id)
        self.all_unchanged = self.all_unchanged and object_id == before
        return MadePart(part.name, object_id, report, object_id == before)

    def _identity(self, part: Part) -> dict[str, Any]:
        version = {} if part.version is None else {"version": part.version}
        names = {"function": part.function, "name": part.name}
        return stage_identity(self.stage, part.params) | version | names | dict(part.identity)

    def key_of_part(self, part: Part) -> str:
        """Return the key by which the part is recognized."""
        return key_of(self.kind_of(part).kind, self._identity(part), part.inputs)
