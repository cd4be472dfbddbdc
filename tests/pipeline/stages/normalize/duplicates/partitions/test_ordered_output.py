"""Ordered output: rows in the order of their tables, in chunks of the stored files, readable when the folder is gone."""

from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest

from pipeline.core.records import DuplicateRecord
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DUPLICATES, KEPT
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument
from pipeline.stages.normalize.duplicates.partitions import ordered_output
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import ROW_NUMBER, CorpusRows
from pipeline.stages.normalize.duplicates.partitions.ordered_output import OrderedOutput
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import MadeFile, cleaned


def record(source: str, path: str) -> DuplicateRecord:
    return DuplicateRecord(f"{source}/{path}", source, path, 1, "k", "k", "k", 1.0, "near_duplicate", "k", 1)


def test_what_is_lost_and_kept_is_in_the_order_of_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_output, "_ROWS_IN_STRETCH", 3)
    monkeypatch.setattr(ordered_output, "MAX_ROWS_IN_SHARD", 4)
    paths = [f"{number:02d}.cpp" for number in range(12)]
    sources = {name: cleaned(name, [MadeFile(path, name + path) for path in paths], 3) for name in "ab"}
    rows = CorpusRows(sources, (), {})  # type: ignore[arg-type]  # what is read of them
    ids = {(entry.source, entry.path): entry.document_id for entry in rows.entries()}
    numbers = [23, 0, 14, 5, 11, 12]
    names = [list(ids)[number] for number in numbers]
    output = OrderedOutput(rows, tmp_path / "scratch")
    for name, number in zip(names, numbers, strict=True):
        output.lose(table_of_records(DuplicateRecord, [record(*name)]).append_column(ROW_NUMBER, pa.array([number])))
    assert sorted((each.source, each.path) for each in output.lost_records()) == sorted(names)
    changes = [
        ComparedDocument(f"{number:064x}", "a", f"{number}:x.c", "train", 1, "", True, 1, None, True)
        for number in range(2)
    ]
    output.add_changes([replace(record("a", "0:x.c"), document_id=changes[0].document_id)], changes)
    tables = output.tables()
    rmtree(tmp_path / "scratch")

    lost = [(row["source"], row["path"]) for row in tables[DUPLICATES].to_pylist()]
    assert lost == sorted([*names, ("a", "0:x.c")])
    kept = tables[KEPT]["document_id"].to_pylist()
    assert kept == sorted([*(ids[name] for name in ids.keys() - set(names)), changes[1].document_id])
    assert [len(chunk) for chunk in tables[KEPT]["document_id"].chunks] == [4, 4, 4, 4, 3]
