"""Tables on disk: shards of bounded size, read back in order, with the same bytes each time."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.formats import tables
from pipeline.formats.tables import count_rows, read_table, write_table

TABLE = pa.table({"number": pa.array(range(5), pa.int64()), "text": ["a", "b", "c", "d", None]})


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_long_table_is_numbered_shards_that_read_back_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS_IN_SHARD", 2)
    names = write_table(tmp_path, f"rows.{suffix}", TABLE)
    paths = [tmp_path / name for name in names]

    assert names == [f"rows-0000{index}.{suffix}" for index in range(3)]
    assert [count_rows(path) for path in paths] == [2, 2, 1]
    assert read_table(paths).equals(TABLE)
    assert read_table(paths, ["text"]).column_names == ["text"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_the_same_table_gives_the_same_bytes_however_it_is_chunked(tmp_path: Path, suffix: str) -> None:
    (whole,) = write_table(tmp_path, f"whole.{suffix}", TABLE)
    (again,) = write_table(tmp_path, f"again.{suffix}", pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]))

    assert whole == f"whole.{suffix}"
    assert (tmp_path / again).read_bytes() == (tmp_path / whole).read_bytes()
