"""Ray engine: runs part functions as tasks on a Ray cluster, whose nodes see the folder of the store at the same path.

Tasks and not actors: a part keeps nothing between two parts. Ray does not repeat a task itself, as a lost attempt may still write:
here each attempt has a folder of its own, and the one that ends well is moved to its place. Ray: Moritz et al., OSDI 2018.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.build.engines.engine import DEADLINE_SECONDS, Engine
from pipeline.build.engines.node_check import NodeView, node_differences, node_view
from pipeline.build.engines.part_task import PartResult, PartTask, ended_error, largest_first, make_part, num_bytes_read
from pipeline.core.errors import StageError

MAX_ATTEMPTS = 3
"""Workers that a part may end: a node that goes ends them too, and is no fault of the part."""
_BYTES_PER_BYTE = 40
"""Memory that a part takes for each byte that it reads, at most (`growth` in docs/benchmarks.md)."""
_LEAST_MEMORY, _SHARE_OF_NODE = 512 << 20, 0.9
_CONNECT_SECONDS, _PROBE_SECONDS = 5.0, 60.0
_START = (
    "Start it with `ray start --head`, of the same versions of Ray and Python, and give the address that it prints."
)


def open_ray_engine(num_workers: int, address: str, scratch: Path) -> Engine:
    """Join the cluster at `address`, or start one of `num_workers` CPUs on this machine for this build. Raises StageError."""
    ray = import_module("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # of a cluster that is started here
    subject = f"Ray cluster {address or 'of this machine'}"
    if address:
        _refuse_silent(subject, address)
    here = {"address": "local", "num_cpus": num_workers, "include_dashboard": False}
    where = {"address": address} if address else here
    try:
        ray.init(**where, log_to_driver=False, logging_level="ERROR")
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise StageError(subject, _first_line(error), "a cluster that answers", _START) from error
    engine = RayEngine(ray)
    try:
        refuse_unlike_nodes(ray, scratch)
    except BaseException:
        engine.__exit__(StageError)
        raise
    return engine


class RayEngine(Engine):
    """Runs tasks on the CPUs of the cluster that this process has joined. `ray` is the library, which need not be installed."""

    def __init__(self, ray: Any, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._ray, self._make = ray, ray.remote(_make)
        self.deadline_seconds = deadline_seconds
        self.num_workers = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        self._running: dict[Any, _Attempt] = {}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        self._ray.shutdown()

    def run_in_workers(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        """Make the parts on the cluster; one whose worker or node is lost is made again, on whichever node is left."""
        for task in largest_first(tasks):
            self._submit(_Attempt(task))
        while self._running:
            done, waiting = self._ray.wait(list(self._running), num_returns=1, timeout=self.deadline_seconds)
            found = f"no part was finished within {self.deadline_seconds:.0f} s"
            for reference in done or waiting:
                attempt = self._running.pop(reference)
                result = self._result(reference) if done else self._canceled(reference, found)
                if not isinstance(result, _Lost):
                    yield attempt.task, attempt.accepted(result)
                elif attempt.number < MAX_ATTEMPTS:
                    self._submit(attempt.next())
                else:
                    yield attempt.task, ended_error(attempt.task, f"{result.found}, {MAX_ATTEMPTS} times")

    def _submit(self, attempt: "_Attempt") -> None:
        options = {"num_cpus": 1, "memory": self._memory_of(attempt.task), "max_retries": 0}
        self._running[self._make.options(**options).remote(attempt.as_task())] = attempt

    def _memory_of(self, task: PartTask) -> int:
        """Return the bytes of memory that the scheduler sets aside for a part: never more than the largest node has."""
        largest = max((node["Resources"].get("memory", 0.0) for node in _nodes(self._ray)), default=0.0)
        return int(min(max(_LEAST_MEMORY, _BYTES_PER_BYTE * num_bytes_read(task)), _SHARE_OF_NODE * largest))

    def _result(self, reference: Any) -> "PartResult | _Lost":
        try:
            result: PartResult | _Raised = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return _Lost(f"its worker or node was lost ({type(error).__name__}), perhaps for lack of memory")
        if isinstance(result, _Raised):
            raise result.error
        return result

    def _canceled(self, reference: Any, found: str) -> "_Lost":
        self._ray.cancel(reference, force=True)
        return _Lost(found)


def refuse_unlike_nodes(ray: Any, scratch: Path) -> None:
    """Raise StageError for a node with other code, or libraries, than this process, or from which the store is not seen."""
    token = scratch / f"node-{secrets.token_hex(8)}"
    token.write_text(token.name, encoding="utf-8")
    here = node_view(token)
    view = ray.remote(num_cpus=0, max_retries=0)(node_view)
    on_node = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    views = {
        node["NodeID"]: view.options(scheduling_strategy=on_node(node["NodeID"], soft=False)).remote(token)
        for node in _nodes(ray)
    }
    for node, reference in sorted(views.items()):
        subject = f"node {node[:12]} of the Ray cluster"
        try:
            there: NodeView = ray.get(reference, timeout=_PROBE_SECONDS)
        except (ray.exceptions.RayError, ImportError) as error:
            remedy = "Install the same version of Sluice there, or start the node again."
            raise StageError(subject, _first_line(error), "a worker with this package", remedy) from error
        if found := node_differences(here, there):
            remedy = "Install the same versions on every node, and give the store's folder at the same path."
            raise StageError(subject, found, "what this process has", remedy)
    token.unlink()


def _refuse_silent(subject: str, address: str) -> None:
    """Raise StageError for an address at which nothing listens: Ray itself waits for minutes."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise StageError(subject, "it is no address", "HOST:PORT, such as 10.0.0.1:6379", _START)
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise StageError(
            subject, f"nothing answers ({error.strerror or error})", "a cluster that does", _START
        ) from error


@dataclass(frozen=True)
class _Attempt:
    """One of the times that a part is made, in a folder beside that of the others."""

    task: PartTask
    number: int = 1

    @property
    def folder(self) -> Path:
        return self.task.folder.with_name(f"{self.task.folder.name}.{self.number}")

    def as_task(self) -> PartTask:
        return replace(self.task, folder=self.folder)

    def next(self) -> "_Attempt":
        return replace(self, number=self.number + 1)

    def accepted(self, result: PartResult) -> PartResult:
        """Move what the attempt wrote to the place of the part; a lost attempt that still writes writes elsewhere."""
        if self.folder.exists():
            shutil.rmtree(self.task.folder, ignore_errors=True)
            self.folder.rename(self.task.folder)
        return result


@dataclass(frozen=True)
class _Lost:
    """End of an attempt that its worker did not survive."""

    found: str


@dataclass(frozen=True)
class _Raised:
    """An error of a part, which is raised in the build: Ray would raise another class in its place."""

    error: Exception


def _make(task: PartTask) -> "PartResult | _Raised":
    try:
        return make_part(task)
    except Exception as error:
        return _Raised(error)


def _nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
