"""Schemas of records: a table has exactly their columns, and what differs is named."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from pipeline.core.errors import StageError
from pipeline.core.records import DroppedRecord
from pipeline.core.schema import arrow_schema, check_table, table_of, table_of_records


@dataclass(frozen=True)
class UndeclaredRecord:
    """A record without a stored name."""

    path: str


def test_a_missing_and_an_unknown_column_are_both_named() -> None:
    with pytest.raises(StageError, match=r"columns \['unheard'\] are unknown and \['\w+'"):
        table_of(DroppedRecord, {"unheard": [1]})


def test_a_table_of_no_records_has_the_schema_and_another_type_is_named() -> None:
    table = table_of_records(DroppedRecord, [])
    check_table(table, DroppedRecord, "a part")
    name = table.column_names[0]
    other = table.set_column(0, name, pa.array([], pa.int8()))

    with pytest.raises(StageError, match=rf"a part: columns \['{name}'\] differ from DroppedRecord"):
        check_table(other, DroppedRecord, "a part")


def test_a_record_without_a_stored_name_is_refused() -> None:
    with pytest.raises(StageError, match="record UndeclaredRecord: it has no name for stored tables"):
        arrow_schema(UndeclaredRecord)
