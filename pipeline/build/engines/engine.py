"""Engine: makes the parts of tasks in workers, wherever these are. The bytes are the same everywhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from pipeline.build.engines.part_task import PartResult, PartTask, make_part
from pipeline.core.registry import added_entries

DEADLINE_SECONDS = 3_600.0


class Engine(ABC):
    """Runs tasks on `num_workers` workers. Use as a context manager: one set of workers for a build."""

    num_workers: int
    deadline_seconds: float = DEADLINE_SECONDS
    """The longest time in which no part is finished."""

    def __enter__(self) -> "Engine":
        return self

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the workers; at once if an exception ends the build, as the outputs of running tasks are then not needed."""

    def run(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        """Make the parts of all tasks, yielding each when it is done, in any order.

        A part that ends its worker, or is not finished within the deadline, is made again; if it ends so again, it is a SourceError
        if it is of a source. Raises StageError for another.
        """
        if added_entries() or self.is_quicker_here(tasks):  # workers know what the package declares
            yield from self._run_here(tasks)
            return
        yield from self.run_in_workers(tasks)

    def _run_here(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        """Make the parts in this process; beside it, if there may be more than one, those for which another program works."""
        beside = [task for task in tasks if task.waits] if self.num_workers > 1 else []
        with ThreadPoolExecutor(max(1, min(len(beside), self.num_workers))) as threads:
            waiting = {threads.submit(make_part, task): task for task in beside}
            for task in tasks:
                if task not in beside:
                    yield task, make_part(task)
            for done in as_completed(waiting):
                yield waiting[done], done.result()

    def is_quicker_here(self, tasks: Sequence[PartTask]) -> bool:
        """Return whether this process makes the tasks itself."""
        return not tasks

    @abstractmethod
    def run_in_workers(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        """Make the parts of all tasks in workers, as `run` says."""
