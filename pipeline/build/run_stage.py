"""Stage runs: `run_stage()`, the one way to run a stage, inside Dagster and without it, and its result."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from pipeline.build.audit import request_facts
from pipeline.build.build import Build, ProgressEvent
from pipeline.build.build_context import BuildContext, judged, stage_identity
from pipeline.build.engines.part_task import write_output
from pipeline.build.given_items import keep_items
from pipeline.build.stage_objects import FAILURES, PARAMS, chain, stage_of
from pipeline.build.withdrawal import log_held
from pipeline.contracts.gates import CONSERVED, GATES, GateVerdict, gates_of, refuse_blocked
from pipeline.contracts.part import FileName, Note, PartOutput, StageOutput
from pipeline.contracts.stage import Stage
from pipeline.contracts.stage_report import StageReport
from pipeline.core.command_line import placed, shell_command
from pipeline.core.errors import MissingError, ParamsError, RefMovedError, SourceError, StoreError
from pipeline.core.params import canonical_json
from pipeline.core.table_names import DOCUMENTS
from pipeline.stages.stages import STAGES, stage_before, stage_with
from pipeline.store.refs import LAST

_OWN_FUNCTIONS = {"canaries": "pipeline.build.canaries.canaries:run_canaries"}
"""Part functions of the build itself that run stages, by the names that STAGES declares."""
_MAX_FILES = 3
"""Most offending files that are named."""


_MAX_DESCRIBED = 6
"""Sources that failed of which a message says why; it names the others, and `show` says why of each."""


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
    notes: tuple[Note, ...] = ()
    warnings: tuple[str, ...] = ()
    offending: tuple[FileName, ...] = ()
    """Some of the files that blocked it."""
    questions: tuple[str, ...] = ()
    """The commands that show what was made, where it is blocked."""

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
        refuse_blocked(
            self.verdicts, f"stage {self.stage} of corpus {corpus}", self.causes, self.object_id, self.questions
        )

    @property
    def causes(self) -> str:
        """Sentences about each source that failed, each rule at fault, and some of the files; empty if unknown."""
        failed = [f"Source {name} failed: {error}" for name, error in sorted(self.failures.items())[:_MAX_DESCRIBED]]
        failed += [f"So did {', '.join(names)}."] if (names := sorted(self.failures)[_MAX_DESCRIBED:]) else []
        files = ", ".join(map("/".join, self.offending))
        named = [f"Such files: {files}."] if files else []
        reasons = ", ".join(f"{number} as {reason}" for reason, number in sorted(self.report.dropped.items()) if number)
        dropped = [f"Dropped: {reasons}."] if reasons and not self.report.rows_out else []
        return " ".join([*failed, *(note.text for note in self.notes), *dropped, *named])


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
    blocking gate failed, the output and its verdicts are kept, the result is `blocked`, and no ref moves but `last`.
    """
    with placed(f"stage {name} of corpus {build.corpus}"):
        return _run_stage(STAGES[name], build, previous_id)


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


def _run_stage(stage: Stage, build: Build, previous_id: str | None) -> StageResult:
    _refuse_bad_gates(stage)
    _refuse_stale(stage, build, previous_id)
    context = BuildContext(stage, build, previous_id, _OWN_FUNCTIONS)
    keep_items(build.store, build.params)
    withdrawn = (each.text for each in build.withdrawn)
    request = request_facts(build.request.pins, build.params, withdrawn, build.request.decisions)
    output, verdicts = judged(stage, context, request)
    object_id, existed = _commit_stage(stage, context, output)
    build.store.put_verdicts(object_id, [verdict.as_json() for verdict in verdicts])
    result = StageResult(
        stage=stage.name,
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
    _move_last(build, result)
    if result.blocked:
        return _with_questions(result, build)
    _move_refs(result, build)
    return result


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


def _commit_stage(stage: Stage, context: BuildContext, output: StageOutput) -> tuple[str, bool]:
    folder = context.scratch_folder()
    files = {**output.files, PARAMS: context.params.model_dump_json(indent=1).encode() + b"\n"}
    if output.failures:
        files[FAILURES] = canonical_json({name: str(error) for name, error in output.failures.items()})
    write_output(folder, PartOutput({}, output.report, files))
    inputs = {f"part/{name}": object_id for name, object_id in output.parts.items()}
    inputs |= {f"evidence/{name}": object_id for name, object_id in output.evidence.items()}
    if context.input_id is not None:
        inputs["previous"] = context.input_id
    identity = stage_identity(stage, context.params) | {"failed": sorted(output.failures)}
    store = context.build.store
    before = {path.name for path in store.root.glob(f"objects/{stage.kind}/*")}
    object_id = store.commit(folder, stage.kind, identity, inputs)
    # An object that another machine made is not in a cache, and was judged.
    is_known = object_id in before or (store.storage.is_shared and store.verdicts(object_id) is not None)
    return object_id, is_known


def _with_questions(result: StageResult, build: Build) -> StageResult:
    """Return a blocked result with some of the files that blocked it, and the commands that show it."""
    files = first_files(name for note in result.notes for name in note.files)
    reached = {stage_of(stored) for stored in chain(build.store, result.object_id)}
    has_documents = stage_with(DOCUMENTS).name in reached
    questions = next_questions(build.store.storage.address, build.corpus, LAST, files, has_documents)
    return replace(result, offending=files, questions=questions)


def _move_last(build: Build, result: StageResult) -> None:
    """Move `last` to what the build has reached, unless it names that already or what an equal build made of it later."""
    old = build.store.ref_text(build.corpus, LAST)
    try:
        if old is not None and any(stored.object_id == result.object_id for stored in chain(build.store, old)):
            return
    except StoreError:
        pass  # it is written anew
    how = f"{'blocked in' if result.blocked else 'reached'} {result.stage}"
    build.store.move_ref(build.corpus, LAST, old, result.object_id, how)


def _move_refs(result: StageResult, build: Build) -> None:
    moves = {result.stage: result.object_id}
    if result.snapshot_id is not None:
        moves["candidate"] = result.snapshot_id
        build.store.mark_verified(result.snapshot_id, result.object_id)
        log_held(build.store, result.snapshot_id)
    limits = build.request.recipe_limits if result.stage == STAGES.names[-1] else {}
    proof = {"recipe_limits": json.dumps(dict(sorted(limits.items())))} if limits else {}
    for name, new in moves.items():
        told = proof if name == result.stage else {}
        build.store.move_ref(build.corpus, name, build.store.ref_text(build.corpus, name), new, "built", told)


def next_questions(
    store: str | Path, corpus: str, of: str, files: Sequence[FileName] = (), has_documents: bool = True
) -> tuple[str, ...]:
    """Return the commands to run next: `why` for each file, then `report`, or `show` before there are documents to report on."""
    questions: list[tuple[str, ...]] = [("pipeline why", *file) for file in files]
    questions.append(("pipeline report" if has_documents else "pipeline show",))
    return tuple(shell_command(*each, corpus=corpus, of=of, store=store) for each in questions)


def first_files(files: Iterable[FileName]) -> tuple[FileName, ...]:
    """Return the first three files, once each, without those whose name holds a secret."""
    named = list(dict.fromkeys(files))
    if not named:
        return ()
    from pipeline.stages.normalize.params import ScrubParams
    from pipeline.stages.normalize.scrub.shown_text import ShownText  # builds that pass do not wait for its libraries

    text = ShownText(ScrubParams())
    return tuple(islice((each for each in named if not text.holds_secret(each[1])), _MAX_FILES))
