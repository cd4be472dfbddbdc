"""Measurement rows: what is missing is measured once, in order, until the budget is spent."""

from pathlib import Path
from typing import Any

import pytest

from kernels.measure.measurements import Measurement, append, first_bad_line, measure_missing, read_rows


def test_a_second_run_measures_what_the_first_did_not(tmp_path: Path) -> None:
    path, measured = tmp_path / "out" / "rows.jsonl", list[int]()

    def measurement(number: int, suffices: bool = True) -> Measurement:
        def measure(seconds: float) -> dict[str, Any] | None:
            measured.append(number)
            return {"ms": number} if suffices else None

        return Measurement({"number": number, "gpu": "none"}, measure)

    first = list(measure_missing([measurement(1), measurement(2, suffices=False)], path, [], 60))
    with path.open("a") as file:
        file.write('{"torn')
    rows = read_rows(path, {"gpu": "none"})
    second = list(measure_missing([measurement(1), measurement(2)], None, rows, 60))

    assert first == rows == [{"number": 1, "gpu": "none", "ms": 1}]
    assert second == [{"number": 2, "gpu": "none", "ms": 2}]
    assert measured == [1, 2, 2]
    assert read_rows(path, {"gpu": "another"}) == []
    assert first_bad_line(path) is None
    append(path, {"number": 3, "gpu": "none"})
    assert [row["number"] for row in read_rows(path, {"gpu": "none"})] == [1, 3], "a torn last line goes"
    assert list(measure_missing([measurement(3)], None, [], 0)) == []


@pytest.mark.parametrize(
    ("content", "line"), [(b"", None), (b"\xff\xfe\x00", 1), (b"hello", 1), (b"{}\n[1]\n", 2), (b'{}\n{"a', None)]
)
def test_what_is_no_row_is_found(tmp_path: Path, content: bytes, line: int | None) -> None:
    (tmp_path / "rows").write_bytes(content)
    assert first_bad_line(tmp_path / "rows") == line
    assert first_bad_line(tmp_path / "none") is None
