"""Offense: an altered output of a stage, the gates that it must turn red, and by how much their measures must move.

To add one, add it to the list of its stage beside this file; a program that registers a gate registers an offense in OFFENSES. The
helpers make alterations of one column, table, file or answer. `at_places` plants at the first, the middle and the last place, and
`in_both` in the first and the last source, so that code which judges only some of what it reads counts less than was planted.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

import pyarrow as pa

from pipeline.build.canaries.memory_build import NO_CHANGES, Alteration, Changes
from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage import AUDIT
from pipeline.core.digests import document_id
from pipeline.core.records import Split
from pipeline.core.table_names import DROPPED

SOURCES = (SOUND, SOUND_HELD_OUT)
"""The first and the last source of the sound build."""
LARGEST_ID = 65_535
"""No vocabulary is so large."""
LARGEST_SIZE = 1 << 24
"""Tokens or bytes beyond every limit: a control passes whatever the Params require."""
NUM_PLACES = 3
"""Places at which `at_places` plants."""
IN_BOTH = NUM_PLACES * len(SOURCES)
"""Offenses that `in_both` plants with a change at those places."""


@dataclass(frozen=True)
class Offense:
    """An offense. Without it, with `control` in its place, every one of its `gates` must be green: otherwise it proves nothing."""

    name: str
    gates: tuple[str, ...]
    changes: Changes
    control: Changes = NO_CHANGES
    least: float = 1
    """Smallest difference between the measures of a gate with the offense and without it: of a count, how many were planted."""


def of_part(
    name: str,
    gates: Sequence[str],
    where: tuple[str, str] | str,
    change: Callable[[PartOutput], PartOutput],
    control: Changes = NO_CHANGES,
    least: float = 1,
) -> Offense:
    """Return the offense of an altered output. `where` is stage and part, or the stage alone for the part of the sound source."""
    return Offense(name, tuple(gates), altered(where, change), control, least)


def in_both(
    name: str,
    gates: Sequence[str],
    stage: str,
    change: Callable[[PartOutput], PartOutput],
    control: Changes = NO_CHANGES,
    least: float = IN_BOTH,
) -> Offense:
    """Return the offense of the same alteration of the parts of the first and of the last source."""
    return Offense(name, tuple(gates), both_altered(stage, change), control, least)


def in_audit(
    name: str,
    gates: Sequence[str],
    stage: str,
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    least: float = IN_BOTH,
) -> Offense:
    """Return the offense of parts that a stage's audit is given altered: `change` returns others by the labels of its inputs."""

    def alter(job: PartJob) -> PartJob:
        return replace(job, inputs={**job.inputs, **change(job.inputs)})

    return Offense(name, tuple(gates), Changes((Alteration(stage, AUDIT, job=alter),)), least=least)


def one_each(
    name: str,
    gates: Sequence[str],
    stage: str,
    tables: Mapping[str, str],
    changes: Sequence[Callable[[dict[str, Any]], dict[str, Any]]],
    sound: Changes = NO_CHANGES,
) -> Offense:
    """Return the offense of as many rows as there are changes, half of them in the first source, the others in the last.

    `tables` names the table of each source. Where the sound build has nothing of the kind, `sound` puts it there. A check that is
    left out of the code that judges is found, as it would have counted one of them.
    """
    half = (len(changes) + 1) // 2
    shares = zip(SOURCES, (changes[:half], changes[half:]), strict=True)
    parts = (altered((stage, source), rows_changed(tables[source], partial(_each, share))) for source, share in shares)
    return Offense(name, tuple(gates), after(sound, *parts), sound, len(changes))


def _each(
    changes: Sequence[Callable[[dict[str, Any]], dict[str, Any]]], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of which as many are changed as there are changes: the first ones, and the last."""
    *first, last = changes
    changed = [change(row) for change, row in zip(first, rows, strict=False)]
    return [*changed, *rows[len(first) : -1], last(rows[-1])]


def fields(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change of a row: other values of some fields, each a value or a function of the one that is there."""
    return lambda row: row | {name: value(row[name]) if callable(value) else value for name, value in values.items()}


def both_altered(stage: str, change: Callable[[PartOutput], PartOutput]) -> Changes:
    """Return the change of what a stage made of the first and of the last source."""
    return after(*(altered((stage, source), change) for source in SOURCES))


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


def at_places(
    change: Callable[[Any], Any], last: Callable[[Any], Any] | None = None
) -> Callable[[list[Any]], list[Any]]:
    """Return a change of a column's values at three places: the first, the middle one, and by `last`, if given, the last."""

    def change_some(values: list[Any]) -> list[Any]:
        at = places(len(values))
        changes = dict.fromkeys(at[:-1], change) | dict.fromkeys(at[-1:], last or change)
        return [changes[index](value) if index in changes else value for index, value in enumerate(values)]

    return change_some


def places(count: int) -> list[int]:
    """Return the first, the middle and the last of so many places; fewer, where there are fewer."""
    return sorted({0, count // 2, count - 1}) if count else []


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


def rows_changed(
    name: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration of the rows of a table: a function of all of them."""
    return table_changed(name, lambda table: pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema))


def rows_lost(name: str) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration that takes the first, the middle and the last row out of a table."""

    def change(table: pa.Table) -> pa.Table:
        lost = places(table.num_rows)
        return table.take(pa.array([index for index in range(table.num_rows) if index not in lost], pa.int64()))

    return table_changed(name, change)


def rows_doubled(name: str) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration that stores the first, the middle and the last row of a table twice."""
    return rows_added(name, lambda rows: [rows[index] for index in places(len(rows))])


def first_other(values: list[int]) -> list[int]:
    """Return a list with another first value."""
    return [values[0] ^ 1, *values[1:]]


def last_other(values: list[int]) -> list[int]:
    """Return a list with another last value."""
    return [*values[:-1], values[-1] ^ 1]


def other_split(split: str) -> str:
    """Return the split that a row is not in."""
    return str(next(each for each in Split if each != split))


def without_text(row: dict[str, Any]) -> dict[str, Any]:
    """Return a document without text, tokens and structure."""
    lists: dict[str, list[Any]] = {name: [] for name, value in row.items() if isinstance(value, list)}
    empty = {"text": "", "text_sha256": hashlib.sha256(b"").hexdigest()}
    return row | lists | {name: value for name, value in empty.items() if name in row}


def after(*changes: Changes) -> Changes:
    """Return several changes as one."""
    parts = tuple(part for each in changes for part in each.parts)
    pin = next((each.pin for each in changes if each.pin is not NO_CHANGES.pin), NO_CHANGES.pin)
    return Changes(parts, pin, tuple(decision for each in changes for decision in each.decisions))


def copied_of_another(stage: str, table: str, more: Mapping[str, Any]) -> Offense:
    """Return the offense of documents with other values in columns that the stage copies: those of every document, and `more`."""
    values = {
        "split": other_split,
        "license": "Zlib",
        "license_class": "tagged",
        "filepath_stable_id": "other",
        "file_local_commit_index": 7,
        **more,
    }
    changes = [fields(**{name: value}) for name, value in values.items()]
    tables = dict.fromkeys(SOURCES, table)
    return one_each(f"copied_columns_of_another_in_{stage}", [f"no_row_lost_in_{stage}"], stage, tables, changes)


def drop_without_cause(stage: str, table: str, reasons: Sequence[str], least: int = IN_BOTH) -> Offense:
    """Return the offense of rows that a stage drops for reasons that do not hold: one after the other, at `places`."""

    def move(output: PartOutput) -> PartOutput:
        rows, reason = output.tables[table].to_pylist(), cycle(reasons)
        drops = [_drop(rows[index], next(reason)) for index in places(len(rows))]
        return rows_lost(table)(rows_added(DROPPED, lambda _: drops)(output))

    name = f"{'_and_'.join(reasons)}_without_cause_in_{stage}"
    return in_both(name, [f"no_row_lost_in_{stage}"], stage, move, least=least)


def _drop(row: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Return a row as dropped, under the name that a file has of which no text was made."""
    named = {name: row[name] for name in ("source", "path", "num_bytes")}
    name = document_id(row["source"], row["path"], row["blob_sha256"])
    return named | {"record_id": name, "reason": reason, "detail": reason}
