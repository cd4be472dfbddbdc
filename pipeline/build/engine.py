"""Engine: runs part functions in this process or in a pool of workers. The bytes are the same either way.

The pool is made by `forkserver`, never `fork`: a forked worker would inherit locks and threads. Workers die with their parent.
This is the seam where a cluster would come in: it must offer `run(tasks)` and nothing else.
"""

import os
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from pathlib import Path

from pipeline.contracts.part import Part, PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.declared import load_declared
from pipeline.core.durable import sync, write_synced
from pipeline.core.errors import SluiceError, SourceError, StageError
from pipeline.core.params import canonical_json
from pipeline.core.registry import added_entries
from pipeline.formats.tables import write_table
from pipeline.stages.stages import Stage
from pipeline.store.objects import REPORT
from pipeline.store.store import Store

DEADLINE_SECONDS = 3_600.0
_SHARE_OF_ALL = 0.2
"""Work of a single part over all sources, such as the audit, in that of the parts of the sources."""


@dataclass(frozen=True)
class PartTask:
    """A part to make: where its inputs are read and into which empty folder its files are written."""

    part: Part
    function: str
    """The part function as `package.module:function`: workers import it, and no identity holds it."""
    store_root: Path
    folder: Path
    measure: str | None = None
    """The measure function of its kind, named in the same way."""
    is_of_source: bool = False
    """One part of many of its kind: whatever it does, the others go on."""


PartResult = StageReport | SourceError


def make_part(task: PartTask) -> PartResult:
    """Run one part function and write its files into the task's folder. A SourceError is a result: other sources continue."""
    part, store = task.part, Store(task.store_root)
    inputs = {label: store.read(object_id) for label, object_id in part.inputs.items()}
    job = PartJob(part.name, part.params, inputs, part.identity, part.places)
    try:
        output = measured(job, load_declared(f"part {part.name}", "function", task.function)(job), task.measure)
    except SourceError as error:
        return error
    except (SluiceError, OSError):
        raise
    except Exception as error:
        if not task.is_of_source:
            raise
        return _defect(part, error)
    write_output(task.folder, output)
    return output.report


def _defect(part: Part, error: Exception) -> SourceError:
    """Return the error of a source at which the code of a stage broke: a defect, or memory that it lacked."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    found = f"{part.function} raised {type(error).__name__}: {str(error)[:500]} ({Path(place.filename).name}:{place.lineno})"
    remedy = "Report it with that line; `exclude` the file in the pin, or leave the source out."
    return SourceError(part.name, found, "", remedy)


def measured(job: PartJob, output: PartOutput, measure: str | None) -> PartOutput:
    """Return a part's output with the report that the measure function of its kind makes of it."""
    if measure is None:
        return output
    return replace(output, report=load_declared(f"part {job.name}", "measure", measure)(job, output))


def write_output(folder: Path, output: PartOutput) -> None:
    """Write the tables, the small files and the report of a part into its folder, synced."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in sorted(output.tables.items()):
        for shard in write_table(folder, name, table):
            sync(folder / shard)
    for name, content in sorted(output.files.items()):
        write_synced(folder / name, content)
    write_synced(folder / REPORT, canonical_json(asdict(output.report)))


class Engine:
    """Runs tasks on `num_workers` processes; with one worker, in this process. Use as a context manager: one pool for a build."""

    def __init__(self, num_workers: int, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.num_workers = num_workers
        self.deadline_seconds = deadline_seconds
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._kill()  # the outputs of running tasks are not needed
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def run(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        """Make the parts of all tasks, yielding each when it is done, in any order.

        If a worker dies, or no part is finished within the deadline, each unfinished part is made again alone: the one that ends
        its worker then is a SourceError, if it is of a source. Raises StageError for another.
        """
        if self.num_workers == 1 or len(tasks) == 1 or added_entries():  # workers know what the package declares
            for task in tasks:
                yield task, make_part(task)
            return
        # The largest first: otherwise one worker finishes it last while the others wait.
        unfinished = sorted(tasks, key=lambda task: (-num_bytes_read(task), task.part.name))
        for task, result in self._drain(unfinished):
            if not isinstance(result, _Ended):
                unfinished.remove(task)
                yield task, result
        for task in unfinished:
            for _, result in self._drain([task]):
                yield task, result.error(task) if isinstance(result, _Ended) else result

    def _drain(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, "PartResult | _Ended"]]:
        """Make parts in the pool. Once a worker dies or none is finished in time, yield how it ended for all that are left."""
        pool = self._started_pool()
        futures = {pool.submit(make_part, task): task for task in tasks}
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=self.deadline_seconds, return_when="FIRST_COMPLETED")
            if not done:
                self._kill()
                ended = _Ended(f"no part was finished within {self.deadline_seconds:.0f} s")
                yield from ((futures[future], ended) for future in waiting)
                return
            for future in sorted(done, key=lambda future: futures[future].part.name):
                try:
                    result: PartResult | _Ended = future.result()
                except BrokenProcessPool:
                    self._pool = None
                    result = _Ended("its worker process died, perhaps for lack of memory")
                yield futures[future], result

    def _started_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload(["pipeline.build.engine"])
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


def num_bytes_read(task: PartTask) -> int:
    """Add up the bytes of the objects and single files that a part is made from, as far as they are known beforehand."""
    store = Store(task.store_root)
    folders = [store.locate(object_id) for object_id in task.part.inputs.values()]
    files = [path for folder in folders if folder for path in folder.iterdir()] + list(task.part.places.values())
    return sum(path.stat().st_size for path in files if path.is_file())


class StageWork:
    """Work of a stage, done and left. Parts that the stage has not asked for yet are among those that are left."""

    def __init__(self, stage: Stage, num_workers: int) -> None:
        self.stage, self.num_workers = stage, num_workers
        self._left: dict[str, tuple[float, float]] = {}
        self._num_done = 0
        self.bytes_done = 0.0
        """The bytes that finished parts have read."""
        self._singles = {kind.only: kind.seconds for kind in (*stage.parts, stage.audit) if kind.only is not None}
        self._expected = set(self._singles)
        self._num_bytes_of_sources = 0

    def add(self, names: Sequence[str], tasks: Sequence[PartTask]) -> None:
        """Add the parts that a stage asks for: all names, and the tasks of those that must be made."""
        sizes = [(task, num_bytes_read(task)) for task in tasks]
        self._num_bytes_of_sources += sum(size for task, size in sizes if task.is_of_source)
        for task, size in sizes:
            self._left[task.part.name] = self._of_one(task.part.name, size)
        for name in names:
            self._expected.discard(name)

    def finish(self, name: str) -> None:
        """Count a part as done, if it was to be made."""
        if (work := self._left.pop(name, None)) is not None:
            self._num_done += 1
            self.bytes_done += work[0]

    @property
    def is_any(self) -> bool:
        """True where something was or is to be made, and not all of it was there."""
        return bool(self._left or self._num_done)

    @property
    def left(self) -> tuple[float, float]:
        """The bytes to read, and the seconds of unfinished parts whose work does not grow."""
        expected = [self._of_one(name, 0) for name in sorted(self._expected) if self.is_any]
        works = [*self._left.values(), *expected]
        return sum(size for size, _ in works), part_seconds([seconds for _, seconds in works], self.num_workers)

    def _of_one(self, name: str, num_bytes: int) -> tuple[float, float]:
        if name not in self._singles:
            return float(num_bytes), 0.0
        seconds = self._singles[name]
        return (0.0 if seconds else _SHARE_OF_ALL * self._num_bytes_of_sources), seconds


def part_seconds(seconds: Sequence[float], num_workers: int) -> float:
    """Return the seconds that workers take for parts of these seconds: no part is divided among them."""
    return max(sum(seconds) / num_workers, *seconds, 0.0)


@dataclass(frozen=True)
class _Ended:
    """End of a part that its worker did not survive."""

    found: str

    def error(self, task: PartTask) -> SourceError:
        """Return the error of a part of a source. Raises StageError for another part."""
        if task.is_of_source:
            return SourceError(task.part.name, f"{task.part.function}: {self.found}", "", _LEAVE_OUT)
        raise StageError(task.part.name, self.found, "", _AGAIN)


_LEAVE_OUT = "Run again with fewer workers; if it ends so again, leave the source out, or `exclude` what is odd in it."
_AGAIN = "Run again: finished parts are reused. Fewer workers need less memory."


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
