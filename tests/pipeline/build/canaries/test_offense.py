"""Offenses of rows that are each changed in another way: which rows of which source, and how many."""

import pyarrow as pa

from pipeline.build.canaries.memory_build import MadeOutput
from pipeline.build.canaries.offense import SOURCES, Offense, fields, one_each
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.params import Params

TABLE = "rows.parquet"


def changed(offense: Offense, source: str, values: list[int]) -> list[int]:
    (alteration,) = offense.changes.of("tokenize", source)
    output = PartOutput({TABLE: pa.table({"value": values})})
    assert alteration.change is not None
    made = alteration.change(MadeOutput(PartJob(source, Params(), {}, {}, {}), output))
    found: list[int] = made.output.tables[TABLE]["value"].to_pylist()
    return found


def offense(num_changes: int) -> Offense:
    changes = [fields(value=number) for number in range(1, num_changes + 1)]
    return one_each("made", ["gate"], "tokenize", dict.fromkeys(SOURCES, TABLE), changes)


def test_half_of_the_changes_are_in_each_source_at_its_first_rows_and_at_its_last() -> None:
    first, last = SOURCES

    assert changed(offense(5), first, [0] * 6) == [1, 2, 0, 0, 0, 3]
    assert changed(offense(5), last, [0] * 6) == [4, 0, 0, 0, 0, 5]
    assert changed(offense(2), last, [0]) == [2]


def test_a_gate_must_count_every_change() -> None:
    assert offense(5).least == 5


def test_a_field_is_changed_to_a_value_or_by_a_function() -> None:
    assert fields(a=1, b=lambda value: value + 1)({"a": 0, "b": 4, "c": 5}) == {"a": 1, "b": 5, "c": 5}
