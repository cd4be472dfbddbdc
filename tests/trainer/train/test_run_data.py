"""Data of a run: another snapshot is adopted at a position, and a restored run has its adoptions again."""

import pytest

from pipeline.core.errors import TrainingError
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from trainer.data.loader import LoaderConfig
from trainer.data.small_snapshot import copy_snapshot, shorten
from trainer.train.run_data import Adoption, RunData


def test_an_adoption_leaves_the_snapshot_that_is_read_and_is_undone_by_a_restore(tiny_store, tmp_path) -> None:
    first = tiny_store.ref("tiny", "live") or ""
    store: Store = copy_snapshot(tiny_store, first, tmp_path / "store")
    second = shorten(store, first, 3)
    data = RunData(open_snapshot(store, first), (), LoaderConfig(seed=1))
    num_rows = data.loader.num_rows
    with pytest.raises(TrainingError, match=f"it leaves snapshot {second[:12]}; expected {first[:12]}"):
        data.adopt(Adoption(8, second, first))
    assert (data.snapshot.snapshot_id, data.adoptions) == (first, [])
    data.adopt(Adoption(8, first, second))
    assert (data.snapshot.snapshot_id, data.packing["num_rows"]) == (second, data.loader.num_rows)
    assert data.loader.num_rows < num_rows
    data.restore([])

    assert (data.snapshot.snapshot_id, data.loader.num_rows, data.adoptions) == (first, num_rows, [])
