"""Spills: what is added comes back by partitions, in the order in which it came, however often it is written."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline.stages.normalize.duplicates import spill
from pipeline.stages.normalize.duplicates.spill import NumberSpill, TableSpill, regrouped, rows_with


@pytest.mark.parametrize("max_bytes", [1, 100, 1 << 26])
def test_rows_of_a_partition_come_back_in_their_order(
    max_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "_MAX_BYTES_HELD", max_bytes)
    rows = TableSpill(tmp_path / "rows")
    for start in range(0, 30, 10):
        numbers = np.arange(start, start + 10)
        rows.add(numbers % 3, pa.table({"number": numbers, "lists": [[int(each)] for each in numbers]}))
    rows.add(np.empty(0, np.int64), pa.table({"number": [], "lists": []}))

    for partition in range(3):
        found = rows.read(partition)
        assert found is not None
        assert found["number"].to_pylist() == list(range(partition, 30, 3))
        assert found["lists"].num_chunks == 1
    assert rows.read(3) is None


def test_numbers_of_a_partition_come_back_in_their_order(tmp_path: Path) -> None:
    numbers = NumberSpill(tmp_path / "numbers")
    for start in (0, 10):
        some = np.arange(start, start + 10)
        numbers.add(some % 2, some)
    numbers.add(np.empty(0, np.int64), np.empty(0, np.int64))
    assert numbers.read(1).tolist() == list(range(1, 20, 2))
    assert numbers.read(2).tolist() == []


def test_what_is_regrouped_is_one_array_a_partition(tmp_path: Path) -> None:
    regroup = regrouped(tmp_path / "arrays", 3, lambda numbers: numbers // 10)
    found = regroup(iter([np.array([1, 11, 2]), np.array([12, 3])]))
    assert [each.tolist() for each in found] == [[1, 2, 3], [11, 12], []]


def test_rows_are_found_in_the_order_of_the_values() -> None:
    table = pa.table({"name": ["a", "b", "c"], "size": [1, 2, 3]})
    assert rows_with(table, "name", pa.array(["c", "x", "a"]))["size"].to_pylist() == [3, 1]
