"""Rows that are fetched file by file are the rows of the whole table, in the same order and the same batches."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

from pipeline.core.errors import DamagedError, SnapshotError
from pipeline.store.store import Store
from tests.support.made.made_rows import CONFIG, LAYOUT, rows_of
from trainer.checkpoint.certificate import digest_batch
from trainer.data.loader import Loader, Source
from trainer.data.mapped_rows import TrainingRows
from trainer.data.streaming.streamed_rows import RowFile, StreamedRows

NUM_ROWS, NUM_FILES = 37, 5


def files_of(store: Store, *tables: pa.Table) -> list[RowFile]:
    with store.writer("corpus", "a test") as scratch:
        folder = scratch / "rows"
        folder.mkdir()
        for number, table in enumerate(tables):
            with ipc.new_file(str(folder / f"rows_train-{number}.arrow"), table.schema) as writer:
                writer.write_table(table)
        stored = store.read(store.commit(folder, "tokenize/part", {}, {}))
    return [
        RowFile(each.path, entry.name, entry.num_rows or 0, entry.num_bytes)
        for each, entry in stored.entries("rows_train.arrow")
    ]


@pytest.fixture
def files(store: Store) -> list[RowFile]:
    table = rows_of(NUM_ROWS, 100)
    share = -(-NUM_ROWS // NUM_FILES)
    return files_of(store, *(table.slice(number * share, share) for number in range(NUM_FILES)))


def test_batches_are_those_of_rows_that_are_here(files: list[RowFile]) -> None:
    whole = Loader([Source("a", TrainingRows(rows_of(NUM_ROWS, 100)))], LAYOUT, CONFIG)
    streamed = Loader([Source("a", pickle.loads(pickle.dumps(StreamedRows(files))))], LAYOUT, CONFIG)

    assert (whole.block_rows, streamed.block_rows) == (512, 64)
    assert streamed.mixture_digest == whole.mixture_digest
    for position in (0, 4, 60, 36 * NUM_ROWS + 1):
        assert digest_batch(streamed.batch_at(position, 8)) == digest_batch(whole.batch_at(position, 8))


def test_what_is_asked_of_all_rows_or_of_some_is_what_the_table_says(files: list[RowFile]) -> None:
    streamed, whole = StreamedRows(files), TrainingRows(rows_of(NUM_ROWS, 100))
    chosen_N = np.array([30, 2, 17])
    some, same = streamed.subset(chosen_N), whole.subset(chosen_N)

    for one, other in ((streamed, whole), (some, same)):
        assert len(one) == len(other)
        assert one.max_pieces == other.max_pieces
        assert one.groups() == other.groups()
        assert one.group_of(2) == other.group_of(2)
        assert one.has_structure is other.has_structure is False
        assert one.num_targets().tolist() == other.num_targets().tolist()
        assert bytes(one[1].input_ids[0]) == bytes(other[1].input_ids[0])
    assert [file.name for file in some.files_of(np.array([0, 1]))] == ["rows_train-0.arrow", "rows_train-3.arrow"]


def test_a_damaged_file_is_refused_when_a_row_of_it_is_read_and_no_other(files: list[RowFile]) -> None:
    rows = StreamedRows(files)
    files[1].path.write_bytes(files[1].path.read_bytes()[:-1] + b"!")

    assert len(rows[0].input_ids) == 1
    with pytest.raises(DamagedError, match=r"rows_train-1\.arrow"):
        rows[8]


def test_rows_without_the_structure_that_a_run_needs_are_refused_when_they_are_read(store: Store) -> None:
    rows = StreamedRows(files_of(store, rows_of(4, 100, with_structure=True), rows_of(4, 300)), None, True)

    assert rows.has_structure
    assert len(rows[3].input_ids) == 1
    with pytest.raises(SnapshotError, match="they have no structure"):
        rows[4]


def test_a_file_without_rows_is_none(files: list[RowFile]) -> None:
    empty = RowFile(Path("nowhere"), "rows_train-9.arrow", 0, 10)

    assert StreamedRows([*files, empty]).files == tuple(files)
