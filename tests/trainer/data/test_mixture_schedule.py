"""Mixtures that change at a position, and sources that leave at their cap: no sample is read twice or left out."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import SnapshotError
from tests.support.made.made_rows import CONFIG, LAYOUT, place_at, sources_of
from trainer.config.training_config import MixtureChange
from trainer.data.loader import Loader
from trainer.data.mixture_schedule import MixtureSchedule, Reweighting, WeightedRows

NAMES = ("heron", "lantern", "quarry")
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 3.0])
SOURCES = st.lists(st.tuples(st.integers(1, 9), st.one_of(st.none(), st.integers(1, 30))), min_size=1, max_size=3)
CHANGES = st.lists(st.tuples(st.integers(0, 60), st.dictionaries(st.integers(0, 2), WEIGHTS, min_size=1)), max_size=3)


def schedule_of(sources: list[tuple[int, int | None]], changes: list[tuple[int, dict[int, float]]]) -> MixtureSchedule:
    rows = [WeightedRows(NAMES[place], size, 1.0, most) for place, (size, most) in enumerate(sources)]
    known = [
        Reweighting(at, {place: weight for place, weight in weights.items() if place < len(rows)})
        for at, weights in sorted(changes, key=lambda change: change[0])
    ]
    return MixtureSchedule(rows, known)


@given(SOURCES, CHANGES)
@settings(max_examples=120)
def test_each_source_counts_on_over_every_change_up_to_its_cap(sources: list, changes: list) -> None:
    schedule = schedule_of(sources, changes)
    last = 90 if schedule.end is None else min(90, schedule.end)
    places, numbers = schedule.draw(0, max(1, last))
    for place, (_, most) in enumerate(sources):
        mine = numbers[:last][places[:last] == place]
        assert mine.tolist() == list(range(len(mine)))
        assert most is None or len(mine) <= most
        assert schedule.count_before(last)[place] == len(mine)
    for first, length in ((0, 1), (last // 3, 7), (last // 2, 30)):
        again, its_numbers = schedule.draw(first, length)
        upto = max(0, min(length, last - first))
        assert again[:upto].tolist() == places[first : first + upto].tolist()
        assert its_numbers[:upto].tolist() == numbers[first : first + upto].tolist()


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30)), min_size=1, max_size=3))
@settings(max_examples=40)
def test_a_run_ends_when_every_cap_is_reached(sources: list[tuple[int, int]]) -> None:
    schedule = schedule_of([*sources], [])

    assert schedule.end == sum(most for _, most in sources)
    assert schedule.count_before(schedule.end).tolist() == [most for _, most in sources]


def test_shares_between_changes_are_those_that_are_declared() -> None:
    """Each stretch is judged by its own weights times rows: less than one sample from each source's share."""
    changes = [(40, {0: 3.0}), (100, {0: 0.0, 2: 0.5})]
    schedule = schedule_of([(10, None), (20, None), (10, None)], changes)
    shares = {(0, 40): (10, 20, 10), (40, 100): (30, 20, 10), (100, 400): (0, 20, 5)}
    for (first, last), amounts in shares.items():
        drawn = np.bincount(schedule.draw(first, last - first)[0], minlength=3)
        wanted = np.array(amounts) * (last - first) / sum(amounts)
        assert (np.abs(drawn - wanted) < 1).all(), (first, last)
    assert schedule.end is None


def test_what_a_spent_source_had_is_shared_by_the_others_in_proportion() -> None:
    schedule = schedule_of([(10, 5), (20, None), (10, None)], [])
    places, _ = schedule.draw(0, 1000)
    gone = int(np.flatnonzero(places == 0)[-1]) + 1

    assert Counter(places.tolist())[0] == 5
    drawn = np.bincount(places[gone:], minlength=3)
    assert (np.abs(drawn - np.array([0, 2, 1]) * (1000 - gone) / 3) < 1).all()


def test_a_loader_reads_each_row_once_an_epoch_through_changes_and_caps() -> None:
    config = CONFIG.model_copy(
        update={
            "mixture_changes": (MixtureChange(at_step=3, weights={"heron": 4.0}),),
            "change_positions": (12,),
            "epoch_caps": {"lantern": 2, "heron": 1.5},
        }
    )
    loader = Loader(sources_of(heron=8, lantern=6), LAYOUT, config)
    seen = [place_at(loader, position) for position in range(loader.end or 0)]

    assert loader.end == 12 + 12
    assert Counter((each.source, each.epoch) for each in seen) == {(0, 1): 8, (0, 2): 4, (1, 1): 6, (1, 2): 6}
    assert len({(each.source, each.epoch, each.row) for each in seen}) == loader.end
    assert loader.batch_at(20, 8).next_position == 28, "read ahead of the end, and never trained on"


def test_what_is_declared_is_in_the_digest_and_where_it_falls_is_not() -> None:
    change = MixtureChange(at_step=3, weights={"heron": 4.0})
    variants = [
        {},
        {"mixture_changes": (change,), "change_positions": (12,)},
        {"mixture_changes": (change,), "change_positions": (24,)},
        {"mixture_changes": (change.model_copy(update={"at_step": 4}),), "change_positions": (12,)},
        {"epoch_caps": {"heron": 2}},
    ]
    loaders = [Loader(sources_of(heron=8, lantern=6), LAYOUT, CONFIG.model_copy(update=each)) for each in variants]
    digests = [loader.mixture_digest for loader in loaders]

    assert digests[1] == digests[2]
    assert len(set(digests)) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch_caps": {"hern": 1}}, r"epoch_caps: no source is named 'hern'.*Did you mean heron\?"),
        ({"epoch_caps": {"x*": 1}}, "The sources with training rows are heron, lantern"),
        ({"epoch_caps": {"heron": 1, "*": 2}}, r"'\*' and 'heron' both match source heron"),
        (
            {"mixture_changes": (MixtureChange(at_step=7, weights={"zlib": 1}),), "change_positions": (28,)},
            "the mixture from step 7 on: no source is named 'zlib'",
        ),
    ],
)
def test_names_that_no_source_has_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        Loader(sources_of(heron=8, lantern=6), LAYOUT, CONFIG.model_copy(update=changes))


def test_a_change_that_is_declared_for_after_the_end_is_refused() -> None:
    first, later = MixtureChange(at_step=0, weights={"lantern": 0}), MixtureChange(at_step=9, weights={"lantern": 1})
    declared = {"mixture_changes": (first, later), "epoch_caps": {"heron": 1}}
    with pytest.raises(
        SnapshotError, match="the mixture from step 9 on: all sources that have a weight until then have reached"
    ):
        Loader(
            sources_of(heron=8, lantern=6), LAYOUT, CONFIG.model_copy(update=declared | {"change_positions": (0, 36)})
        )
    reached = Loader(
        sources_of(heron=8, lantern=6), LAYOUT, CONFIG.model_copy(update=declared | {"change_positions": (0, 4)})
    )
    assert reached.end is None
