"""Arrow tables on disk: Parquet, or Arrow IPC where they are memory-mapped. The same table gives the same bytes.

Arrow is imported when a table is read or written: commands that read no table start faster without it.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SHARD_LABEL = "shard/"
"""Beginning of the labels under which an object that lists shards has them as inputs, in order. Their tables are its own."""
MAX_ROWS_IN_SHARD = 50_000
ROWS_IN_GROUP = 1_024
TABLE_SUFFIXES = frozenset({".arrow", ".parquet"})


def shard_names(name: str, num_rows: int) -> list[str]:
    """Return the file names of a table: `name` itself, or numbered shards of at most 50,000 rows."""
    num_shards = max(1, -(-num_rows // MAX_ROWS_IN_SHARD))
    if num_shards == 1:
        return [name]
    stem, _, suffix = name.rpartition(".")
    return [f"{stem}-{index:05d}.{suffix}" for index in range(num_shards)]


def write_tables(folder: Path, name: str, tables: "Iterable[pa.Table]") -> Iterator[str]:
    """Write tables into `folder`, each as a numbered file and gone before the next is made; yields the names written."""
    stem, _, suffix = name.rpartition(".")
    for index, table in enumerate(tables):
        shard_name = f"{stem}-{index:05d}.{suffix}"
        _write_parquet(folder / shard_name, table)
        yield shard_name


def write_table(folder: Path, name: str, table: "pa.Table") -> list[str]:
    """Write a table into `folder` as one file or numbered shards; returns the names written."""
    names = shard_names(name, table.num_rows)
    for index, shard_name in enumerate(names):
        shard = table.slice(index * MAX_ROWS_IN_SHARD, MAX_ROWS_IN_SHARD)
        if name.endswith(".arrow"):
            _write_ipc(folder / shard_name, shard)
        else:
            _write_parquet(folder / shard_name, shard)
    return names


def read_table(paths: Sequence[Path], columns: Sequence[str] | None = None) -> "pa.Table":
    """Read the shards of one table, in order. Arrow files are memory-mapped and cost no memory until they are read."""
    import pyarrow as pa

    tables = [_read_one(path, columns) for path in paths]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def find_rows(
    paths: Sequence[Path], column: str, value: object, columns: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return the rows, or some columns of them, of the Parquet files of one table that have a value in a column.

    Of groups of rows without one that column alone is read.
    """
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = []
    for path in paths:
        file = pq.ParquetFile(path)
        for group in range(file.metadata.num_row_groups):
            values = file.read_row_group(group, [column])[column].to_pylist()
            places = [place for place, each in enumerate(values) if each == value]
            if places:
                rows = file.read_row_group(group, columns and list(columns))
                found += [rows.slice(place, 1).to_pylist()[0] for place in places]
    return found


def count_rows(path: Path) -> int:
    """Count the rows of one table file without reading its columns."""
    import pyarrow.parquet as pq

    return int(read_table([path], []).num_rows if path.suffix == ".arrow" else pq.ParquetFile(path).metadata.num_rows)


def _write_parquet(path: Path, table: "pa.Table") -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A dictionary costs 37 % on token columns and helps short repeated strings only.
    repeated = [field.name for field in table.schema if pa.types.is_large_string(field.type) and field.name != "text"]
    pq.write_table(
        table,
        path,
        row_group_size=ROWS_IN_GROUP,
        compression="zstd",
        compression_level=3,
        use_dictionary=repeated or False,
        write_statistics=False,
    )


def _write_ipc(path: Path, table: "pa.Table") -> None:
    import pyarrow.ipc as ipc

    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table.combine_chunks())


def _read_one(path: Path, columns: Sequence[str] | None) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq

    if path.suffix == ".arrow":
        table = ipc.open_file(pa.memory_map(str(path))).read_all()
        return table.select(list(columns)) if columns is not None else table
    return pq.ParquetFile(path).read(columns=list(columns) if columns is not None else None)


def repeated_text(text: str, length: int) -> "pa.Array":
    """Return an array of equal texts, made of its buffers: what converts values of Python loads pandas."""
    import numpy as np
    import pyarrow as pa

    content = text.encode()
    offsets = np.arange(length + 1, dtype=np.int32) * len(content)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).tobytes()), pa.py_buffer(content * length)]
    return pa.Array.from_buffers(pa.string(), length, buffers)
