"""Oracle of copied columns: whether a document has, in all columns that it has in common with what it was made of, what that has.

Each column of a stage's documents is one of those, or the stage makes it: then another oracle judges it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from pipeline.contracts.part import Tables
from pipeline.contracts.stage import StageTable
from pipeline.stages.stages import tables_of

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = "document_id"


def copied_columns(table: StageTable, made_of: StageTable) -> tuple[str, ...]:
    """Return the columns that documents of a table copy: those of both records, but what the stage makes or numbers itself."""
    before = {field.name for field in fields(made_of.record)}
    own = {*table.made, *table.order}
    return tuple(field.name for field in fields(table.record) if field.name in before - own)


def table_of_documents(kind: str) -> StageTable | None:
    """Return the table of documents that parts of a kind keep, by their ids; None for parts without."""
    kept = (table for table in tables_of(kind) if table.lists_kept)
    return next((table for table in kept if {_KEY, "path"} <= {field.name for field in fields(table.record)}), None)


def miscopied_documents(
    stored: Tables, table: StageTable, before: Sequence[Tables | None]
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents of a table with another value in a copied column than in what they were made of.

    `before` are the parts that it was made of. A document that is in none of them is unknown, and counted as that elsewhere.
    """
    for part in before:
        made_of = None if part is None else table_of_documents(part.kind)
        if part is None or made_of is None:
            continue
        names = list(copied_columns(table, made_of))
        found, known = stored.table(table.name, names), part.table(made_of.name, names)
        places = _places(found, known)
        is_known = places.is_valid()
        found, known = found.filter(is_known), known.take(places.drop_null())
        if any(not found[name].equals(known[name]) for name in names):
            rows = zip(found.to_pylist(), known.to_pylist(), strict=True)
            yield from ((row["source"], row["path"]) for row, other in rows if row != other)


def _places(found: "pa.Table", known: "pa.Table") -> "pa.Array":
    """Return the row of each document among the known ones; null for one that is not there."""
    import pyarrow as pa  # commands that audit nothing do not wait for it

    row_of = {name: row for row, name in enumerate(known[_KEY].to_pylist())}
    return pa.array([row_of.get(name) for name in found[_KEY].to_pylist()], pa.int64())
