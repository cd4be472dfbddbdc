"""Queries of the stored tables of a corpus with DuckDB: rows as dictionaries, and one table of everything that was dropped.

Collect stores what it found as it came. The detail of a row, and the name of a file beside it, are scrubbed before they are shown.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.build.stage_objects import parts_of
from pipeline.contracts.stage import PartKind
from pipeline.core.records import DroppedRecord, DuplicateRecord
from pipeline.stages.stages import STAGES
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

if TYPE_CHECKING:
    import duckdb

QueryRow = dict[str, Any]

_CREATE = """create table drops (stage varchar, source varchar, path varchar, record_id varchar, num_bytes bigint,
    reason varchar, detail varchar, license varchar)"""
_INSERT = {
    DroppedRecord: """insert into drops select $step, source, path, record_id, num_bytes, reason, detail, license
        from read_parquet($files)""",
    DuplicateRecord: """insert into drops select $step, source, path, document_id, num_bytes, reason,
        case reason
            when 'contained' then format('{:.3f} of it is in {}/{}', jaccard, keeper_source, keeper_path)
            when 'container' then
                format('{:.3f} of it is in {} files, first {}/{}', jaccard, num_keepers, keeper_source, keeper_path)
            else format('keeper {}/{}, Jaccard {:.3f}', keeper_source, keeper_path, jaccard)
        end, null from read_parquet($files)""",
}
"""Statement per record that inserts its rows into the table `drops`. `record_id` is the id of a document that was kept so far."""


def connect() -> "duckdb.DuckDBPyConnection":
    """Open an empty database in memory, with one thread: the order of rows is then always the same."""
    import duckdb  # `which` asks one row of tables, and does not wait for it

    return duckdb.connect(":memory:", config={"threads": 1})


def query(database: "duckdb.DuckDBPyConnection", sql: str, **parameters: Any) -> list[QueryRow]:
    """Run a query and return its rows by column name, those with a detail as they may be shown."""
    cursor = database.execute(sql, parameters or None)
    names = [column[0] for column in cursor.description or []]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return _as_shown(rows) if "detail" in names else rows


def _as_shown(rows: list[QueryRow]) -> list[QueryRow]:
    from pipeline.stages.normalize.params import ScrubParams
    from pipeline.stages.normalize.scrub.shown_text import ShownText  # other queries do not wait for its libraries

    text = ShownText(ScrubParams())
    shown = {"detail": text.shown, "path": text.name}
    return [
        {name: shown[name](value) if name in shown and value else value for name, value in row.items()} for row in rows
    ]


def shown_names(names: Iterable[str]) -> list[str]:
    """Return names of files as they may be shown."""
    return [row["path"] for row in _as_shown([{"path": name} for name in names])]


def table_files(parts: Iterable[StoredObject], table: str) -> list[str]:
    """List the files of one table of some parts."""
    return [str(path) for part in parts for path in part.paths(table)]


def with_revision(part: StoredObject, row: QueryRow) -> QueryRow:
    """Return a row of a part with the revision of its source, which rows of shards do not have."""
    return row | {"revision": part.identity["revision"]} if row.get("revision") == "" else row


def parts_of_kind(store: Store, stage: StoredObject, kind: PartKind) -> dict[str, StoredObject]:
    """Read the parts of one kind that a stage made, by name."""
    parts = {name: store.read(object_id) for name, object_id in parts_of(stage).items()}
    return {name: part for name, part in parts.items() if part.manifest.kind == kind.kind}


def create_drops(database: "duckdb.DuckDBPyConnection", store: Store, stages: Mapping[str, StoredObject]) -> None:
    """Create the table `drops` of everything that the given stages dropped: by step, with the reason and its detail."""
    database.execute(_CREATE)
    for stage in (stage for stage in STAGES if stage.name in stages):
        for step, kind in stage.steps.items():
            parts = parts_of_kind(store, stages[stage.name], kind).values()
            for table in (table for table in kind.tables if table.lists_drops and parts):
                files = table_files(parts, table.name)
                database.execute(_INSERT[table.record], {"step": step, "files": files})
