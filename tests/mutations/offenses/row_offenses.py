"""OF_ROWS: the offense of each gate that judges packed rows, as an edit of one source's tables.

Edits are planted before the stage verify judges, or forged into the store after it has.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.core.table_names import PACKED, TOKENS, TRAINING_ROWS
from pipeline.formats.tables import write_table
from tests.mutations import plant

Tables = dict[str, pa.Table]
TableEdit = Callable[[Tables], Tables]
"""An edit of the tables of one source's tokens and rows."""


def edit_list(tables: Tables, name: str, column: str, change: Callable[[list[Any]], list[Any]]) -> Tables:
    """Change the first longest list of a column, if the table has rows."""
    table = tables[name]
    if not table.num_rows:
        return tables

    def changed(values: list[Any]) -> list[Any]:
        at = max(range(len(values)), key=lambda index: (len(values[index] or ()), -index))
        return [change(list(value or ())) if index == at else value for index, value in enumerate(values)]

    return tables | {name: plant.edit_column(table, column, changed)}


def edit_all(tables: Tables, name: str, column: str, change: Callable[[list[Any]], list[Any]]) -> Tables:
    """Change the lists of every row of a column."""
    table = tables[name]
    return tables | {name: plant.edit_column(table, column, lambda values: [change(list(v or ())) for v in values])}


def _swap_first(values: list[Any]) -> list[Any]:
    """Exchange the first two that differ."""
    at = next((index for index in range(1, len(values)) if values[index] != values[0]), None)
    if at is None:
        return values
    changed = list(values)
    changed[0], changed[at] = values[at], values[0]
    return changed


def with_value(value: Any, at: int = 3) -> Callable[[list[Any]], list[Any]]:
    """Return a change that puts another value into a list."""
    return lambda values: [*values[:at], value, *values[at + 1 :]]


def _other_type(tables: Tables) -> Tables:
    table = tables[TRAINING_ROWS["train"]]
    at = table.schema.get_field_index("lengths")
    wide = table["lengths"].cast(pa.large_list(pa.int64()))
    return tables | {TRAINING_ROWS["train"]: table.set_column(at, "lengths", wide)}


def _piece_is_gone(tables: Tables) -> Tables:
    """Take the last row of packed and training rows away."""
    names = (PACKED["train"], TRAINING_ROWS["train"], PACKED["held_out"], TRAINING_ROWS["held_out"])
    return tables | {name: tables[name].slice(0, max(0, tables[name].num_rows - 1)) for name in names}


def _attend_to_neighbor(tables: Tables) -> Tables:
    """Have the first piece of a row reach one slot into the second."""

    def changed(values: list[int]) -> list[int]:
        at = values.index(2) if 2 in values else len(values) - 1
        return with_value(1, at)(values)

    for split in ("train", "held_out"):
        tables = edit_list(tables, PACKED[split], "doc_ids", changed)
    return tables


def _commits_go_back(tables: Tables) -> Tables:
    """Give every document a file and a commit, and rows whose commits go back in time."""
    tokens = tables[TOKENS]
    tables = tables | {TOKENS: plant.edit_column(tokens, "filepath_stable_id", lambda values: ["file"] * len(values))}
    tables[TOKENS] = plant.edit_column(
        tables[TOKENS], "file_local_commit_index", lambda values: list(range(len(values)))
    )
    known = dict(zip(tokens["document_id"].to_pylist(), range(tokens.num_rows), strict=True))
    for split in ("train", "held_out"):
        packed = tables[PACKED[split]]
        indices = [[known[name] for name in names][::-1] for names in packed["source_doc_ids"].to_pylist()]
        packed = plant.edit_column(packed, "file_local_commit_indices", lambda values, found=indices: found)
        tables[PACKED[split]] = plant.edit_column(packed, "filepath_stable_id", lambda values: ["file"] * len(values))
    return tables


def _in_both(change: Callable[[list[Any]], list[Any]], column: str, kinds: dict[Any, str]) -> TableEdit:
    def edited(tables: Tables) -> Tables:
        for name in kinds.values():
            tables = edit_list(tables, name, column, change)
        return tables

    return edited


def _other_fractions(tables: Tables) -> Tables:
    halves = {
        name: plant.edit_column(tables[name], "build_aware_fraction", lambda values: [0.5] * len(values))
        for name in PACKED.values()
    }
    return tables | halves


OF_ROWS: dict[str, TableEdit] = {
    "round_trip_is_exact": lambda tables: edit_list(tables, TOKENS, "input_ids", _swap_first),
    "every_table_matches_its_schema": _other_type,
    "columns_are_as_long_as_the_ids": lambda tables: edit_list(tables, TOKENS, "structure_kinds", lambda v: v[:-1]),
    "columns_are_the_documents_own": lambda tables: edit_list(tables, TOKENS, "structure_kinds", with_value(9)),
    "specials_only_where_written": lambda tables: edit_list(tables, TOKENS, "input_ids", with_value(2)),
    "tokens_are_in_range": lambda tables: edit_list(tables, TOKENS, "input_ids", with_value(1024)),
    "documents_are_rebuilt_from_rows": _piece_is_gone,
    "rows_respect_their_boundaries": _attend_to_neighbor,
    "fractions_are_the_tokens_own": _other_fractions,
    "commits_are_in_order": _commits_go_back,
    "training_rows_equal_packed_rows": _in_both(_swap_first, "input_ids", TRAINING_ROWS),
}
"""Offense of each gate that judges the rows of a source, as an edit of its tables."""


def write_bytes(table: pa.Table, folder: Path, name: str) -> bytes:
    """Return a table as the file of that name holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder, name, table)
    return (folder / name).read_bytes()
