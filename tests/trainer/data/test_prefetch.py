"""Prefetching: the same batches for any number of workers, and resumption at any position."""

import json
import random

import numpy as np
import pytest
import torch

from pipeline.core.errors import TrainingError
from tests.support.made.made_rows import CONFIG, LAYOUT, sources_of
from trainer.data.batch import Batch
from trainer.data.loader import Loader
from trainer.data.prefetch import Batches


@pytest.fixture(scope="module")
def loader() -> Loader:
    return Loader(sources_of(heron=23, lantern=9, quarry=40), LAYOUT, CONFIG)


@pytest.mark.parametrize("num_workers", [1, 4])
def test_workers_change_no_batch(loader: Loader, num_workers: int) -> None:
    here = Batches(loader, 4, position=50)
    there = Batches(loader, 4, num_workers, position=50)
    for _, mine, theirs in zip(range(8), here, there, strict=False):
        assert_equal(mine, theirs)
        assert here.state_dict() == there.state_dict()


def test_a_reading_resumes_at_any_position_with_another_batch_size(loader: Loader) -> None:
    batches = Batches(loader, 8)
    for _ in zip(range(7), batches, strict=False):
        state = json.loads(json.dumps(batches.state_dict()))
        resumed = Batches(Loader(loader.sources, LAYOUT, CONFIG), 4)
        resumed.load_state_dict(state)
        assert next(iter(resumed)).row_origins == loader.batch_at(batches.position, 8).row_origins[:4]


def test_no_global_generator_is_touched_with_or_without_workers(loader: Loader) -> None:
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # type: ignore[index]
    for num_workers in (0, 1):
        next(iter(Batches(loader, 4, num_workers)))
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[index]
    assert torch.equal(torch.get_rng_state(), before[2])


def test_torchs_own_loader_and_the_stateful_one_give_the_same_order(loader: Loader) -> None:
    expected = [loader.batch_at(position, 4).row_origins for position in range(0, 24, 4)]
    plain = torch.utils.data.DataLoader(Batches(loader, 4), batch_size=None, collate_fn=lambda batch: batch)
    assert [batch.row_origins for _, batch in zip(range(6), plain, strict=False)] == expected
    torchdata = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    stateful = torchdata.StatefulDataLoader
    reading = stateful(Batches(loader, 4), batch_size=None, collate_fn=lambda batch: batch)
    assert [batch.row_origins for _, batch in zip(range(6), reading, strict=False)] == expected


def assert_equal(left: Batch, right: Batch) -> None:
    assert (left.position, left.row_origins) == (right.position, right.row_origins)
    for name in ("input_ids_BT", "target_ids_BT", "loss_mask_BT", "doc_ids_BT"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


def test_a_loader_that_hands_out_nothing_in_time_is_named() -> None:
    loader = Loader(sources_of(a=5), LAYOUT, CONFIG)

    with pytest.raises(TrainingError, match="loader: no batch came within 0 s"):
        next(iter(Batches(loader, 2, num_workers=1, stalled_after_seconds=0.001)))
