"""Each column that a stage passes on is described, and nothing else is."""

from dataclasses import fields

from pipeline.contracts.column_texts import COLUMN_TEXTS, column_texts
from pipeline.stages.stages import STAGES

KEPT = [table.record for stage in STAGES for kind in stage.parts for table in kind.tables if table.lists_kept]


def test_each_column_of_a_table_that_is_passed_on_is_described() -> None:
    missing = {
        f"{record.__name__}.{name}" for record in KEPT for name, text in column_texts(record).items() if not text
    }
    assert missing == set()


def test_no_description_is_of_a_column_that_there_is_not() -> None:
    names = {field.name for record in KEPT for field in fields(record)}
    of_one = {f"{record.__name__}.{field.name}" for record in KEPT for field in fields(record)}
    assert set(COLUMN_TEXTS) <= names | of_one


def test_a_column_that_means_something_else_in_one_table_is_described_for_it() -> None:
    first, last = KEPT[0], KEPT[-1]
    assert column_texts(first)["num_bytes"] != column_texts(last)["num_bytes"]
