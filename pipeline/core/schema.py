"""Arrow schemas, derived from record classes. A schema holds the stored name and version of its record; none is written by hand.

Arrow is imported when a schema is made: a build in which everything is unchanged needs none.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pipeline.core.errors import StageError
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")


class TextOrigin(StrEnum):
    """Origin of the text in a column: who wrote it, and so what it may hold."""

    WORD = "word"
    """The pipeline: ids, digests, reasons, names of sources and of kinds, JSON of numbers."""
    NAME = "name"
    """The source: the path of a file, as it is."""
    SCRUBBED = "scrubbed"
    """The source: scrubbed, or quoted by `ShownText`."""
    RAW = "raw"
    """The source, as it came. Only collect stores such columns."""


OwnText = Annotated[str, "large_string", TextOrigin.WORD]
PathText = Annotated[str, "large_string", TextOrigin.NAME]
ScrubbedText = Annotated[str, "large_string", TextOrigin.SCRUBBED]
RawText = Annotated[str, "large_string", TextOrigin.RAW]
RawBytes = Annotated[bytes, "large_binary", TextOrigin.RAW]


@dataclass(frozen=True)
class StoredRecord:
    """The name and version of a record in stored tables: ids depend on these two, so that the class can be renamed or moved.

    The version is raised when a field is added. Fields are only ever added, as nullable: older tables load with None there.
    """

    name: str
    version: int
    record: type


RECORDS: Registry[StoredRecord] = Registry("record")


def stored(name: str, version: int = 1) -> Callable[[type[_T]], type[_T]]:
    """Return a decorator that declares the stored name and version of a record. Raises ParamsError for a name that is taken."""

    def declare(record: type[_T]) -> type[_T]:
        RECORDS.register(StoredRecord(name, version, record))
        return record

    return declare


def stored_record(record: type) -> StoredRecord:
    """Return the declaration of a record, or of the class that it derives from. Raises StageError for one without."""
    declared = {entry.record: entry for entry in RECORDS}
    found = next((declared[base] for base in record.__mro__ if base in declared), None)
    if found is None:
        subject, remedy = f"record {record.__name__}", 'Declare it with `@stored("NAME")` above its class.'
        raise StageError(subject, "it has no name for stored tables", f"one of {', '.join(RECORDS.names)}", remedy)
    return found


def arrow_schema(record: type) -> "pa.Schema":
    """Return the Arrow schema of a table of `record`: one field an attribute, nullable where the attribute may be None."""
    return _schema(record, stored_record(record))


def text_columns(record: type) -> dict[str, TextOrigin | None]:
    """Return the columns of a record that hold text or bytes, with their declared origin; None where it is missing."""
    hints = get_type_hints(record, include_extras=True)
    found = {field.name: _leaf(hints[field.name]) for field in fields(record)}
    return {name: _origin(leaf) for name, leaf in found.items() if _is_text(leaf)}


def _leaf(annotation: Any) -> Any:
    """Return the annotation of the values of a column: of a list its items, of an optional field what is not None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return _leaf(next(argument for argument in get_args(annotation) if argument is not type(None)))
    return _leaf(get_args(annotation)[0]) if get_origin(annotation) is tuple else annotation


def _is_text(leaf: Any) -> bool:
    return (get_args(leaf)[0] if get_origin(leaf) is Annotated else leaf) in (str, bytes)


def _origin(leaf: Any) -> TextOrigin | None:
    return next((each for each in get_args(leaf) if isinstance(each, TextOrigin)), None)


@cache
def _schema(record: type, declared: StoredRecord) -> "pa.Schema":
    import pyarrow as pa

    hints = get_type_hints(record, include_extras=True)
    columns = [_column(field.name, hints[field.name]) for field in fields(record)]
    return pa.schema(columns, metadata={"record": declared.name, "schema_version": str(declared.version)})


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
