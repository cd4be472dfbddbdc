"""What other tools are given is what the snapshot holds, read with nothing of ours."""

import json
import re
import struct
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from pipeline.cli.main import main
from pipeline.core.errors import StageError
from pipeline.core.records import ChunkKind
from pipeline.export.export import EXPORT_FORMATS, ExportFormat, export
from pipeline.lineage.vocabulary_report import vocabulary_report
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from pipeline.tokenize.vocabulary import load_vocabulary
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def snapshot(tiny_store: Store) -> Snapshot:
    return open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")


def documents_of(snapshot: Snapshot, split: str) -> list[list[int]]:
    tables = [snapshot.store.read(source.rows).table("tokens.parquet") for source in snapshot.sources]
    rows = pa.concat_tables(tables).select(["split", "input_ids"]).to_pylist()
    return [row["input_ids"] for row in rows if row["split"] == split]


def read_dataset(prefix: Path) -> list[list[int]]:
    """Megatron's layout, read from its description alone."""
    index = prefix.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, num_sequences, num_documents = struct.unpack("<QBQQ", index[9:34])
    assert (version, code, num_documents) == (1, 8, num_sequences + 1)
    sizes = struct.unpack(f"<{num_sequences}i", index[34 : 34 + 4 * num_sequences])
    pointers = struct.unpack(f"<{num_sequences}q", index[34 + 4 * num_sequences : 34 + 12 * num_sequences])
    content = prefix.with_suffix(".bin").read_bytes()
    return [
        list(struct.unpack(f"<{size}H", content[start : start + 2 * size]))
        for size, start in zip(sizes, pointers, strict=True)
    ]


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_megatron_gets_every_document_with_its_end(snapshot: Snapshot, tmp_path: Path, split: str) -> None:
    answer = export(snapshot, "megatron", tmp_path / "out")
    found, wanted = read_dataset(tmp_path / "out" / split), documents_of(snapshot, split)

    assert wanted
    assert found == [[*ids, snapshot.vocabulary["specials"]["<|eos|>"]] for ids in wanted]
    assert answer["written"][split] == {"num_tokens": sum(map(len, found)), "num_documents": len(found)}


def test_the_tables_and_the_tokenizer_read_as_they_lie(snapshot: Snapshot, tmp_path: Path) -> None:
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
    datasets = pytest.importorskip("datasets")
    export(snapshot, "huggingface", tmp_path / "out")
    whole = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert whole["held_out"].num_rows == sum(source.num_rows_held_out for source in snapshot.sources)
    files = {"train": str(tmp_path / "out/packed/train/*.parquet")}
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))["train"]

    assert loaded.num_rows == sum(source.num_rows_train for source in snapshot.sources)
    assert np.shape(loaded[0]["input_ids"]) == (snapshot.row_length,)


def write_names(snapshot: Snapshot, out: Path) -> list[str]:
    """The writer of a format that the package does not have."""
    names = [source.name for source in snapshot.sources]
    (out / "names.txt").write_text("\n".join(names))
    return names


def test_a_format_registered_at_run_time_is_offered_and_written_by_the_command_line(
    tiny_store: Store, snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["export", "names", "--corpus", "tiny", "--store", str(tiny_store.root), "--json", "--out"]
    assert main([*line, str(tmp_path / "before")]) == 2
    with EXPORT_FORMATS.registered(ExportFormat("names", f"{__name__}:write_names", "names of sources")):
        with pytest.raises(SystemExit):
            main(["export", "--help"])
        assert "names: names of sources" in " ".join(capsys.readouterr().out.split())
        assert main([*line, str(tmp_path / "out")]) == 0
    answer = json.loads(capsys.readouterr().out)

    assert answer["written"] == [source.name for source in snapshot.sources]
    assert (tmp_path / "out" / "names.txt").read_text().splitlines() == answer["written"]
    assert (tmp_path / "out" / "tokenizer.json").is_file()


def test_a_folder_with_something_in_it_is_refused(snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StageError, match="it is not empty"):
        export(snapshot, "megatron", tmp_path)


def test_the_queries_of_the_document_run(snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(snapshot, "huggingface", tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "exports.md").read_text(), re.DOTALL)

    assert len(queries) >= 3
    for query in queries:
        assert duckdb.sql(query).fetchall()


def test_the_command_reports_a_vocabulary_by_kind(tiny_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["vocabulary", "tiny-1024", "--report", "--corpus", "tiny", "--store", str(tiny_store.root), "--json"]
    assert main(line) == 0
    report = json.loads(capsys.readouterr().out)

    assert sum(row["num_tokens"] for row in report["kinds"]) == report["num_tokens"] > 0
    assert {row["kind"] for row in report["kinds"]} <= {kind.name.lower() for kind in ChunkKind}


def test_a_report_counts_tokens_where_they_begin() -> None:
    text = "// abc\nint x;\n"
    vocabulary = load_vocabulary("tiny-1024")
    report = vocabulary_report(vocabulary, [text], [([0, 7], [6, 0])])
    tokens = vocabulary.tokenizer.encode(text).ids
    comment = vocabulary.tokenizer.encode("// abc\n").ids

    assert report["num_tokens"] == len(tokens)
    assert report["bytes_per_token"] == pytest.approx(14 / len(tokens), abs=1e-4)
    assert {row["kind"]: row["num_tokens"] for row in report["kinds"]} == {
        "other": len(tokens) - len(comment),
        "comment": len(comment),
    }
