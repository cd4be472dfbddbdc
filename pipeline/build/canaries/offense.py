"""Offense: an altered output of a stage, and the gates that it must turn red.

To add one, add it to the list of its stage beside this file; a program that registers a gate registers an offense in OFFENSES. The
helpers make alterations of one column, table, file or answer.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipeline.build.canaries.memory_build import NO_CHANGES, Alteration, Changes
from pipeline.build.canaries.sound_sources import SOUND
from pipeline.contracts.part import PartOutput
from pipeline.contracts.stage_report import StageReport


@dataclass(frozen=True)
class Offense:
    """An offense. Without it, with `control` in its place, every one of its `gates` must be green: otherwise it proves nothing."""

    name: str
    gates: tuple[str, ...]
    changes: Changes
    control: Changes = NO_CHANGES


def of_part(
    name: str,
    gates: Sequence[str],
    where: tuple[str, str] | str,
    change: Callable[[PartOutput], PartOutput],
    control: Changes = NO_CHANGES,
) -> Offense:
    """Return the offense of an altered output. `where` is stage and part, or the stage alone for the part of the sound source."""
    return Offense(name, tuple(gates), altered(where, change), control)


def altered(where: tuple[str, str] | str, change: Callable[[PartOutput], PartOutput]) -> Changes:
    """Return the change of what one part made."""
    stage, part = (where, SOUND) if isinstance(where, str) else where
    return Changes((Alteration(stage, part, lambda made: replace(made, output=change(made.output))),))


def column(table: str, name: str, change: Callable[[list[Any]], Iterable[Any]]) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration of one column: a function of its values, which may change the list that it is given."""

    def change_column(found: pa.Table) -> pa.Table:
        field = found.schema.field(name)
        values = pa.array(list(change(found[name].to_pylist())), type=field.type)
        return found.set_column(found.schema.get_field_index(name), field, values)

    return table_changed(table, change_column)


def first(change: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    """Return a change of a column's values that changes the first of them alone."""
    return lambda values: [change(values[0]), *values[1:]]


def every(value: Any) -> Callable[[list[Any]], list[Any]]:
    """Return a change of a column's values that makes all of them equal."""
    return lambda values: [value] * len(values)


def table_changed(name: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration of one table."""
    return lambda output: replace(output, tables={**output.tables, name: change(output.tables[name])})


def rows_added(
    name: str, add: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration that adds rows to a table: a function of the rows that are there."""

    def change(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, pa.Table.from_pylist(add(table.to_pylist()), schema=table.schema)])

    return table_changed(name, change)


def answered(change: Callable[[Any], Any]) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration of what a program answered."""
    return lambda output: replace(output, answer=change(output.answer))


def file_changed(name: str, change: Callable[[bytes], bytes]) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration of one file."""
    return lambda output: replace(output, files={**output.files, name: change(output.files[name])})


def after(*changes: Changes) -> Changes:
    """Return several changes as one."""
    parts = tuple(part for each in changes for part in each.parts)
    return Changes(parts, next((each.pin for each in changes if each.pin is not NO_CHANGES.pin), NO_CHANGES.pin))


def row_lost(stage: str, table: str, where: str | None = None) -> Offense:
    """Return the offense of a row that a stage does not store; of `verify`, of one that is missing in what it names."""
    lost = table_changed(table, lambda found: found.slice(1))
    return of_part(f"row_lost_in_{stage}", [f"no_row_lost_in_{stage}"], where or stage, lost)


def row_from_nowhere(stage: str, table: str) -> Offense:
    """Return the offense of a row that a stage stores twice: nothing is lost by it."""
    doubled = rows_added(table, lambda rows: rows[-1:])
    return of_part(f"row_from_nowhere_in_{stage}", [f"no_row_lost_in_{stage}"], stage, doubled)


def drop_without_row(stage: str) -> Offense:
    """Return the offense of a report that counts a drop which no table lists."""

    def misreport(report: StageReport) -> StageReport:
        return replace(report, dropped={**report.dropped, "of_no_row": 1})

    changes = Changes((Alteration(stage, SOUND, report=misreport),))
    return Offense(f"drop_without_row_in_{stage}", (f"no_row_lost_in_{stage}",), changes)
