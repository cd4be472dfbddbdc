"""Rows from a bucket: how soon the first batch comes, how fast the second epoch is read, and whether the cache keeps its bound."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from pipeline.store.store import Store
from pipeline.store.store_layout import store_folder
from tests.benchmarks.figure import Figure
from tests.benchmarks.trainer.reading import BATCH_ROWS, LAYOUT, NUM_ROWS, ROW_LENGTH, write_rows
from tests.pipeline.storage.s3_server import CREDENTIALS, faulty_proxy, make_bucket, s3_server
from trainer.checkpoint.certificate import digest_batch
from trainer.config.choices import EpochOrder
from trainer.data.loader import Loader, LoaderConfig, Source
from trainer.data.mapped_rows import TrainingRows
from trainer.data.streaming.fetch_ahead import fetching_ahead
from trainer.data.streaming.streamed_rows import RowFile, StreamedRows

NUM_FILES = 16
ABSENT = "obstore or moto: not installed: make cluster-tests"


@contextmanager
def made_bucket() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of an empty store in a bucket of a server here, and the requests that it gets, as they come."""
    seen: list[str] = []

    def note(number: int, method: str, path: str) -> str:
        seen.append(f"{method} {path}")
        return ""

    with s3_server() as endpoint, faulty_proxy(endpoint, note) as proxy, patch.dict(os.environ, CREDENTIALS):
        make_bucket(endpoint, "sluice")
        yield f"s3://sluice/measured?endpoint={proxy}", seen


def can_be_measured() -> bool:
    """Return whether the client and the server are installed."""
    return all(map(find_spec, ("obstore", "moto")))


def cold_read() -> list[Figure]:
    """Two epochs of 4,096 rows of 2,048 slots in 16 files, from a bucket through an empty cache, beside the same rows here."""
    if not can_be_measured():
        return [Figure("cold-read", None, "M tokens/s", ">= 5 M tokens/s", None, ABSENT)]
    with tempfile.TemporaryDirectory() as folder, made_bucket() as (address, seen):
        caches = [Path(folder) / name for name in ("writer", "reader", "bounded")]
        with patch.dict(os.environ, {"SLUICE_CACHE": str(caches[0])}):
            rows_id, here = _put_rows(Store(store_folder(address)), Path(folder))
        seen.clear()
        cold, warm, is_exact = _read_twice(address, caches[1], rows_id, here)
        num_requests = len(seen)
        most, bound = _read_bounded(address, caches[2], rows_id)
    return [
        Figure("cold-read", round(warm / 1e6, 1), "M tokens/s, second epoch", ">= 5 M tokens/s", warm >= 5e6),
        Figure("cold-read/first-batch", round(cold, 2), "s, empty cache", "reported", True),
        Figure("cold-read/exact", int(not is_exact), "runs of two epochs with other batches", "0", is_exact),
        Figure("cold-read/requests", num_requests, f"requests for {NUM_FILES} files", "reported", True),
        Figure("cold-read/cache", round(most / bound, 2), "of the bound, in the order stored", "<= 1", most <= bound),
    ]


def _put_rows(store: Store, folder: Path) -> tuple[str, list[Path]]:
    """Put rows into a store in files of equal size, and copies of them beside it."""
    here = []
    with store.writer("made", "a benchmark") as scratch:
        rows = scratch / "rows"
        rows.mkdir()
        for number in range(NUM_FILES):
            path = folder / f"rows_train-{number:04}.arrow"
            write_rows(path, NUM_ROWS // NUM_FILES)
            here.append(path)
            shutil.copyfile(path, rows / path.name)
        return store.commit(rows, "tokenize/part", {"made": True}, {}), here


def _loader(rows: TrainingRows, order: EpochOrder = EpochOrder.PERMUTED) -> Loader:
    return Loader([Source("made", rows)], LAYOUT, LoaderConfig(seed=1, epoch_order=order))


def _streamed(address: str, rows_id: str) -> tuple[Store, StreamedRows]:
    store = Store(store_folder(address))
    files = [
        RowFile(each.path, entry.name, entry.num_rows or 0, entry.num_bytes)
        for each, entry in store.read(rows_id).entries("rows_train.arrow")
    ]
    return store, StreamedRows(files)


def _read_twice(address: str, cache: Path, rows_id: str, here: list[Path]) -> tuple[float, float, bool]:
    """Return the seconds until the first batch, the tokens a second of the second epoch, and whether all batches are equal."""
    whole = _loader(TrainingRows.open(here))
    with patch.dict(os.environ, {"SLUICE_CACHE": str(cache)}):
        started = time.perf_counter()
        store, rows = _streamed(address, rows_id)
        streamed = _loader(rows)
        with store.in_use(), fetching_ahead(streamed, 0, store.storage.max_cache_bytes) as ahead:
            assert ahead is not None
            ahead.prepare(0, BATCH_ROWS)
            digests = [digest_batch(streamed.batch_at(0, BATCH_ROWS))]
            cold = time.perf_counter() - started
            for position in range(BATCH_ROWS, NUM_ROWS, BATCH_ROWS):
                ahead.prepare(position, BATCH_ROWS)
                digests.append(digest_batch(streamed.batch_at(position, BATCH_ROWS)))
            spent = 0.0
            for position in range(NUM_ROWS, 2 * NUM_ROWS, BATCH_ROWS):
                ahead.prepare(position, BATCH_ROWS)
                before = time.process_time()
                batch = streamed.batch_at(position, BATCH_ROWS)
                spent += time.process_time() - before
                digests.append(digest_batch(batch))
    expected = [digest_batch(whole.batch_at(place, BATCH_ROWS)) for place in range(0, 2 * NUM_ROWS, BATCH_ROWS)]
    return cold, NUM_ROWS * ROW_LENGTH / spent, digests == expected


def _read_bounded(address: str, cache: Path, rows_id: str) -> tuple[int, int]:
    """Read an epoch in the order stored through a cache of a quarter of the rows; return the most bytes in it, and its bound."""
    with patch.dict(os.environ, {"SLUICE_CACHE": str(cache)}):
        store, rows = _streamed(address, rows_id)
        bound, most = sum(file.num_bytes for file in rows.files) // 4, 0
        streamed = _loader(rows, EpochOrder.PUBLISHED)
        with store.in_use(), fetching_ahead(streamed, 0, bound) as ahead:
            assert ahead is not None
            for position in range(0, NUM_ROWS, BATCH_ROWS):
                ahead.prepare(position, BATCH_ROWS)
                streamed.batch_at(position, BATCH_ROWS)
                most = max(most, sum(file.path.stat().st_size for file in rows.files if file.path.is_file()))
    return most, bound
