"""One global order, however it is divided: ranks, workers and micro-batches; a resume may change all of them and the batch."""

import json
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import TrainingError
from tests.support.made.made_rows import CONFIG, LAYOUT, sources_of
from trainer.data.loader import Loader
from trainer.data.prefetch import Batches
from trainer.distributed.ranks import Ranks
from trainer.train.step import to_device

LOADER = Loader(sources_of(heron=23, lantern=9, quarry=700), LAYOUT, CONFIG)
WORLDS, MICRO_ROWS = (1, 2, 3, 8), (1, 2, 5)

Session = tuple[int, int, int, int]
"""Ranks, rows of a micro-batch, micro-batches of a rank, and steps."""
SESSIONS = st.lists(
    st.tuples(st.sampled_from(WORLDS), st.sampled_from(MICRO_ROWS), st.sampled_from([1, 2, 4]), st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


def rows_of(batches: Batches, session: Session) -> Iterator[np.ndarray]:
    """Yield the rows of the ranks, micro-batch by micro-batch, in the order of their tree."""
    world, rows, num_shares, num_steps = session
    for batch in islice(batches, num_steps):
        for rank in range(world):
            for place in Ranks(rank, world).share_of(world * num_shares):
                yield to_device(batch, "cpu", slice(place * rows, (place + 1) * rows)).input_ids_BT.numpy()


def read(sessions: list[Session], num_workers: int, start: int) -> np.ndarray:
    state, found = json.dumps(LOADER.state_at(start)), []
    for session in sessions:
        world, rows, num_shares, _ = session
        batches = Batches(LOADER, world * rows * num_shares, num_workers)
        batches.load_state_dict(json.loads(state))
        found += list(rows_of(batches, session))
        state = json.dumps(batches.state_dict())
    return np.concatenate(found)


@given(SESSIONS, st.integers(0, 3000))
@settings(max_examples=60)
def test_any_ranks_and_micro_batches_read_one_order_and_a_resume_may_change_them(
    sessions: list[Session], start: int
) -> None:
    found = read(sessions, 0, start)
    assert np.array_equal(found, LOADER.batch_at(start, len(found)).input_ids_BT)


@pytest.mark.parametrize(("world", "num_workers"), [(3, 1), (8, 4)])
def test_so_they_do_with_workers(world: int, num_workers: int) -> None:
    found = read([(world, 2, 1, 2)], num_workers, 500)
    assert np.array_equal(found, LOADER.batch_at(500, len(found)).input_ids_BT)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"version": 2}, "its version is 2; expected 1"), ({"seed": 6}, "seed"), ({"mixture": "0" * 64}, "mixture")],
)
def test_a_state_of_another_version_seed_or_mixture_is_refused_by_name(
    changed: dict[str, int | str], message: str
) -> None:
    with pytest.raises(TrainingError, match=message):
        Batches(LOADER, 4).load_state_dict(LOADER.state_at(8) | changed)
