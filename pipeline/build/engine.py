"""Make parts side by side: a pure function over shards, in this process or in a pool. The bytes are the same either way.

The pool is made by `forkserver`, never `fork`: a forked worker would inherit locks and threads. Workers die with their parent.
This is the seam where a cluster would come in: it must offer `run(orders)` and nothing else.
"""

import importlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from pathlib import Path
from types import TracebackType

from pipeline.contracts.part import Part, PartJob, PartOutput
from pipeline.contracts.report import StageReport
from pipeline.core.durable import sync_file, write_synced
from pipeline.core.errors import SourceError, StageError
from pipeline.core.params import canonical_json
from pipeline.formats.tables import write_table
from pipeline.store.objects import REPORT
from pipeline.store.store import Store

DEADLINE_SECONDS = 3_600.0


@dataclass(frozen=True)
class Order:
    """A part to be made: where its inputs are read and into which empty folder its files are written."""

    part: Part
    function: str
    """The part function as `package.module:function`: workers import it, and no identity holds it."""
    store_root: Path
    folder: Path


Result = StageReport | SourceError


def make_part(order: Order) -> Result:
    """Run one part function and write its files into the order's folder. A SourceError is a result: other sources go on."""
    part, store = order.part, Store(order.store_root)
    inputs = {label: store.read(object_id) for label, object_id in part.inputs.items()}
    module, _, function = order.function.partition(":")
    job = PartJob(part.name, part.params, inputs, part.identity, part.places)
    try:
        output: PartOutput = getattr(importlib.import_module(module), function)(job)
    except SourceError as error:
        return error
    write_output(order.folder, output)
    return output.report


def write_output(folder: Path, output: PartOutput) -> None:
    """Write the tables, the small files and the report of a part into its folder, synced."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in sorted(output.tables.items()):
        for shard in write_table(folder, name, table):
            sync_file(folder / shard)
    for name, content in sorted(output.files.items()):
        write_synced(folder / name, content)
    write_synced(folder / REPORT, canonical_json(asdict(output.report)))


class Engine:
    """Runs orders on `num_workers` processes; with one worker, in this process. Use as a context manager: one pool a build."""

    def __init__(self, num_workers: int, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.num_workers = num_workers
        self.deadline_seconds = deadline_seconds
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._kill()  # nobody wants what is still being made
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def run(self, orders: Sequence[Order]) -> Iterator[tuple[Order, Result]]:
        """Make the parts of all orders; yields each when it is done, in any order. Raises StageError if a worker dies or hangs."""
        if self.num_workers == 1 or len(orders) == 1:
            for order in orders:
                yield order, make_part(order)
            return
        pool = self._started_pool()
        # The largest first: else one worker ends with it while the others wait.
        ordered = sorted(orders, key=lambda order: (-_num_bytes_read(order), order.part.name))
        pending: dict[Future[Result], Order] = {pool.submit(make_part, order): order for order in ordered}
        yield from self._drain(pending)

    def _drain(self, pending: dict[Future[Result], Order]) -> Iterator[tuple[Order, Result]]:
        futures: Mapping[Future[Result], Order] = dict(pending)
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=self.deadline_seconds, return_when="FIRST_COMPLETED")
            if not done:
                self._kill()
                names = ", ".join(sorted(futures[future].part.name for future in waiting))
                raise StageError(names, f"no part was finished within {self.deadline_seconds:.0f} s", "", _AGAIN)
            for future in sorted(done, key=lambda future: futures[future].part.name):
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool as error:
                    self._pool = None
                    name = futures[future].part.name
                    raise StageError(name, "a worker process died, perhaps for lack of memory", "", _AGAIN) from error

    def _started_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload(["pipeline.build.engine"])
            _start_server_deaf_to_the_keyboard()
            self._pool = ProcessPoolExecutor(self.num_workers, mp_context=context, initializer=_die_with_parent)
        return self._pool

    def _kill(self) -> None:
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _num_bytes_read(order: Order) -> int:
    """Bytes of the objects and of the single files that a part is made from, as far as they are known beforehand."""
    store = Store(order.store_root)
    folders = [store.locate(object_id) for object_id in order.part.inputs.values()]
    files = [path for folder in folders if folder for path in folder.iterdir()] + list(order.part.places.values())
    return sum(path.stat().st_size for path in files if path.is_file())


_AGAIN = "Run again: finished parts are reused. Fewer workers need less memory."


def _start_server_deaf_to_the_keyboard() -> None:
    # Ctrl-C reaches every process of the terminal; the workers inherit the server's mask and leave it to their parent.
    resource_tracker.ensure_running()  # on its way it unblocks the keyboard, so it goes first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_with_parent() -> None:
    # A killed parent leaves pool workers waiting for ever: they read from a pipe that they hold open themselves.
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
