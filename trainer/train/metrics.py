"""Metrics of a run: a line of metrics.jsonl and a TensorBoard event a step, progress on stderr, and result.json at the end.

Other trackers are given the same metrics here; `trainer.train.tracking` has them.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from pipeline.core.durable import replace
from pipeline.core.errors import TrainingError
from pipeline.core.file_locks import acquire
from trainer.train.tracking.event_file import EventFile, Records

_METRICS, _RESULT = "metrics.jsonl", "result.json"
MAX_FAILURES = 3
"""Steps in a row after which a tracker that fails is left out."""


@contextmanager
def hold_folder(folder: Path, who: str) -> Iterator[None]:
    """Lock the output folder of a run: two runs in one would mix their metrics.

    Raises LockedError while another has it, and TrainingError where it has the metrics of another, which are nowhere else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    with path.open("a+") as file:
        acquire(file.fileno(), path, f"folder {folder}", 0.0, lambda holder: None)
        _refuse_metrics_of_another(folder, who)
        file.truncate(0)
        file.write(who)
        file.flush()
        yield


def _refuse_metrics_of_another(folder: Path, who: str) -> None:
    """Raise TrainingError if the metrics in a folder are of another run: its lock says whose, or, in a copy, its result."""
    there = [name for name in (_METRICS, _RESULT) if (folder / name).exists()]
    if others := [name for name in there if not (folder / name).is_file()]:
        raise TrainingError(f"--out {folder}", f"its {others[0]} is no file", "a new folder", "Name another by --out.")
    if not there:
        return
    before = (folder / ".lock").read_text(encoding="utf-8", errors="replace").strip() or _who_ended(folder / _RESULT)
    if before not in ("", who):
        remedy = "Name another folder by --out; that run goes on with its own options, among them --run and --resume."
        raise TrainingError(
            f"--out {folder}", f"it has the metrics of {before}", f"a new folder, or that of {who}", remedy
        )


def _who_ended(result: Path) -> str:
    try:
        return f"training {json.loads(result.read_bytes())['run']}"
    except (OSError, ValueError, TypeError, KeyError):
        return ""


class MetricsWriter:
    """Writer of the metrics of one session into `folder`, and of its log to stderr.

    Times are measured here and enter nothing else. Without telemetry only messages and result.json are written; a silent writer
    (of a rank other than 0) writes nothing.
    """

    def __init__(
        self,
        folder: Path,
        first_step: int,
        last_step: int,
        has_telemetry: bool = True,
        is_silent: bool = False,
        tracked: Mapping[str, Records] = MappingProxyType({}),
    ) -> None:
        """Open the files. `tracked` are the open records of other trackers, by name."""
        self.folder = folder
        self.first_step = first_step
        self.last_step = last_step
        self.is_silent = is_silent
        self._file: TextIO | None = None
        self._events: Records | None = None
        self._tracked = {name: _Tracked(records) for name, records in tracked.items()}
        if has_telemetry and not is_silent:
            if num_dropped := _keep_steps_until(folder / _METRICS, first_step):
                self.log(f"{folder / _METRICS}: {num_dropped} lines that are no metrics are dropped")
            self._file = (folder / _METRICS).open("a", encoding="utf-8")
            try:
                events = self._tracked.pop("tensorboard", None)
                self._events = events.records if events else EventFile(folder / "tensorboard", first_step)
            except ImportError:
                self.log(_NO_EVENTS)
        self._num_tokens = 0
        self._started = self._before = time.monotonic()

    @property
    def tokens_per_second(self) -> int:
        """The mean over this session."""
        return round(self._num_tokens / max(1e-9, self._before - self._started))

    def write_step(self, step: int, metrics: Mapping[str, Any], num_tokens: int) -> None:
        """Write the metrics of a finished step (counted from 1), and log the progress."""
        now = time.monotonic()
        seconds, self._before = now - self._before, now
        self._num_tokens += num_tokens
        rate = num_tokens / seconds if seconds > 0 else 0.0
        if self._file is None:
            return
        line = {"step": step, **metrics, "seconds": round(seconds, 4), "tokens_per_second": round(rate)}
        try:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            if self._events:
                self._events.add(line)
        except OSError as error:
            self.log(f"warning: the metrics of step {step} could not be written ({error.strerror}); training continues")
        for name in list(self._tracked):
            self._track(name, lambda tracked: tracked.add(line), MAX_FAILURES)
        left = (now - self._started) / (step - self.first_step) * (self.last_step - step)
        bar = "#" * (24 * step // self.last_step)
        skipped = "  skipped" if metrics.get("skipped") else ""
        skipped += f" ({metrics['not_finite']} is not finite)" if "not_finite" in metrics else ""
        text = f"train [{bar:<24}] {step}/{self.last_step}  loss {metrics['loss']:.4f}{skipped}  {rate:,.0f} tokens/s"
        self.log(f"{text}  {left:.0f} s left")

    def log(self, *messages: str) -> None:
        """Print messages on stderr."""
        for message in messages if not self.is_silent else ():
            print(message, file=sys.stderr, flush=True)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write result.json, whole or not at all."""
        for file in (self._file, self._events):
            if file is not None:
                file.close()
        for name in list(self._tracked):
            self._track(name, _Tracked.close, 1)
        if not self.is_silent:
            replace(self.folder / _RESULT, f"{json.dumps(result, indent=1, sort_keys=True)}\n".encode())

    def _track(self, name: str, action: Callable[["_Tracked"], None], max_failures: int) -> None:
        """Apply an action to a tracker. One that fails as often in a row is left out: training goes on without it."""
        tracked = self._tracked[name]
        try:
            action(tracked)
            tracked.num_failures = 0
        except Exception as error:  # of another project's code, whatever it raises
            tracked.num_failures += 1
            if tracked.num_failures < max_failures:
                return
            del self._tracked[name]
            self.log(f"warning: --track {name} failed ({type(error).__name__}: {error}); training continues without it")


@dataclass
class _Tracked:
    """A tracker that is open, and what it has not recorded yet: a network may be gone for a while."""

    records: Records
    waiting: list[Mapping[str, Any]] = field(default_factory=list)
    num_failures: int = 0

    def add(self, line: Mapping[str, Any]) -> None:
        """Add the metrics of a step, after those that wait."""
        self.waiting.append(line)
        self._send()

    def close(self) -> None:
        """Add what waits, and finish the records."""
        self._send()
        self.records.close()

    def _send(self) -> None:
        while self.waiting:
            self.records.add(self.waiting[0])
            del self.waiting[0]


def _keep_steps_until(path: Path, last_step: int) -> int:
    """Drop the metrics of steps that will be repeated, a line cut by a kill, and lines that are not metrics; return how many."""
    if not path.exists():
        return 0
    whole = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    replace(path, "".join(f"{line}\n" for line in whole if 1 <= _step_of(line) <= last_step).encode())
    return sum(_step_of(line) < 1 for line in whole)


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError):
        return 0


_NO_EVENTS = "no event file for TensorBoard: tensorboardX is not installed; metrics.jsonl has every metric"
