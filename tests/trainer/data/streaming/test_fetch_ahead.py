"""Fetching ahead keeps within the bound of a cache, brings files in the order of their rows, and changes no batch."""

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.errors import StoreError
from pipeline.store.store import Store
from tests.pipeline.storage.conftest import bucket_address, machine, s3_endpoint
from tests.support.made.made_rows import CONFIG, LAYOUT, rows_of
from tests.support.made.made_snapshot import commit_made
from tests.trainer.data.streaming.test_streamed_rows import files_of
from trainer.__main__ import main
from trainer.checkpoint.certificate import digest_batch
from trainer.config.choices import EpochOrder
from trainer.data.loader import Loader, LoaderConfig, Source
from trainer.data.mapped_rows import TrainingRows
from trainer.data.streaming.fetch_ahead import FetchAhead, fetching_ahead
from trainer.data.streaming.streamed_rows import RowFile, StreamedRows

__all__ = ["bucket_address", "machine", "s3_endpoint"]
NUM_FILES, ROWS_OF_FILE, BATCH_ROWS = 8, 6, 2
SAME = ("certificate", "checkpoint_id", "losses")


class Elsewhere:
    """Files of rows that are fetched from another folder, and what was here at once."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        table = rows_of(NUM_FILES * ROWS_OF_FILE, 100)
        self.whole = TrainingRows(table)
        self.files = files_of(store, *(table.slice(number * ROWS_OF_FILE, ROWS_OF_FILE) for number in range(NUM_FILES)))
        self.remote = shutil.copytree(self.files[0].folder, store.root.with_name("elsewhere"))
        self.fetched: list[str] = []
        self.most_bytes, self._guard, bring = 0, threading.Lock(), RowFile.bring
        self.seconds_of_fetch = 0.0

        def fetch(file: RowFile) -> Path:
            if threading.current_thread() is not threading.main_thread():
                time.sleep(self.seconds_of_fetch)
            with self._guard:
                if not file.path.exists():
                    self.fetched.append(file.name)
                    shutil.copyfile(self.remote / file.name, file.path)
                here = sum(each.num_bytes for each in self.files if each.path.exists())
                self.most_bytes = max(self.most_bytes, here)
                return bring(file)

        monkeypatch.setattr(RowFile, "bring", fetch)
        monkeypatch.setattr(StreamedRows, "block_rows", BATCH_ROWS)
        for each in self.files:
            each.path.unlink()

    def loader(self, order: EpochOrder = EpochOrder.PERMUTED) -> Loader:
        config = LoaderConfig(seed=CONFIG.seed, epoch_order=order)
        return Loader([Source("a", StreamedRows(self.files))], LAYOUT, config)

    def wait_for(self, number: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.fetched) < number:
            assert time.monotonic() < deadline, f"{self.fetched} were fetched"
            time.sleep(0.001)


@pytest.fixture
def elsewhere(store: Store, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(store, monkeypatch)


@pytest.mark.parametrize("order", EpochOrder)
@pytest.mark.parametrize("seconds_of_fetch", [0.0, 0.002], ids=["at once", "slow"])
def test_batches_are_the_same_and_the_cache_stays_within_its_bound(
    elsewhere: Elsewhere, order: EpochOrder, seconds_of_fetch: float
) -> None:
    elsewhere.seconds_of_fetch = seconds_of_fetch  # what the reader has brought itself may go while it is on its way
    loader = elsewhere.loader(order)
    whole = Loader([Source("a", elsewhere.whole)], LAYOUT, loader.config)
    size = max(file.num_bytes for file in elsewhere.files)
    with fetching_ahead(loader, 0, 4 * size) as ahead:
        assert ahead is not None
        for position in range(0, 3 * NUM_FILES * ROWS_OF_FILE, BATCH_ROWS):
            ahead.prepare(position, BATCH_ROWS)
            batch = loader.batch_at(position, BATCH_ROWS)
            assert digest_batch(batch) == digest_batch(whole.batch_at(position, BATCH_ROWS))

    assert elsewhere.most_bytes <= 4 * size
    if order is EpochOrder.PUBLISHED:  # as the rows are stored, but for those that are on the way at once
        first = [elsewhere.fetched.index(file.name) for file in elsewhere.files]
        assert all(abs(place - number) < 4 for number, place in enumerate(first)), elsewhere.fetched


def test_rows_that_need_more_files_at_once_than_there_is_room_for_are_read_all_the_same(elsewhere: Elsewhere) -> None:
    loader = elsewhere.loader()
    whole = Loader([Source("a", elsewhere.whole)], LAYOUT, CONFIG)
    with fetching_ahead(loader, 0, max(file.num_bytes for file in elsewhere.files)) as ahead:
        assert ahead is not None
        for position in range(0, 64, 16):
            ahead.prepare(position, 16)
            assert digest_batch(loader.batch_at(position, 16)) == digest_batch(whole.batch_at(position, 16))


def test_files_come_before_their_rows_are_asked_for_in_the_order_of_need_as_far_as_there_is_room(
    elsewhere: Elsewhere,
) -> None:
    ahead = FetchAhead(elsewhere.loader(EpochOrder.PUBLISHED), 0, 3 * max(each.num_bytes for each in elsewhere.files))
    ahead.start()
    elsewhere.wait_for(3)
    time.sleep(0.05)
    found = sorted(elsewhere.fetched)
    ahead.prepare(ROWS_OF_FILE, BATCH_ROWS)  # the first file is read
    elsewhere.wait_for(4)
    ahead.end()

    assert found == [file.name for file in elsewhere.files[:3]]
    assert elsewhere.fetched[3] == elsewhere.files[3].name
    assert not elsewhere.files[0].path.exists()
    assert "the first batch came after 1.5 s, when 3 of 8 files of rows (" in ahead.sentence(1.5)


def test_a_cache_that_holds_all_is_filled_once_and_the_fetching_ends(elsewhere: Elsewhere) -> None:
    ahead = FetchAhead(elsewhere.loader(), 4, 10**9)
    ahead.start()
    elsewhere.wait_for(NUM_FILES)
    ahead._thread.join(30)
    ahead.end()

    assert sorted(elsewhere.fetched) == [file.name for file in elsewhere.files]
    assert all(file.path.exists() for file in elsewhere.files)


def test_a_file_beyond_the_bound_is_refused(elsewhere: Elsewhere) -> None:
    with pytest.raises(StoreError, match=r"expected at most 100, the bound of the cache.*SLUICE_CACHE_BYTES"):
        FetchAhead(elsewhere.loader(), 0, 100)


def test_rows_of_a_folder_need_no_fetching(elsewhere: Elsewhere) -> None:
    loader = Loader([Source("a", elsewhere.whole)], LAYOUT, CONFIG)

    with fetching_ahead(loader, 0, None) as ahead:
        assert ahead is None


@pytest.mark.slow  # four trainings and a server
def test_a_training_on_a_bucket_is_that_on_a_folder_and_says_how_long_it_waited(
    machine: Callable[[str], Store],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    commit_made(store, num_files=NUM_FILES)
    bucket = machine("writer")
    snapshot_id = commit_made(bucket, num_files=NUM_FILES)

    def trained(address: str, run: str, *more: str) -> tuple[dict[str, object], str]:
        line = ["train", "--store", address, "--snapshot", snapshot_id, "--device", "cpu", "--json", "--run", run]
        line += ["--out", str(tmp_path / run), "--stop-after", "6", "--save-every", "3", *more]
        assert main(line) == 0
        said = capsys.readouterr()
        return json.loads(said.out), said.err

    alone, quiet = trained(str(store.root), "alone")
    cold = machine("reader")
    first, said = trained(cold.storage.address, "first")
    again, _ = trained(cold.storage.address, "again", "--workers", "2")
    size = sum(path.stat().st_size for path in cold.root.glob("objects/tokenize/*/*/rows_train-*"))
    monkeypatch.setattr(StreamedRows, "block_rows", 2)
    bounded = machine("small")
    monkeypatch.setenv("SLUICE_CACHE_BYTES", str(size // 2))
    small, _ = trained(bounded.storage.address, "small")

    for each in (first, again, small):
        assert {name: each[name] for name in SAME} == {name: alone[name] for name in SAME}
    assert "the first batch came after" in said
    assert f"of {NUM_FILES} files of rows" in said
    assert "the first batch" not in quiet
    left = sum(path.stat().st_size for path in bounded.root.glob("objects/tokenize/*/*/rows_train-*"))
    assert left <= size // 2
