"""Schemas of records: a table has exactly their columns, and what differs is named."""

import importlib
import pkgutil
from dataclasses import dataclass

import pyarrow as pa
import pytest

import pipeline.stages
from pipeline.core.errors import StageError
from pipeline.core.records import DroppedRecord
from pipeline.core.schema import (
    RECORDS,
    RawText,
    TextOrigin,
    arrow_schema,
    check_table,
    stored_record,
    table_of,
    table_of_records,
    text_columns,
)
from pipeline.stages.stages import STAGES


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


def _declared() -> dict[str, dict[str, TextOrigin | None]]:
    """The columns of text of every record that any module of a stage stores, by the record's name."""
    for module in pkgutil.walk_packages(pipeline.stages.__path__, "pipeline.stages."):
        if not module.name.endswith("unit_worker"):
            importlib.import_module(module.name)
    return {entry.name: text_columns(entry.record) for entry in RECORDS}


def test_every_column_of_text_declares_who_wrote_it() -> None:
    undeclared = [
        f"{name}.{column}" for name, found in _declared().items() for column, by in found.items() if by is None
    ]
    assert undeclared == []
    assert sum(map(len, _declared().values())) > 50


def test_raw_text_is_in_the_tables_of_collect_alone() -> None:
    of_collect = {stored_record(table.record).name for kind in STAGES["collect"].parts for table in kind.tables}
    raw = {name for name, found in _declared().items() if TextOrigin.RAW in found.values()}
    assert raw
    assert raw <= of_collect


def test_lists_and_optional_columns_hold_text_too() -> None:
    @dataclass(frozen=True)
    class Columns:
        number: int
        plain: str
        some: tuple[str, ...]
        raw: tuple[RawText, ...] | None

    assert text_columns(Columns) == {"plain": None, "some": None, "raw": TextOrigin.RAW}
