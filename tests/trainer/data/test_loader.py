"""The loader: epochs, order, batches, its state, and independence from global generators."""

import json
import random
from collections import Counter

import numpy as np
import pytest
import torch

from pipeline.core.errors import SnapshotError, TrainingError
from pipeline.core.params import digest
from tests.support.made.made_rows import (
    CONFIG,
    LAYOUT,
    MIDDLE,
    PLAIN,
    PREFIX,
    SPECIALS,
    SUFFIX,
    T,
    place_at,
    sources_of,
)
from trainer.config.choices import EpochOrder
from trainer.data.loader import STATE_VERSION, Loader, LoaderConfig, Source, held_out_batches
from trainer.data.row_layout import RowLayout


@pytest.fixture(scope="module")
def loader() -> Loader:
    return Loader(sources_of(heron=23, lantern=9, quarry=40), LAYOUT, CONFIG)


def test_each_row_comes_once_an_epoch_and_epochs_differ(loader: Loader) -> None:
    epochs = [[place_at(loader, epoch * 72 + place) for place in range(72)] for epoch in range(3)]
    for number, samples in enumerate(epochs, start=1):
        assert {sample.epoch for sample in samples} == {number}
        assert len({(sample.source, sample.row) for sample in samples}) == 72
    orders = [[(sample.source, sample.row) for sample in samples] for samples in epochs]
    assert orders[0] != orders[1] != orders[2]


def test_sources_count_their_own_epochs_by_their_weight() -> None:
    heavy, light = sources_of(heron=10, lantern=10)
    loader = Loader([Source("heron", heavy.rows, 3.0), light], LAYOUT, CONFIG)
    samples = [place_at(loader, position) for position in range(40)]
    assert Counter((loader.sources[sample.source].name, sample.epoch) for sample in samples) == {
        ("heron", 1): 10,
        ("heron", 2): 10,
        ("heron", 3): 10,
        ("lantern", 1): 10,
    }


def test_another_source_moves_no_row_of_this_one() -> None:
    alone = Loader(sources_of(heron=23), LAYOUT, CONFIG)
    beside = Loader(sources_of(heron=23, aurora=7), LAYOUT, CONFIG)
    heron = [place for place, source in enumerate(beside.sources) if source.name == "heron"]
    rows = [sample.row for sample in (place_at(beside, position) for position in range(60)) if sample.source in heron]
    assert rows == [place_at(alone, position).row for position in range(len(rows))]


def test_published_order_is_stored_order_twice_and_then_permuted() -> None:
    loader = Loader(sources_of(heron=23), LAYOUT, LoaderConfig(epoch_order=EpochOrder.PUBLISHED))
    rows = [place_at(loader, position).row for position in range(69)]
    assert rows[:46] == [*range(23), *range(23)]
    assert rows[46:] != list(range(23))
    assert sorted(rows[46:]) == list(range(23))


def test_infilling_keeps_every_token_and_its_document(loader: Loader) -> None:
    plain = Loader(loader.sources, LAYOUT, PLAIN)
    infilled = 0
    for position in range(0, 288, 8):
        batch, original = loader.batch_at(position, 8), plain.batch_at(position, 8)
        for row, origin in enumerate(batch.row_origins):
            for piece, what in enumerate(origin.infilling.split(), start=1):
                mine = batch.input_ids_BT[row][batch.doc_ids_BT[row] == piece].tolist()
                theirs = original.input_ids_BT[row][original.doc_ids_BT[row] == piece].tolist()
                sentinels = [] if what == "plain" else [PREFIX, MIDDLE, SUFFIX]
                assert sorted(mine) == sorted(theirs + sentinels)
                infilled += what != "plain"
    assert infilled / (288 * 2) == pytest.approx(0.5, abs=0.08)


def test_a_row_is_infilled_anew_in_each_epoch(loader: Loader) -> None:
    samples = [place_at(loader, position) for position in range(72 * 6)]
    chosen = [position for position, sample in enumerate(samples) if (sample.source, sample.row) == (0, 3)]
    spans = [loader.batch_at(position, 1).row_origins[0].infilling.split()[0] for position in chosen]
    middles = [span.partition(":")[2] for span in spans if span != "plain"]
    assert len(chosen) == 6
    assert len(middles) == len(set(middles)) > 0


def test_batch_size_changes_no_row(loader: Loader) -> None:
    large, first, second = loader.batch_at(40, 8), loader.batch_at(40, 4), loader.batch_at(44, 4)
    assert large.row_origins == first.row_origins + second.row_origins
    assert np.array_equal(large.input_ids_BT, np.concatenate([first.input_ids_BT, second.input_ids_BT]))
    assert np.array_equal(large.doc_ids_BT, np.concatenate([first.doc_ids_BT, second.doc_ids_BT]))


def test_the_state_is_small_json(loader: Loader) -> None:
    state = loader.state_at(10**15)
    assert len(json.dumps(state)) < 200
    assert loader.position_of(state) == 10**15


def test_a_state_of_another_mixture_is_refused_with_both_digests(loader: Loader) -> None:
    other = Loader(sources_of(heron=23, lantern=9, quarry=41), LAYOUT, CONFIG)
    with pytest.raises(TrainingError, match=f"{other.mixture_digest}.*{loader.mixture_digest}"):
        loader.position_of(other.state_at(8))
    with pytest.raises(TrainingError, match="its seed is 6; expected 5"):
        loader.position_of(Loader(loader.sources, LAYOUT, LoaderConfig(seed=6)).state_at(8))


def test_the_mixture_digest_names_snapshot_weights_and_reading(loader: Loader) -> None:
    heavier = [Source(loader.sources[0].name, loader.sources[0].rows, 2.0), *loader.sources[1:]]
    others = [
        Loader(loader.sources, RowLayout.of("b" * 64, T, SPECIALS), CONFIG),
        Loader(heavier, LAYOUT, CONFIG),
        Loader(loader.sources, LAYOUT, PLAIN),
    ]
    assert len({loader.mixture_digest, *(other.mixture_digest for other in others)}) == 4
    assert Loader(loader.sources[::-1], LAYOUT, LoaderConfig(seed=99)).mixture_digest == loader.mixture_digest


def test_draws_from_global_generators_change_nothing(loader: Loader) -> None:
    expected = [loader.batch_at(position, 4) for position in range(0, 24, 4)]
    for seed, batch in enumerate(expected):
        random.seed(seed)
        np.random.seed(seed)  # the legacy global generator is the point
        torch.manual_seed(seed)
        random.random(), np.random.random(3), torch.rand(3)
        again = loader.batch_at(batch.position, 4)
        assert again.row_origins == batch.row_origins
        assert np.array_equal(again.input_ids_BT, batch.input_ids_BT)


def test_the_first_thousand_triples_are_equal_over_two_runs(loader: Loader) -> None:
    runs = [
        [origin for position in range(0, 1000, 8) for origin in run.batch_at(position, 8).row_origins]
        for run in (loader, Loader(sources_of(heron=23, lantern=9, quarry=40)[::-1], LAYOUT, CONFIG))
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 990


def test_another_order_than_last_year_needs_another_state_version(loader: Loader) -> None:
    origins = [origin for position in range(0, 400, 8) for origin in loader.batch_at(position, 8).row_origins]
    assert (STATE_VERSION, digest(origins)) == (1, "444f0f0dac2694147c365efcf6a37300c63af0c0c7f744922dad78cdc0570891")


def test_held_out_rows_come_once_in_stored_order_and_plain() -> None:
    batches = list(held_out_batches(sources_of(lantern=3, heron=4), LAYOUT, 3))
    origins = [origin for batch in batches for origin in batch.row_origins]
    assert [(origin.source, origin.row) for origin in origins] == [("heron", row) for row in range(4)] + [
        ("lantern", row) for row in range(3)
    ]
    ids = np.concatenate([batch.input_ids_BT for batch in batches])
    assert not np.isin(ids, [PREFIX, MIDDLE, SUFFIX]).any()
    assert [len(batch.row_origins) for batch in batches] == [3, 3, 1]


def test_a_source_without_rows_takes_no_part() -> None:
    loader = Loader(sources_of(heron=5, empty=0), LAYOUT, CONFIG)
    assert [source.name for source in loader.sources] == ["heron"]
    with pytest.raises(SnapshotError, match="no source has training rows"):
        Loader(sources_of(empty=0), LAYOUT, CONFIG)


def test_rows_of_another_length_are_refused() -> None:
    loader = Loader(sources_of(heron=5), RowLayout.of("a" * 64, 64, SPECIALS), CONFIG)
    with pytest.raises(SnapshotError, match="it has 32 slots; expected 64"):
        loader.batch_at(0, 1)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_is_not_a_share_is_refused(weight: float) -> None:
    heron, lantern = sources_of(heron=4, lantern=4)
    with pytest.raises(SnapshotError, match=f"source heron: its weight is {weight}"):
        Loader([Source("heron", heron.rows, weight), lantern], LAYOUT, CONFIG)


def test_a_weight_however_small_keeps_its_source() -> None:
    heron, lantern = sources_of(heron=4, lantern=4)
    loader = Loader([Source("heron", heron.rows, 1e-9), Source("lantern", lantern.rows, 1e-300)], LAYOUT, CONFIG)
    assert [source.name for source in loader.sources] == ["heron", "lantern"]
    assert len(loader.batch_at(0, 4).row_origins) == 4
