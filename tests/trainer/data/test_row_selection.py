"""Selections of rows: shares of tokens as asked, equal from any position, and values that no row has."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pipeline.contracts.training_row import ROW_GROUP
from pipeline.core.errors import SnapshotError
from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from tests.support.made.made_rows import with_lanes
from trainer.config.training_config import MixtureChange
from trainer.data.loader import Loader, LoaderConfig, Source
from trainer.data.mapped_rows import TrainingRows
from trainer.data.open_loader import open_loader, sources_of
from trainer.data.row_selection import (
    Dimension,
    RowGroup,
    RowSelection,
    row_groups,
    select_rows,
    shares_by_step,
    spread_rows,
)

NUM_TOKENS = 10_000_000
CONFIG = LoaderConfig(seed=5)
LANES = RowSelection((), Dimension.LANE, (("build_aware", 0.7), ("syntax_only", 0.3)))
SOURCES = RowSelection((), Dimension.SOURCE, (("lantern", 3.0), ("odds", 1.0), ("quarry", 4.0)))
LICENSES = RowSelection((), Dimension.LICENSE, (("Apache-2.0", 0.3), ("MIT", 0.7)))
ONLY = RowSelection(((Dimension.LICENSE, ("permissive",)),), Dimension.SOURCE, (("lantern", 1.0), ("quarry", 1.0)))


@pytest.fixture(scope="module")
def snapshot(tiny_store: Store) -> Snapshot:
    return open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or tiny_store.ref("tiny", "candidate") or "")


def loader_of(snapshot: Snapshot, selection: RowSelection) -> Loader:
    chosen = select_rows(with_lanes(sources_of(snapshot, Split.TRAIN)), selection, "a test")
    return Loader(chosen, open_loader(snapshot, CONFIG).layout, CONFIG)


def tokens_by_value(snapshot: Snapshot, selection: RowSelection) -> tuple[Loader, Counter[str]]:
    """Return the loader of a selection, and the trained tokens of the rows that it draws first, by value of the shares."""
    loader = loader_of(snapshot, selection)
    sources_R, _, rows_R = loader.locate(0, NUM_TOKENS // snapshot.row_length)
    drawn: Counter[str] = Counter()
    for number, source in enumerate(loader.sources):
        drawn[source.name.partition("/")[2]] += int(source.rows.num_targets()[rows_R[sources_R == number]].sum())
    return loader, drawn


def groups_of(sources: Sequence[Source]) -> list[RowGroup]:
    return [group for source in sources for group in row_groups(source, "a test")]


@pytest.mark.parametrize("num_rows", [1, 7, 32, 64, 200])
def test_rows_are_spread_in_proportion_over_sources_lanes_and_licenses(snapshot: Snapshot, num_rows: int) -> None:
    sources = with_lanes(sources_of(snapshot, Split.TRAIN))
    spread, everything = groups_of(spread_rows(sources, num_rows)), groups_of(sources)
    assert len(spread) == num_rows < len(everything)

    for field in ("source", "lane", "license"):
        asked, found = (Counter(getattr(group, field) for group in groups) for groups in (everything, spread))
        if num_rows >= 32:  # more than there are values
            assert found.keys() == asked.keys()
            assert all(abs(found[value] - number * num_rows / len(everything)) < 3 for value, number in asked.items())


def test_spread_rows_are_the_same_each_time_and_all_where_there_are_no_more(snapshot: Snapshot) -> None:
    sources = with_lanes(sources_of(snapshot, Split.TRAIN))
    once, again = ({each.name: each.rows for each in spread_rows(sources, 40)} for _ in range(2))
    assert once.keys() == again.keys()
    for name, rows in once.items():
        chosen = rows.stored_rows(np.arange(len(rows)))
        assert np.array_equal(chosen, again[name].stored_rows(np.arange(len(rows))))
        assert np.array_equal(chosen, np.unique(chosen)), "in stored order, each once"
    assert groups_of(spread_rows(sources, 10**6)) == groups_of(sources)
    without = [
        replace(source, rows=TrainingRows(source.rows._table.drop_columns(list(ROW_GROUP)))) for source in sources
    ]
    assert {source.name for source in spread_rows(without, 40)} == {
        source.name for source in sources if len(source.rows)
    }


@pytest.mark.parametrize("selection", [LANES, SOURCES, LICENSES, ONLY], ids=["lane", "source", "license", "only"])
def test_drawn_tokens_are_in_the_shares_that_were_asked_for(snapshot: Snapshot, selection: RowSelection) -> None:
    loader, drawn = tokens_by_value(snapshot, selection)
    asked = dict(selection.shares)
    assert drawn.keys() == asked.keys()
    for value, share in asked.items():
        assert abs(drawn[value] / drawn.total() - share / sum(asked.values())) < 0.001, value
    assert selection.shares_by is not None
    for source in loader.sources:
        value = source.name.partition("/")[2]
        assert all(group.has(selection.shares_by, value) for group in row_groups(source, "a test"))


@pytest.mark.parametrize("selection", [LANES, RowSelection(((Dimension.LICENSE, ("MIT",)),))], ids=["mix", "only"])
def test_a_selection_continues_at_any_position_and_in_no_other_mixture(
    snapshot: Snapshot, selection: RowSelection
) -> None:
    loader = loader_of(snapshot, selection)
    whole = loader.locate(0, 3_000)
    for first in (1, 17, 512, 2_900):
        part = loader_of(snapshot, selection).locate(first, 100)
        assert all(np.array_equal(one[first : first + 100], other) for one, other in zip(whole, part, strict=True))
    all_rows = open_loader(snapshot, CONFIG)
    assert loader.mixture_digest != all_rows.mixture_digest
    batch, again = (each.batch_at(700, 4) for each in (loader, loader_of(snapshot, selection)))
    assert all(np.array_equal(one, other) for one, other in zip(batch.arrays, again.arrays, strict=True))


@pytest.mark.parametrize("selection", [LANES, SOURCES, LICENSES], ids=["lane", "source", "license"])
def test_the_name_of_a_source_caps_and_changes_all_parts_of_it(snapshot: Snapshot, selection: RowSelection) -> None:
    parts = loader_of(snapshot, selection).sources
    change = MixtureChange(at_step=1, weights={"lantern": 0.0, "quarry": 2.0})
    found = CONFIG.model_copy(update={"mixture_changes": (change,), "change_positions": (64,)})
    loader = Loader(parts, open_loader(snapshot, CONFIG).layout, found)
    sources_R, _, _ = loader.locate(64, 2_000)
    read = {loader.sources[number].source for number in sources_R.tolist()}

    assert {part.source for part in parts} >= {"lantern", "quarry"}
    assert "quarry" in read
    assert "lantern" not in read
    names = sorted({part.source for part in parts})
    capped = CONFIG.model_copy(update={"epoch_caps": dict.fromkeys(names, 2.0)})
    assert Loader(parts, loader.layout, capped).end == 2 * sum(len(part.rows) for part in parts)


FACTORS = ({"lantern": 5.0}, {"lantern": 0.0, "quarry": 0.5}, {"lantern": 1.0, "quarry": 1.0}, {"*": 2.0})


def changed_loader(snapshot: Snapshot, selection: RowSelection, stretch: int) -> Loader:
    """Return the loader of a selection, whose mixture has changed by FACTORS after each `stretch` rows."""
    changes = tuple(MixtureChange(at_step=place, weights=each) for place, each in enumerate(FACTORS, 1))
    positions = tuple(place * stretch for place in range(1, len(FACTORS) + 1))
    found = CONFIG.model_copy(update={"mixture_changes": changes, "change_positions": positions})
    parts = loader_of(snapshot, selection).sources
    return Loader(parts, open_loader(snapshot, CONFIG).layout, found)


@pytest.mark.parametrize("selection", [LANES, SOURCES, LICENSES], ids=["lane", "source", "license"])
def test_a_change_beside_shares_is_a_factor_on_the_tokens_that_they_give(
    snapshot: Snapshot, selection: RowSelection
) -> None:
    stretch = NUM_TOKENS // snapshot.row_length
    loader = changed_loader(snapshot, selection, stretch)
    sources_R, _, rows_R = loader.locate(0, 5 * stretch)
    drawn = [Counter[tuple[str, str]]() for _ in range(5)]
    for number, source in enumerate(loader.sources):
        tokens_R = np.where(sources_R == number, source.rows.num_targets()[rows_R % len(source.rows)], 0)
        for counts, tokens in zip(drawn, tokens_R.reshape(5, stretch).sum(axis=1).tolist(), strict=True):
            counts[source.source, source.name.partition("/")[2]] += tokens
    told = shares_by_step(loader)

    assert [each.at_step for each in told] == [0, 1, 2, 3, 4]
    factors = ({}, FACTORS[0], FACTORS[1], {}, {})
    for counts, factor, shares in zip(drawn, factors, told, strict=True):
        wanted = {key: number * factor.get(key[0], 1.0) for key, number in drawn[0].items()}
        for key, number in counts.items():
            assert abs(number / counts.total() - wanted[key] / sum(wanted.values())) < 0.001, (key, factor)
        for value, share in shares.shares.items():
            of_value = sum(number for key, number in counts.items() if key[1] == value)
            assert abs(of_value / counts.total() - share) < 0.001, (value, factor)
    assert [sum(counts[key] for key in counts if key[0] == "lantern") > 0 for counts in drawn] == [1, 1, 0, 1, 1]


def test_a_change_beside_shares_continues_at_any_position_and_is_of_another_digest_than_a_weight_of_rows(
    snapshot: Snapshot,
) -> None:
    whole = changed_loader(snapshot, LANES, 500).locate(0, 3_000)
    for first in (1, 499, 500, 501, 1_700, 2_900):
        part = changed_loader(snapshot, LANES, 500).locate(first, 100)
        assert all(np.array_equal(one[first : first + 100], other) for one, other in zip(whole, part, strict=True))
    changed = changed_loader(snapshot, LANES, 500)
    plain = [replace(source, share_of=None) for source in changed.sources]
    assert Loader(plain, changed.layout, changed.config).mixture_digest != changed.mixture_digest


def test_without_shares_no_shares_are_told(snapshot: Snapshot) -> None:
    assert shares_by_step(open_loader(snapshot, CONFIG)) == []
    (only,) = shares_by_step(loader_of(snapshot, LANES))
    assert only.at_step == 0
    assert only.shares == pytest.approx(dict(LANES.shares), abs=0.001)


def test_rows_that_are_left_keep_their_content(snapshot: Snapshot) -> None:
    (lantern,) = (each for each in with_lanes(sources_of(snapshot)) if each.name == "lantern")
    groups = row_groups(lantern, "a test")
    kept = [row for row, group in enumerate(groups) if group.lane == "syntax_only"]
    (part,) = select_rows([lantern], RowSelection(((Dimension.LANE, ("syntax_only",)),)), "a test")
    assert len(part.rows) == len(kept)
    assert part.rows[len(kept) - 1].input_ids == lantern.rows[kept[-1]].input_ids
    assert part.rows.num_targets().tolist() == lantern.rows.num_targets()[kept].tolist()
    assert len(select_rows([lantern], RowSelection(), "a test")[0].rows) == len(groups)


def test_a_selection_is_its_identity() -> None:
    for selection in (LANES, ONLY, RowSelection()):
        assert RowSelection.of_identity(selection.identity) == selection


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (
            RowSelection((), Dimension.LANE, (("degraded", 1.0),)),
            "no training row is of degraded; expected lane change, syntax_only",
        ),
        (
            RowSelection(((Dimension.SOURCE, ("heron",)),)),
            "no training row is of heron; expected source lantern, loom, odds, quarry",
        ),
        (
            RowSelection(((Dimension.LICENSE, ("AGPL-3.0-only",)),)),
            "no training row is of AGPL-3.0-only; expected license Apache-2.0",
        ),
        (
            RowSelection(((Dimension.LICENSE, ("permisive",)),)),
            "MPL-2.0, permissive, weak_copyleft. Did you mean permissive?",
        ),
        (
            RowSelection((), Dimension.LICENSE, (("MIT", 1.0), ("permissive", 1.0))),
            "rows under MIT are of MIT and of permissive; expected one share a row",
        ),
    ],
)
def test_what_a_snapshot_lacks_is_said_with_what_it_has(
    snapshot: Snapshot, selection: RowSelection, words: str
) -> None:
    with pytest.raises(SnapshotError, match=re.escape(words)):
        select_rows(sources_of(snapshot, Split.TRAIN), selection, "snapshot abc")


def test_rows_of_an_earlier_version_have_no_lanes(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.data.mapped_rows.ROW_GROUP", ("provenance", "no_such_column"))
    with pytest.raises(SnapshotError, match="its rows have no lane and license; expected both"):
        select_rows(sources_of(snapshot), LANES, "snapshot abc")


def test_a_weight_that_is_exact_stays_so(snapshot: Snapshot) -> None:
    weights = [source.weight for source in loader_of(snapshot, LANES).sources]
    assert all(isinstance(weight, Fraction) for weight in weights)
