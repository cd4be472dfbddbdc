"""Local engine: runs part functions in this process or in a pool of workers of this machine.

The pool is made by `forkserver`, never `fork`: a forked worker would inherit locks and threads. Workers die with their parent.
"""

import os
import select
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from pathlib import Path

from pipeline.build.engines.engine import DEADLINE_SECONDS, Engine
from pipeline.build.engines.part_task import PartResult, PartTask, ended_error, largest_first, make_part, num_bytes_read
from pipeline.core.errors import StageError

MAX_NUM_BYTES_AT_STAKE = 4 * 1024**2
"""Bytes that parts read which a pool has at once beyond one a worker: small ones follow each other without waiting to be stored."""

SERVER_END_SECONDS = 10.0
"""Limit of the wait for a process that starts workers and has closed its connections to end."""


def open_local_engine(num_workers: int, address: str, scratch: Path) -> Engine:
    """Return an engine of this machine; its pool is started by the first tasks."""
    return LocalEngine(num_workers)


class LocalEngine(Engine):
    """Runs tasks on `num_workers` processes; with one worker, in this process."""

    def __init__(self, num_workers: int, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.num_workers = num_workers
        self.deadline_seconds = deadline_seconds
        self._pool: ProcessPoolExecutor | None = None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._kill()  # the outputs of running tasks are not needed
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def is_quicker_here(self, tasks: Sequence[PartTask]) -> bool:
        """Return whether a worker would have one part at most: others wait, and canaries need what this process has loaded."""
        return self.num_workers == 1 or sum(not (task.waits or task.part.always) for task in tasks) <= 1

    def run_in_workers(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        """Make the parts in the pool; each that was running when a worker died, or at the deadline, again alone."""
        left = largest_first(tasks)
        while left:
            unfinished = list(left)
            for task, result in self._drain(left):
                if not isinstance(result, _Ended):
                    unfinished.remove(task)
                    yield task, result
            num_running = self.num_workers + 1  # a pool hands out one more where it has more; they begin in their order
            for task in unfinished[:num_running]:
                for _, result in self._drain([task]):
                    yield task, ended_error(task, result.found) if isinstance(result, _Ended) else result
            left = unfinished[num_running:]

    def _drain(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, "PartResult | _Ended"]]:
        """Make parts in the pool. Once a worker dies or none is finished in time, yield how it ended for those that it had."""
        pool, left = self._started_pool(), [(task, num_bytes_read(task)) for task in tasks]
        waiting: dict[Future[PartResult], tuple[PartTask, int]] = {}
        while left or waiting:
            try:
                while left and self._has_room(left[0][1], [num_bytes for _, num_bytes in waiting.values()]):
                    waiting[pool.submit(make_part, left[0][0])] = left[0]
                    del left[0]
            except BrokenProcessPool:  # as those that wait will say
                self._pool, left = None, []
            except (EOFError, ConnectionError):
                self._kill()
                _wait_until_the_server_has_ended()
                ended = _Ended("the process that starts workers died, perhaps for lack of memory")
                yield from ((task, ended) for task, _ in (*waiting.values(), *left))
                return
            done, _ = wait(waiting, timeout=self.deadline_seconds, return_when="FIRST_COMPLETED")
            if waiting and not done:
                self._kill()
                ended = _Ended(f"no part was finished within {self.deadline_seconds:.0f} s")
                yield from ((task, ended) for task, _ in waiting.values())
                return
            for future in sorted(done, key=lambda future: waiting[future][0].part.name):
                try:
                    result: PartResult | _Ended = future.result()
                except BrokenProcessPool:
                    self._pool, left = None, []
                    result = _Ended("its worker process died, perhaps for lack of memory")
                yield waiting.pop(future)[0], result

    def _has_room(self, num_bytes: int, at_stake: Sequence[int]) -> bool:
        """Return whether one more part may be made before others are stored: of what is not stored a kill leaves nothing."""
        return len(at_stake) < self.num_workers or sum(at_stake) + num_bytes <= MAX_NUM_BYTES_AT_STAKE

    def _started_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload(["pipeline.build.engines.part_task"])
            _start_forkserver_ignoring_sigint()
            try:
                self._pool = ProcessPoolExecutor(self.num_workers, mp_context=context, initializer=_die_with_parent)
            except OSError as error:  # of a semaphore, which names no path
                remedy = "Mount one, or run with `--workers 1`."
                raise StageError("worker processes", str(error.strerror), "/dev/shm to write to", remedy) from error
        return self._pool

    def _kill(self) -> None:
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


@dataclass(frozen=True)
class _Ended:
    """End of a part that its worker did not survive."""

    found: str


def _start_forkserver_ignoring_sigint() -> None:
    # Ctrl-C reaches every process of the terminal; workers inherit the server's signal mask, so only their parent stops.
    resource_tracker.ensure_running()  # starting it unblocks SIGINT, so it is started first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_with_parent() -> None:
    # Workers of a killed parent would wait for ever: they read from a pipe that they keep open themselves.
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait_until_the_server_has_ended() -> None:
    """Wait for the end of the process that starts workers: it closes its connections first, and would be asked again."""
    with suppress(OSError, TypeError):  # it has ended, or there is none
        descriptor = os.pidfd_open(forkserver._forkserver._forkserver_pid)  # type: ignore[attr-defined]
        select.select([descriptor], [], [], SERVER_END_SECONDS)
        os.close(descriptor)
