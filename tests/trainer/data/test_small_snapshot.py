"""A copied snapshot has the id of the original, and a shortened one has its first rows."""

from pathlib import Path

from pipeline.core.records import Split
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_snapshot import CORPUS, commit_made
from trainer.data.mapped_rows import TrainingRows
from trainer.data.small_snapshot import copy_snapshot, shorten


def test_a_copy_is_a_store_of_its_own_and_a_short_snapshot_begins_as_the_whole_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    snapshot_id = commit_made(store)

    copy = copy_snapshot(store, snapshot_id, tmp_path / "copy")
    short = open_snapshot(copy, shorten(copy, snapshot_id, 5))
    whole = open_snapshot(copy, snapshot_id)

    assert whole.snapshot_id == snapshot_id
    assert [(source.num_rows_train, source.num_rows_held_out) for source in short.sources] == [(5, 5)]
    for split in Split:
        few, all_rows = (TrainingRows.open(each.row_files(CORPUS, split)) for each in (short, whole))
        assert len(few) == 5
        assert all(bytes(few[row].input_ids[0]) == bytes(all_rows[row].input_ids[0]) for row in range(5))
