"""Batches carry more than ids: structure that follows its tokens, and commits in the order of their files."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import SnapshotError, TrainingError
from tests.support.made.made_rows import CONFIG, FIRST_TEXT, LAYOUT, place_at, rows_of, sources_of
from trainer.data.batch import check_chronology, chronological
from trainer.data.loader import Loader, Source, held_out_batches
from trainer.data.mapped_rows import TrainingRows


def test_structure_follows_its_tokens_through_infilling_and_sentinels_have_none() -> None:
    sources = sources_of(with_structure=True, heron=23, quarry=40)
    loader = Loader(sources, LAYOUT, CONFIG, with_structure=True)
    without = Loader(sources, LAYOUT, CONFIG)
    num_infilled = 0
    for position in range(0, 63 * 4, 7):
        batch = loader.batch_at(position, 7)
        assert np.array_equal(batch.input_ids_BT, without.batch_at(position, 7).input_ids_BT)
        is_text = batch.input_ids_BT >= FIRST_TEXT
        for found, modulus in ((batch.structure_kind_BT, 200), (batch.dependency_level_BT, 7)):
            assert found is not None
            assert np.array_equal(found, np.where(is_text, 1 + batch.input_ids_BT % modulus, 0))
        num_infilled += sum("m:" in origin.infilling for origin in batch.row_origins)
    assert num_infilled > 50
    assert without.batch_at(0, 1).structure_kind_BT is None
    (held_out,) = held_out_batches(sources[:1], LAYOUT, 50, with_structure=True)
    assert held_out.structure_kind_BT is not None


def test_absent_structure_is_zero_with_a_warning_that_names_the_column() -> None:
    loader = Loader(sources_of(heron=5), LAYOUT, CONFIG, with_structure=True)
    with pytest.warns(UserWarning, match="column structure_kinds is absent"):
        batch = loader.batch_at(0, 2)
    assert batch.structure_kind_BT is not None
    assert not batch.structure_kind_BT.any()


def dated(table: pa.Table, files: list[int | None], commits: list[int | None]) -> TrainingRows:
    for name, values in (("file_identity", files), ("first_commit_index", commits)):
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))
    return TrainingRows(table)


HISTORY = [(9, 2), (None, None), (4, 7), (9, 0), (4, 6), (None, None), (9, 1), (4, 8)]


@pytest.fixture
def loader() -> Loader:
    files, commits = zip(*HISTORY, strict=True)
    rows = dated(rows_of(8, 20_000), list(files), list(commits))
    return Loader([Source("chains", rows), *sources_of(plain=6)], LAYOUT, CONFIG)


def test_the_global_batch_is_sorted_by_file_and_commit_and_other_rows_keep_their_places(loader: Loader) -> None:
    samples = [place_at(loader, position) for position in range(14)]
    batch = loader.batch_at(0, 14)
    found = [HISTORY[origin.row] if origin.source == "chains" else (None, None) for origin in batch.row_origins]
    before = [HISTORY[sample.row] if sample.source == 0 else (None, None) for sample in samples]
    assert [row for row in found if row[0]] == [(4, 6), (4, 7), (4, 8), (9, 0), (9, 1), (9, 2)]
    assert [bool(row[0]) for row in found] == [bool(row[0]) for row in before]
    kept = [place for place, row in enumerate(before) if row[0] is None]
    assert [(batch.row_origins[place].source, batch.row_origins[place].row) for place in kept] == [
        (loader.sources[samples[place].source].name, samples[place].row) for place in kept
    ]
    plain = {
        origin: loader.batch_at(place, 1) for place in range(14) for origin in loader.batch_at(place, 1).row_origins
    }
    for place, origin in enumerate(batch.row_origins):
        assert np.array_equal(batch.input_ids_BT[place], plain[origin].input_ids_BT[0])
        assert np.array_equal(batch.loss_mask_BT[place], plain[origin].loss_mask_BT[0])
    check_chronology(batch)


def test_a_batch_put_together_out_of_order_is_refused(loader: Loader) -> None:
    batch = loader.batch_at(0, 14)
    with pytest.raises(TrainingError, match=r"global batch at position 0: commit .* comes after"):
        check_chronology(replace(batch, origins=batch.origins.in_order(np.arange(14)[::-1])))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 5)), max_size=20))
def test_the_order_is_stable_and_leaves_places_without_chronology(rows: list[tuple[int, int]]) -> None:
    files, commits = (
        np.array([row[place] for row in rows], dtype=kind) for place, kind in ((0, np.uint64), (1, np.int64))
    )
    order = chronological(files, commits).tolist()
    places = [place for place, row in enumerate(rows) if row[1] >= 0]
    expected = list(range(len(rows)))
    for place, source in zip(places, sorted(places, key=lambda place: rows[place]), strict=True):
        expected[place] = source
    assert order == expected


@given(st.integers(1, 3), st.integers(0, 200), st.randoms(use_true_random=False))
def test_any_division_into_batches_gives_the_same_rows(world: int, start: int, random_: random.Random) -> None:
    loader = Loader(sources_of(heron=23, lantern=9, quarry=700), LAYOUT, CONFIG)
    rows = loader.batch_at(start, 24 * world).row_origins
    place, parts = start, []
    while place < start + 24 * world:
        size = min(random_.randint(1, 30), start + 24 * world - place)
        parts += loader.batch_at(place, size).row_origins
        place += size
    assert tuple(parts) == rows


def test_rows_written_by_the_first_version_load() -> None:
    """`rows-1.arrow` was written before structure and chronology were columns."""
    old = TrainingRows.open([Path(__file__).parent / "rows-1.arrow"])
    assert len(old) == 3
    loader = Loader([Source("old", old), *sources_of(new=3)], LAYOUT, CONFIG)
    whole = Loader([Source("old", TrainingRows(rows_of(3, 100))), *sources_of(new=3)], LAYOUT, CONFIG)
    assert np.array_equal(loader.batch_at(0, 12).input_ids_BT, whole.batch_at(0, 12).input_ids_BT)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows_train.arrow"
    with pa.ipc.new_file(str(path), rows_of(1, 9).schema) as writer:
        writer.write_table(rows_of(9, 100))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SnapshotError, match=r"rows_train\.arrow"):
        TrainingRows.open([path])
