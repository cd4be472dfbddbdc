"""Planting: the ways in which a mutation alters code, records, tables, inputs and measures.

Each mutation runs in a process of its own, so that nothing that is planted is taken back.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pkgutil import resolve_name
from typing import Any

import pyarrow as pa

from pipeline.contracts.gates import Gate
from pipeline.contracts.part import PartJob, PartOutput, StageOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.stages.stages import STAGES

_PACKAGES = ("pipeline.", "trainer.", "kernels.", "assets.")

_SOURCES: list[str] = []
"""Names of the parts that are being made, the innermost last: canaries make parts inside of a part."""


class NotPlantedError(Exception):
    """The code that a mutation alters is no longer there."""


def is_corpus() -> bool:
    """Return whether the part that is being made is one of the corpus, and no canary: faults need not touch canaries."""
    return not any(name.startswith("canar") for name in _SOURCES)


@contextmanager
def among_canaries() -> Iterator[None]:
    """Within it, nothing that is made is of the corpus."""
    _SOURCES.append("canaries")
    try:
        yield
    finally:
        _SOURCES.pop()


def wrap(target: str, make: Callable[[Any], Any]) -> None:
    """Replace `module:name` or `module:Class.name` by `make(it)`, in every module that has imported it."""
    _follow_sources()
    _replace(target, make)


def change_result(target: str, change: Callable[[Any], Any]) -> None:
    """Have a function return something else than it would."""
    wrap(target, lambda function: lambda *given, **named: change(function(*given, **named)))


def constant(target: str, value: Any) -> None:
    """Have a function return the same, whatever it is given."""
    wrap(target, lambda function: lambda *given, **named: value)


def alter_record(
    record: type, change: Callable[[dict[str, Any]], Mapping[str, Any]], is_concerned: Callable[[], bool] = is_corpus
) -> None:
    """Have every record of a class made with other fields: `change` is given the fields and returns those that differ."""
    _follow_sources()
    init, names = record.__init__, [each.name for each in fields(record)]

    def altered(self: Any, *given: Any, **named: Any) -> None:
        values = dict(zip(names, given, strict=False)) | named
        init(self, **values | (change(values) if is_concerned() else {}))

    record.__init__ = altered  # type: ignore[misc]


def alter_job(stage: str, function: str, change: Callable[[PartJob], PartJob]) -> None:
    """Give a part function another job."""
    wrap(_part_function(stage, function), lambda made: lambda job: made(change(job) if is_corpus() else job))


def alter_output(stage: str, function: str, change: Callable[[PartJob, PartOutput], PartOutput]) -> None:
    """Store something else than what a part function returns. Its report is not counted again."""

    def make(made: Any) -> Any:
        return lambda job: change(job, made(job)) if is_corpus() else made(job)

    wrap(_part_function(stage, function), make)


def alter_tables(stage: str, function: str, change: Callable[[dict[str, pa.Table]], dict[str, pa.Table]]) -> None:
    """Store other tables than those that a part function returns."""
    alter_output(stage, function, lambda job, output: replace(output, tables=change(dict(output.tables))))


def alter_stage(stage: str, change: Callable[[StageOutput], StageOutput]) -> None:
    """Store something else than what a stage returns."""
    change_result(STAGES[stage].run, lambda output: change(output) if is_corpus() else output)


def thin(stage: str, function: str, keep: Callable[[str], bool]) -> None:
    """Drop rows of every table that a part function reads, by what they are about, and say nothing."""

    def thinned(job: PartJob) -> PartJob:
        return replace(job, inputs={label: ThinnedTables(tables, keep) for label, tables in job.inputs.items()})

    alter_job(stage, function, thinned)


class ThinnedTables:
    """Tables of an object of which some rows are missing: those whose path or document id `keep` does not keep."""

    def __init__(self, tables: Any, keep: Callable[[str], bool]) -> None:
        self._tables = tables
        self._keep = keep
        self.object_id, self.json, self.file, self.has = tables.object_id, tables.json, tables.file, tables.has
        self.paths, self.inputs, self.identity, self.is_joined = (
            tables.paths,
            tables.inputs,
            tables.identity,
            tables.is_joined,
        )

    @property
    def shards(self) -> "list[ThinnedTables]":
        """The shards, without the rows that are lost."""
        return [ThinnedTables(each, self._keep) for each in self._tables.shards] if self.is_joined else [self]

    def table(self, name: str, columns: Any = None) -> pa.Table:
        """Read a table without the rows that are lost."""
        table, whole = self._tables.table(name, columns), self._tables.table(name)
        key = next((each for each in ("document_id", "path") if each in whole.column_names), None)
        if key is None:
            return table
        return table.filter(pa.array([self._keep(value) for value in whole[key].to_pylist()], pa.bool_()))


def edit_column(table: pa.Table, name: str, change: Callable[[list[Any]], list[Any]]) -> pa.Table:
    """Return a table with other values in one column."""
    at = table.schema.get_field_index(name)
    values = change(table[name].to_pylist())
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


def hold_measure(gate: Gate) -> None:
    """Have every report say a passing value of a gate's measure, whatever was counted.

    A measure that is computed from the counts of a report is held where the gate reads it.
    """
    alter_record(StageReport, lambda values: {"measures": _held(values.get("measures") or {}, gate)}, lambda: True)
    if gate.measure in {each.name for each in fields(StageReport)} or hasattr(StageReport, gate.measure):

        def make(judge: Any) -> Any:
            def judged(self: Gate, measures: Mapping[str, float], *given: Any, **named: Any) -> Any:
                held = _held(measures, gate) if self.name == gate.name else measures
                return judge(self, held, *given, **named)

            return judged

        wrap("pipeline.contracts.gates:Gate.judge", make)


def pass_always(gate: Gate) -> None:
    """Have a gate's verdict say that it passed."""

    def make(judge: Any) -> Any:
        def judged(self: Gate, *given: Any, **named: Any) -> Any:
            verdict = judge(self, *given, **named)
            return replace(verdict, passed=True) if self.name == gate.name else verdict

        return judged

    wrap("pipeline.contracts.gates:Gate.judge", make)


def _held(measures: Mapping[str, float], gate: Gate) -> dict[str, float]:
    return {name: gate.limit.passing if name == gate.measure else value for name, value in measures.items()}


def _part_function(stage: str, function: str) -> str:
    try:
        return STAGES[stage].part_kind(function).functions[function]
    except Exception as error:
        raise NotPlantedError(f"part function {function} of {stage}: {error}") from error


def _owner(target: str) -> tuple[Any, str]:
    """Return what holds a target, a module or a class, and its name there."""
    module, _, path = target.partition(":")
    holder, _, name = path.rpartition(".")
    try:
        owner = resolve_name(f"{module}:{holder}" if holder else module)
        getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise NotPlantedError(f"{target}: {error}") from error
    return owner, name


@cache
def _follow_sources() -> None:
    """Know from now on which part is being made, for `is_corpus`."""

    def make(make_part: Any) -> Any:
        def made(task: Any) -> Any:
            _SOURCES.append(task.part.name)
            try:
                return make_part(task)
            finally:
                _SOURCES.pop()

        return made

    _replace("pipeline.build.engines.part_task:make_part", make)


def _replace(target: str, make: Callable[[Any], Any]) -> None:
    owner, name = _owner(target)
    before = getattr(owner, name)
    after = make(before)
    setattr(owner, name, after)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith(_PACKAGES) and vars(module).get(name) is before:
            setattr(module, name, after)
