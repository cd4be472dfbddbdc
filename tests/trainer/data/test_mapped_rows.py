"""Mapped rows: equal to the rows of the table, and refused without their columns."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.core.errors import SnapshotError
from tests.support.made.made_rows import rows_of
from trainer.data.mapped_rows import TrainingRows


def contents(column: Any) -> Any:
    """Of a column of arrays or of slices of the mapped file."""
    return list(map(contents, column)) if isinstance(column, list | tuple) else column.tolist()


def test_mapped_files_give_the_rows_of_the_table(tmp_path: Path) -> None:
    table = rows_of(7, 100)
    for name, part in (("a.arrow", table.slice(0, 5)), ("b.arrow", table.slice(5))):
        with pa.ipc.new_file(str(tmp_path / name), part.schema) as writer:
            writer.write_table(part)
    mapped = TrainingRows.open([tmp_path / "a.arrow", tmp_path / "b.arrow"])
    whole = TrainingRows(table)
    assert len(mapped) == len(whole) == 7
    for index in range(7):
        assert list(map(contents, mapped[index])) == list(map(contents, whole[index]))
    with pytest.raises(IndexError):
        mapped[7]


def test_rows_without_their_columns_are_refused() -> None:
    with pytest.raises(SnapshotError, match="piece_ids"):
        TrainingRows(rows_of(1, 100).drop_columns(["piece_ids"]))
