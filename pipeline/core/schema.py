"""Arrow schemas, derived from record classes. A schema names its record and version, and is never written by hand.

Arrow is imported when a schema is made: a build in which everything is unchanged needs none.
"""

import types
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from pipeline.core.errors import StageError

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSIONS = {"EnrichedDocument": 3, "TokenizedDocument": 2, "PackedRow": 2, "TrainingRow": 2}
"""Of each record, 1 unless it says otherwise. Raised when a field is added. Fields are only ever added, as nullable: older tables
load with None there."""


def arrow_schema(record: type) -> "pa.Schema":
    """Return the Arrow schema of a table of `record`: one field an attribute, nullable where the attribute may be None."""
    import pyarrow as pa

    hints = get_type_hints(record, include_extras=True)
    columns = [_column(field.name, hints[field.name]) for field in fields(record)]
    version = str(SCHEMA_VERSIONS.get(record.__name__, 1))
    return pa.schema(columns, metadata={"record": record.__name__, "schema_version": version})


def table_of(record: type, columns: dict[str, Any]) -> "pa.Table":
    """Make a table of `record` from its columns. A missing one raises StageError, unless it is nullable: then it is all None."""
    import pyarrow as pa

    schema = arrow_schema(record)
    unknown = sorted(set(columns) - set(schema.names))
    missing = sorted(field.name for field in schema if field.name not in columns and not field.nullable)
    if unknown or missing:
        raise StageError(record.__name__, f"columns {unknown} are unknown and {missing} are missing", f"{schema.names}")
    num_rows = len(next(iter(columns.values())))
    arrays = [
        _array(columns[field.name], field) if field.name in columns else pa.nulls(num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def table_of_records(record: type, records: list[Any]) -> "pa.Table":
    """Make a table of `record` from instances of it, in their order."""
    names = [field.name for field in fields(record)]
    return table_of(record, {name: [getattr(item, name) for item in records] for name in names})


def check_table(table: "pa.Table", record: type, where: str) -> None:
    """Raise StageError unless `table` has exactly the columns, types and schema version of `record`."""
    wanted = arrow_schema(record)
    if table.schema.equals(wanted) and (table.schema.metadata or {}) == wanted.metadata:
        return
    found = {field.name: str(field.type) for field in table.schema}
    expected = {field.name: str(field.type) for field in wanted}
    different = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    raise StageError(where, f"columns {different} differ from {record.__name__}", f"{expected}")


def _column(name: str, annotation: Any) -> "pa.Field":
    import pyarrow as pa

    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        inner = next(argument for argument in get_args(annotation) if argument is not type(None))
        return pa.field(name, _arrow_type(inner), nullable=True)
    return pa.field(name, _arrow_type(annotation), nullable=False)


def _arrow_type(annotation: Any) -> "pa.DataType":
    import pyarrow as pa

    origin = get_origin(annotation)
    if origin is Annotated:
        return pa.type_for_alias(get_args(annotation)[1])
    if origin is tuple:
        return pa.large_list(pa.field("item", _arrow_type(get_args(annotation)[0]), nullable=False))
    return _plain_types()[annotation]


@cache
def _plain_types() -> "dict[Any, pa.DataType]":
    import pyarrow as pa

    return {
        str: pa.large_string(),
        bytes: pa.large_binary(),
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
    }


def _array(values: Any, field: "pa.Field") -> "pa.Array":
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == field.type else values.cast(field.type)
    return pa.array(values, type=field.type)
