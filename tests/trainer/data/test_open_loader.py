"""Several snapshots as one mixture: shares by weight, separate sources, and snapshots that do not fit together refused."""

from collections import Counter
from dataclasses import replace

import pytest

from pipeline.core.errors import SnapshotError
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_rows import place_at
from trainer.data.loader import LoaderConfig
from trainer.data.open_loader import WeightedSnapshot, open_loader, open_mixture
from trainer.data.row_selection import Dimension, RowSelection

CONFIG = LoaderConfig(seed=3)


@pytest.fixture
def first(tiny_store: Store) -> Snapshot:
    return open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")


@pytest.fixture
def second(first: Snapshot) -> Snapshot:
    """The same rows under another id."""
    return replace(first, stored=first.store.read(first.sources[0].rows))


def test_weights_share_the_rows_and_each_source_keeps_its_order(first: Snapshot, second: Snapshot) -> None:
    mixture = open_mixture([WeightedSnapshot(first, 3.0), WeightedSnapshot(second)], CONFIG)
    num_rows = open_loader(first, CONFIG).num_rows
    samples = [place_at(mixture, position) for position in range(4 * num_rows)]
    found = Counter(mixture.sources[sample.source].name.partition("/")[0] for sample in samples)
    assert found == {first.snapshot_id[:12]: 3 * num_rows, second.snapshot_id[:12]: num_rows}
    alone = open_mixture([WeightedSnapshot(second)], CONFIG)
    alone_samples = [place_at(alone, position) for position in range(num_rows)]
    for name in {source.name for source in alone.sources}:
        mixed, pure = (
            [sample.row for sample in taken if loader.sources[sample.source].name == name]
            for loader, taken in ((mixture, samples), (alone, alone_samples))
        )
        assert mixed == pure


def test_the_state_names_snapshots_and_weights_whatever_their_order(first: Snapshot, second: Snapshot) -> None:
    members = [WeightedSnapshot(first, 3.0), WeightedSnapshot(second)]
    mixture = open_mixture(members, CONFIG)
    assert open_mixture(members[::-1], CONFIG).mixture_digest == mixture.mixture_digest
    others = [open_mixture([WeightedSnapshot(first, 2.0), members[1]], CONFIG), open_loader(first, CONFIG)]
    assert len({mixture.mixture_digest, *(other.mixture_digest for other in others)}) == 3


def test_a_selection_is_of_the_rows_of_each_snapshot(first: Snapshot, second: Snapshot) -> None:
    members = [WeightedSnapshot(first, 3.0), WeightedSnapshot(second)]
    lantern = RowSelection(((Dimension.SOURCE, ("lantern",)),))
    mixture = open_mixture(members, CONFIG, selection=lantern)
    alone = open_loader(first, CONFIG, selection=lantern)

    assert [source.source for source in mixture.sources] == ["lantern", "lantern"]
    assert mixture.num_rows == 2 * alone.num_rows
    assert len({open_mixture(members, CONFIG).mixture_digest, mixture.mixture_digest, alone.mixture_digest}) == 3
    with pytest.raises(
        SnapshotError, match="no training row is of lantren; expected source lantern, loom, odds, quarry"
    ):
        open_mixture(members, CONFIG, selection=RowSelection(((Dimension.SOURCE, ("lantren",)),)))
    others = tuple(source for source in second.sources if source.name != "lantern")
    with pytest.raises(SnapshotError, match="no row of it is of all that --only names; expected one"):
        open_mixture([members[0], WeightedSnapshot(replace(second, sources=others))], CONFIG, selection=lantern)


def test_snapshots_that_do_not_fit_together_are_refused(first: Snapshot, second: Snapshot) -> None:
    longer = replace(second, row_length=second.row_length * 2)
    other = replace(second, vocabulary={**second.vocabulary, "sha256": "f" * 64})
    for snapshot, reason in ((longer, "row length is 256"), (other, "vocabulary is ffff"), (first, "twice")):
        with pytest.raises(SnapshotError, match=reason):
            open_mixture([WeightedSnapshot(first), WeightedSnapshot(snapshot)], CONFIG)
    with pytest.raises(SnapshotError, match="names no snapshot"):
        open_mixture([], CONFIG)
