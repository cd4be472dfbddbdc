"""BuildContext: what a stage is run with in a build, and what its output depends on.

`judged()` runs a stage with it, or with one like it, audits the output, and judges its gates.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as library_version
from pathlib import Path
from typing import Any

from pipeline.build.audit import ALTERED, MAX_NAMES, NOT_COLLECTED, OUT_OF_ORDER, REDACTED, audit_part, redactions
from pipeline.build.build import BEGINS, Build, ProgressEvent
from pipeline.build.engines.part_task import PartTask
from pipeline.build.engines.stage_work import StageWork
from pipeline.build.oracles.drops.late_drops import ITEMS_FOLDER
from pipeline.build.stage_objects import chain, mark_made, parts_of, report_of, stage_of, was_made_here
from pipeline.build.withdrawal import erased_revisions
from pipeline.contracts.gates import CONSERVED, GateVerdict, judge
from pipeline.contracts.joined_parts import JOIN, source_of
from pipeline.contracts.part import EVIDENCE_LABEL, FileName, MadePart, Note, Part, StageOutput
from pipeline.contracts.stage import AUDIT, PartKind, Stage
from pipeline.contracts.stage_report import StageReport
from pipeline.core.declared import CORRECT, load_declared
from pipeline.core.errors import MeasureError, MissingError, ParamsError, SourceError, StageError
from pipeline.core.params import Params, fingerprint
from pipeline.core.registry import added_entries
from pipeline.formats.snapshot_json import SNAPSHOT_ROWS
from pipeline.lexing.languages import LANGUAGES
from pipeline.pins.pins import SourcePin
from pipeline.stages.verify.consumer import consumer_identity
from pipeline.store.objects import key_of

FUNCTIONS_OF_AUDITS = {AUDIT: "pipeline.build.audit:audit"}
_WHERE_THEY_DIFFER = (
    " Of these the stage and an audit, which shares no code with it, say different things: where `why` shows a right cause, "
    "report the audit's defect, and leave the file out by `exclude` in its pin until it is mended."
)


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
    """Implementation of `pipeline.contracts.part.StageContext` for one stage of one build.

    `own_functions` are the part functions of the build itself, but that of audits, by their names.
    """

    def __init__(
        self, stage: Stage, build: Build, input_id: str | None, own_functions: dict[str, str] | None = None
    ) -> None:
        self.stage = stage
        self.functions = FUNCTIONS_OF_AUDITS | (own_functions or {})
        self.build = build
        self.input_id = input_id
        self.params: Any = build.params.of_stage(stage.name)
        self.corpus_params = build.params
        self.pins: Sequence[SourcePin] = build.pins
        self.withdrawn = build.withdrawn
        self.decisions = build.request.decisions
        self.held_out = build.params.held_out
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
        self.work = StageWork(stage, build.request.num_workers)
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

    @cached_property
    def erased(self) -> frozenset[str]:
        return erased_revisions(self.build.store)

    def known(self, part: Part) -> str | None:
        return None if part.always else self.build.store.known(self.key_of_part(part))

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        made: dict[str, MadePart] = {}
        failed: dict[str, SourceError] = {}
        ready, tasks = self._sorted_out(parts)
        self.work.add([part.name for part in parts], tasks)

        def tell(name: str, is_unchanged: bool) -> None:
            self.work.finish(name)
            num_bytes = sum(part.report.num_bytes_in for part in made.values())
            num_done, work = len(made) + len(failed), self.work.work
            self.build.listen(ProgressEvent(self.stage.name, num_done, len(parts), num_bytes, name, is_unchanged, work))

        tell(BEGINS, False)
        for part in ready:
            made[part.name] = part
            tell(part.name, True)
        for task, result in self.build.engine.run(tasks):
            name = task.part.name
            if isinstance(result, SourceError):
                failed[name] = result
            else:
                made[name] = self._commit(task, result)
            tell(name, name in made and made[name].unchanged)
        whole = {name: part.report for name, part in sorted(made.items()) if source_of(name) == name and name != AUDIT}
        self.reports.update(whole)
        return dict(sorted(made.items())), dict(sorted(failed.items()))

    def _sorted_out(self, parts: Sequence[Part]) -> tuple[list[MadePart], list[PartTask]]:
        """Return the parts that are known already, and the tasks of those that are to be made."""
        ready: list[MadePart] = []
        tasks: list[PartTask] = []
        for part in parts:
            object_id = self.known(part)
            if object_id is None:
                tasks.append(self.task(part))
            else:
                ready.append(MadePart(part.name, object_id, report_of(self.read(object_id)), unchanged=True))
        return ready, tasks

    def task(self, part: Part) -> PartTask:
        """Return how a part is made, in a folder of its own."""
        kind, root = self.kind_of(part), self.build.store.root
        function = kind.functions[part.function] or self.functions[part.function]
        measure = None if part.function == JOIN else kind.measure
        return PartTask(part, function, root, self.scratch_folder(), measure, kind.only is None, kind.waits)

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
        if part.function != JOIN or all(map(was_made_here, part.inputs.values())):
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


def judged(stage: Stage, context: Any, request: Mapping[str, Any]) -> tuple[StageOutput, tuple[GateVerdict, ...]]:
    """Run a stage in a StageContext, audit its output, and judge its gates. Canaries go through here too.

    `request` is what `request_facts` returns of the build's request: an audit does not read it from the context of the stage.
    """
    output = audited(stage, context, load_declared(f"stage {stage.name}", "run", stage.run)(context), request)
    output = replace(output, failures=_shown(output.failures))
    try:
        verdicts = judge(stage.name, output.report.gate_measures, context.params)
        return replace(output, notes=(*output.notes, *_redacted(context, output, verdicts, request))), verdicts
    except MeasureError as error:
        if not output.failures:
            raise
        failed = " ".join(f"Source {name} failed: {failure}" for name, failure in sorted(output.failures.items()))
        raise StageError(f"stage {stage.name}", "no source came through", "one at least", failed) from error


def _shown(failures: Mapping[str, SourceError]) -> Mapping[str, SourceError]:
    """Return what failed as it may be stored and shown: an error may quote a source."""
    if not failures:
        return failures
    from pipeline.stages.normalize.params import ScrubParams
    from pipeline.stages.normalize.scrub.shown_text import (  # builds that pass do not wait for its libraries
        ShownText,
        shown_error,
    )

    try:
        text = ShownText(ScrubParams())
        return {name: shown_error(error, text) for name, error in failures.items()}
    except Exception:  # a detector of a program, which these then say of every source
        return failures


def audited(stage: Stage, context: Any, output: StageOutput, request: Mapping[str, Any]) -> StageOutput:
    """Audit an output: rows in are those that the stage before stored, and what the report says of the others must be stored.

    Of a measure that the stage reports too, the larger value counts. Rows of a stage that passes them on are those that are found.
    """
    before, after = _with_inputs(context, context.inputs), _with_inputs(context, {**output.parts, **output.evidence})
    folder = context.corpus_params.normalize.decontamination.items_folder
    part = audit_part(stage.name, before, after, request)
    made, _ = context.make([replace(part, places={ITEMS_FOLDER: Path(folder)} if folder else {})])
    audit, reported = made[AUDIT], output.report
    if stage.passes_rows_on:
        reported = replace(reported, rows_out=audit.report.rows_out)
    num_wrong = audit.report.measures[CONSERVED] + _num_misreported(reported, audit.report)
    found = {name: max(value, reported.measures.get(name, 0)) for name, value in audit.report.measures.items()}
    measures = {**reported.measures, **found, CONSERVED: num_wrong}
    names = context.read(audit.object_id).json("audit.json")
    names[NOT_COLLECTED] = sorted(set(names[NOT_COLLECTED]) - output.failures.keys())
    notes = tuple(_note(what, some) for what, some in sorted(names.items()) if some)
    return replace(
        output,
        report=replace(reported, rows_in=audit.report.rows_in, measures=dict(sorted(measures.items()))),
        evidence={**output.evidence, AUDIT: audit.object_id},
        notes=(*output.notes, *notes),
    )


def _note(what: str, names: Sequence[str]) -> Note:
    """Return the note of a key of `audit.json`; a source or a row of a table is no file that anything can be asked of."""
    is_of_files = what not in (NOT_COLLECTED, OUT_OF_ORDER)
    remedy = _WHERE_THEY_DIFFER if what == ALTERED else ""
    return Note(f"{what}: {', '.join(names)}.{remedy}", tuple(map(_file_name, names)) if is_of_files else ())


def _redacted(
    context: Any, output: StageOutput, verdicts: Sequence[GateVerdict], request: Mapping[str, Any]
) -> Iterator[Note]:
    """Yield a sentence for each source of which more was replaced than a failed gate allows, with the files that lost most."""
    failed = next((each for each in verdicts if each.measure == REDACTED and not each.passed), None)
    if failed is None:
        return
    before, after = (
        {name: context.read(object_id) for name, object_id in _with_inputs(context, parts).items()}
        for parts in (context.inputs, output.parts)
    )
    for found in redactions(before, after, request):
        if found.share > failed.limit:
            most = sorted(found.replaced, key=lambda name: (-found.replaced[name], name))[:MAX_NAMES]
            places = ", ".join(f"{path} ({found.told(source, path)})" for source, path in most)
            text = f"Source {most[0][0]}: placeholders stand for {found.share:.3%} of its bytes, most in {places}"
            remedy = (
                "leave such a file out by `exclude` in its pin, `waive` what is right in decisions.toml, or allow more"
            )
            yield Note(f"{text}; {remedy}: normalize.{REDACTED}.", tuple(most))


def _file_name(name: str) -> FileName:
    source, _, path = name.partition("/")
    return source, path


def _with_inputs(context: Any, parts: Mapping[str, str]) -> dict[str, str]:
    """Return parts, the evidence of sources that are in shards, and those with the rows of the snapshot among them."""
    rows = context.read(parts["snapshot"]).inputs if "snapshot" in parts else {}
    found = {**parts, **{label: object_id for label, object_id in rows.items() if label.startswith(SNAPSHOT_ROWS)}}
    for name, object_id in parts.items():
        stored = context.read(object_id)
        if stored.is_joined and EVIDENCE_LABEL in (inputs := stored.inputs):
            found[f"{name}.{EVIDENCE_LABEL}"] = inputs[EVIDENCE_LABEL]
    return found


def _num_misreported(reported: StageReport, found: StageReport) -> int:
    """Return by how many rows a report differs from what is stored."""
    reasons = Counter(found.dropped)
    reasons.subtract(reported.dropped)
    return abs(reported.rows_out - found.rows_out) + sum(map(abs, reasons.values()))
