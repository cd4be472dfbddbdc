"""The folder for Hugging Face is read by its loaders, with a tokenizer and tables as they are stored."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from pipeline.export.export import export
from pipeline.store.snapshot import Snapshot
from tests.support.paths import ROOT


def test_the_tables_and_the_tokenizer_are_read_as_they_are_stored(snapshot: Snapshot, tmp_path: Path) -> None:
    export(snapshot, "huggingface", tmp_path / "out")
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    packed = pa.concat_tables([pq.read_table(path) for path in sorted((tmp_path / "out/packed/train").glob("*"))])
    documents = pa.concat_tables([pq.read_table(path) for path in sorted((tmp_path / "out/documents").glob("*"))])

    assert packed.num_rows == sum(source.num_rows_train for source in snapshot.sources)
    assert (
        tokenizer.encode(tokenizer.decode(documents["input_ids"][0].as_py())).ids == documents["input_ids"][0].as_py()
    )


def test_no_file_of_the_view_is_without_rows_and_every_split_named_has_one(snapshot: Snapshot, tmp_path: Path) -> None:
    """`datasets` takes the first row group for its batch size: one without rows stops it."""
    assert 0 in [source.num_rows_train for source in snapshot.sources], "a source all held out is what this is about"
    export(snapshot, "huggingface", tmp_path / "out")
    files = [pq.ParquetFile(path).metadata for path in sorted((tmp_path / "out").rglob("*.parquet"))]
    assert all(file.row_group(group).num_rows for file in files for group in range(file.num_row_groups))
    globs = re.findall(r"(?:path|data_files): (\S+)", (tmp_path / "out/README.md").read_text())
    assert globs == ["packed/train/*.parquet", "packed/held_out/*.parquet", "documents/*.parquet"]
    assert all(list((tmp_path / "out").glob(pattern)) for pattern in globs)


def test_hugging_face_datasets_loads_the_view_where_it_is_installed(snapshot: Snapshot, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    export(snapshot, "huggingface", tmp_path / "out")
    whole = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert whole["held_out"].num_rows == sum(source.num_rows_held_out for source in snapshot.sources)
    files = {"train": str(tmp_path / "out/packed/train/*.parquet")}
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))["train"]

    assert loaded.num_rows == sum(source.num_rows_train for source in snapshot.sources)
    assert np.shape(loaded[0]["input_ids"]) == (snapshot.row_length,)


def test_the_queries_of_the_document_run(snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(snapshot, "huggingface", tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "exports.md").read_text(), re.DOTALL)

    assert len(queries) >= 3
    for query in queries:
        assert duckdb.sql(query).fetchall()
