"""Measurement rows: what is missing is measured once, in order, until the budget is spent."""

from pathlib import Path
from typing import Any

import pytest

from kernels.measure.measurements import Measurement, append, first_bad_line, measure_missing, read_rows

PLACE = {"gpu": "none", "torch": "2", "triton": "3"}
ROW = b'{"number": 0, "gpu": "none", "torch": "2", "triton": "3"}'


def test_a_second_run_measures_what_the_first_did_not(tmp_path: Path) -> None:
    path, measured = tmp_path / "out" / "rows.jsonl", list[int]()

    def measurement(number: int, suffices: bool = True) -> Measurement:
        def measure(seconds: float) -> dict[str, Any] | None:
            measured.append(number)
            return {"ms": number} if suffices else None

        return Measurement({"number": number, **PLACE}, measure)

    first = list(measure_missing([measurement(1), measurement(2, suffices=False)], path, [], 60))
    with path.open("a") as file:
        file.write('{"torn')
    rows = read_rows(path, PLACE)
    second = list(measure_missing([measurement(1), measurement(2)], None, rows, 60))

    assert first == rows == [{"number": 1, **PLACE, "ms": 1}]
    assert second == [{"number": 2, **PLACE, "ms": 2}]
    assert measured == [1, 2, 2]
    assert read_rows(path, {"gpu": "another"}) == []
    assert first_bad_line(path, ["number"]) is None
    assert first_bad_line(path, ["name"]) == 1
    append(path, {"number": 3, **PLACE})
    assert [row["number"] for row in read_rows(path, PLACE)] == [1, 3], "a torn last line goes"
    assert list(measure_missing([measurement(3)], None, [], 0)) == []


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", None),
        (b"\xff\xfe\x00", 1),
        (b"hello", 1),
        (b"{}\n", 1),
        (ROW + b"\n[1]\n", 2),
        (ROW + b'\n{"b": 2}\n', 2),
        (ROW + b'\n{"a', None),
        (ROW + b'\n{"b": 2}', 2),
        (ROW, None),
        (ROW + b"\r" + ROW, 1),
        (ROW.replace(b"none", b"\xff"), None),
        (b'{"name": "my-app", "version": "1.0.0"}', 1),
        (b'{"title": "x", "cells": [', 1),
        (b"[" * 100_000, 1),
        (ROW + b'\n{"a\n', 2),
        (ROW + b"\n" + ROW + b",", 2),
        (ROW + b"\n" + ROW + b"\r" + ROW + b"\r", 2),
        (ROW + b"\n" + ROW + b'{"b', 2),
        (ROW + b"\n{ // notes", 2),
        (ROW.replace(b"0", b"[0]"), 1),
    ],
)
def test_what_is_no_row_is_found(tmp_path: Path, content: bytes, line: int | None) -> None:
    (tmp_path / "rows").write_bytes(content)
    assert first_bad_line(tmp_path / "rows", ["number"]) == line
    assert first_bad_line(tmp_path / "none", ["number"]) is None


def test_a_row_without_a_line_end_or_with_broken_bytes_stays(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(ROW.replace(b"none", b"\xff") + b"\n" + ROW)

    assert read_rows(tmp_path / "rows", PLACE) == [{"number": 0, **PLACE}]
    append(tmp_path / "rows", {"number": 1, **PLACE})
    assert [row["number"] for row in read_rows(tmp_path / "rows", {})] == [0, 0, 1]
