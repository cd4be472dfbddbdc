"""FetchAhead: files of rows of a store in a bucket, fetched before their rows are read, into a cache that stays within its bound.

The order of rows is known, and so is when each file is needed next. Files are fetched in that order. Where the bound is reached,
the file goes that is needed last; where all are needed before the next one, that waits for the training to come on. No batch
depends on any of it: a row whose file is not here is waited for.
"""

import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import inf

import numpy as np

from pipeline.core.durable import remove
from pipeline.core.errors import SluiceError, StoreError
from trainer.data.loader import Loader
from trainer.data.streaming.streamed_rows import RowFile, StreamedRows

_NUM_THREADS = 16


class FetchAhead:
    """The files that a loader needs from a position on, fetched by threads of their own from `start` to `end`."""

    def __init__(self, loader: Loader, position: int, max_bytes: int) -> None:
        """Find the files of the loader. Raises StoreError for one that is larger than the bound of the cache."""
        self._loader = loader
        self._position, self._end = position, position
        self._num_seen: float = -inf
        self._max_bytes = max_bytes
        self.files = sorted({file for rows in _streamed(loader).values() for file in rows.files})
        if largest := [file for file in self.files if file.num_bytes > max_bytes]:
            found, remedy = f"it has {largest[0].num_bytes:,} bytes", "Set SLUICE_CACHE_BYTES to more."
            raise StoreError(f"file {largest[0].path}", found, f"at most {max_bytes:,}, the bound of the cache", remedy)
        self._uses: dict[RowFile, deque[int]] = {file: deque() for file in self.files}
        self._kept = {file for file in self.files if file.path.is_file()}
        self._fetches: dict[RowFile, Future[None]] = {}
        self._changed = threading.Condition()
        self._has_ended = False
        self._pool = ThreadPoolExecutor(_NUM_THREADS, "fetch")
        self._free = threading.Semaphore(_NUM_THREADS)
        self._thread = threading.Thread(target=self._run, name="fetch-ahead", daemon=True)

    def start(self) -> None:
        """Start to fetch."""
        self._thread.start()

    def prepare(self, position: int, num_rows: int) -> None:
        """Wait until the files of some rows, which are read next, have room and are on their way. Those of rows before may go."""
        with self._changed:
            self._position, self._end = position, position + num_rows
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._num_seen >= self._end)

    def end(self) -> None:
        """End the threads; what is being fetched arrives."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def sentence(self, seconds: float) -> str:
        """Return in words how long the first batch took, and what was here then."""
        here = [file for file in self.files if file.path.is_file()]
        num_bytes, total = (sum(file.num_bytes for file in files) / 1e6 for files in (here, self.files))
        files = f"{len(here)} of {len(self.files)} files of rows ({num_bytes:,.1f} of {total:,.1f} MB)"
        return f"the first batch came after {seconds:.1f} s, when {files} were here"

    def _run(self) -> None:
        try:
            self._fetch_all()
        finally:
            self._see(inf)

    def _see(self, position: float) -> None:
        """Record that the files of all rows before a position have room."""
        with self._changed:
            self._num_seen = position
            self._changed.notify_all()

    def _fetch_all(self) -> None:
        is_bounded = sum(file.num_bytes for file in self.files) > self._max_bytes
        for position, file in self._needs():
            if position > self._num_seen:
                self._see(position)
            self._uses[file].append(position)
            if not self._make_room(file, position):
                return
            if file not in self._fetches:
                self._free.acquire()
                self._fetches[file] = self._pool.submit(_bring, file)
                self._fetches[file].add_done_callback(self._has_arrived)
            if not is_bounded and all(self._uses.values()):
                return  # all are here, or on the way, and none has to go

    def _needs(self) -> Iterator[tuple[int, RowFile]]:
        """Yield the files of each block of rows that the loader reads at once, with the block's first position."""
        start, num_rows = self._loader.start.position, self._loader.block_rows
        streamed = _streamed(self._loader)
        position = self._position - (self._position - start) % num_rows
        while True:
            sources_R, _, rows_R = self._loader.locate(position, num_rows)
            for source in np.unique(sources_R).tolist():
                if source in streamed:
                    for file in streamed[source].files_of(rows_R[sources_R == source]):
                        yield position, file
            position += num_rows

    def _make_room(self, file: RowFile, position: int) -> bool:
        """Wait until the cache has room for a file that is needed at a position; False where the fetching has ended."""
        with self._changed:
            while not self._has_ended:
                others = self._kept - {file}
                if sum(each.num_bytes for each in others) + file.num_bytes <= self._max_bytes:
                    self._kept.add(file)
                    return True
                last = max(sorted(others), key=self._next_use)
                if self._next_use(last) > position:
                    fetch = self._fetches.get(last)
                    if fetch and not (fetch.cancel() or fetch.done()):
                        self._changed.wait()  # removed before it arrives, it would come to what has its room
                        continue
                    self._kept.discard(last)
                    self._fetches.pop(last, None)
                    remove(last.path)
                elif position < self._end:  # rows that are read at once need more than the bound
                    self._kept.add(file)
                    return True
                else:
                    self._changed.wait()
        return False

    def _next_use(self, file: RowFile) -> float:
        uses = self._uses[file]
        while uses and uses[0] + self._loader.block_rows <= self._position:
            uses.popleft()
        return uses[0] if uses else inf

    def _has_arrived(self, fetch: "Future[None]") -> None:
        self._free.release()
        with self._changed:
            self._changed.notify_all()


def _bring(file: RowFile) -> None:
    with suppress(SluiceError, OSError):  # the reader of a row of it has the error
        file.bring()


@contextmanager
def fetching_ahead(loader: Loader, position: int, max_bytes: int | None) -> Iterator[FetchAhead | None]:
    """Fetch ahead what a loader reads from a position on; None where its rows are in a folder, or another rank here does it."""
    if max_bytes is None or not _streamed(loader) or os.environ.get("LOCAL_RANK", "0") != "0":
        yield None
        return
    ahead = FetchAhead(loader, position, max_bytes)
    ahead.start()
    try:
        yield ahead
    finally:
        ahead.end()


def _streamed(loader: Loader) -> dict[int, StreamedRows]:
    """Return the rows that are fetched, by the index of their source."""
    return {place: each.rows for place, each in enumerate(loader.sources) if isinstance(each.rows, StreamedRows)}
