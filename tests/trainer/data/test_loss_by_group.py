"""Losses by source, lane and license: each row counts once in each, and rows without a lane by source alone."""

import pytest

from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_rows import CONFIG, LAYOUT
from tests.support.made.made_rows import sources_of as made_sources
from trainer.data.loader import Loader, LoaderConfig
from trainer.data.loss_by_group import LossByGroup
from trainer.data.open_loader import open_loader
from trainer.data.row_selection import Dimension, RowSelection, row_groups


def test_means_of_a_batch_are_over_the_tokens_of_each_group(tiny_store: Store) -> None:
    loader = open_loader(open_snapshot(tiny_store, tiny_store.ref("tiny", "candidate") or ""), LoaderConfig(seed=3))
    batch = loader.batch_at(0, 64)
    origins, num_tokens_B = batch.origins, batch.loss_mask_BT.sum(1).tolist()
    groups = {name: row_groups(source, "a test") for name, source in zip(origins.names, loader.sources, strict=True)}
    of_rows = [groups[origin.source][origin.row] for origin in batch.row_origins]
    nats_B = [float(1 + row % 5) * number for row, number in enumerate(num_tokens_B)]

    by_group = LossByGroup(loader.sources)
    found = by_group.means_of(batch, nats_B, "loss")
    expected = {}
    for dimension in Dimension:
        for value in sorted({getattr(group, dimension) for group in of_rows}):
            rows = [row for row, group in enumerate(of_rows) if getattr(group, dimension) == value]
            number = sum(num_tokens_B[row] for row in rows)
            expected[f"loss/{dimension}/{value}"] = sum(nats_B[row] for row in rows) / number
    assert found == pytest.approx(expected)
    assert by_group.means_of(batch, nats_B, "loss") == found


def test_a_part_of_a_source_counts_as_that_source(tiny_store: Store) -> None:
    snapshot = open_snapshot(tiny_store, tiny_store.ref("tiny", "candidate") or "")
    classes = RowSelection((), Dimension.LICENSE, (("permissive", 1.0), ("weak_copyleft", 1.0)))
    loader = open_loader(snapshot, LoaderConfig(seed=3), selection=classes)
    found = LossByGroup(loader.sources).means_of(loader.batch_at(0, 64), [1.0] * 64, "loss")
    sources = {name.rpartition("/")[2] for name in found if name.startswith("loss/source/")}
    assert sources == {"lantern", "loom", "odds", "quarry"}


def test_rows_without_a_lane_count_by_source() -> None:
    loader = Loader(made_sources(a=4, b=4), LAYOUT, CONFIG)
    found = LossByGroup(loader.sources).means_of(loader.batch_at(0, 8), [8.0] * 8, "loss")
    assert sorted(found) == ["loss/source/a", "loss/source/b"]
