"""Console: progress bars, the waterfall and tables for people. Everything goes to stderr; stdout is for `--json`."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBars
from rich.table import Table
from rich.text import Text

from pipeline.build.build import ProgressEvent
from pipeline.build.run_stage import StageResult
from pipeline.build.seen_red import GateSeenRed
from pipeline.contracts.gates import Gate, GateVerdict
from pipeline.stages.stages import STAGES

SECONDS_BETWEEN_LINES = 10.0
"""Time between two lines about a running stage or training session, on a stream that is not a terminal."""


class _WholeLines(Console):
    """A console that fits tables to the width and does not wrap lines, so that paths and commands can be copied."""

    def print(self, *objects: Any, **options: Any) -> None:
        options.setdefault("soft_wrap", all(isinstance(item, str) for item in objects))
        super().print(*objects, **options)


def person(file: TextIO | None = None) -> Console:
    """Return a console for people, on stderr unless another stream is given."""
    return _WholeLines(file=file or sys.stderr, highlight=False)


class UpdatingLine:
    """A line that is updated in place. A stream that is not a terminal gets one line in ten seconds, and the last one."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, transient=True, refresh_per_second=8)
        self._last = ""
        self._last_time = 0.0

    def __enter__(self) -> "UpdatingLine":
        self._last_time = time.monotonic()
        self._last = ""
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._live.update("")
        if self._last:
            self.say(self._last)

    def update(self, text: str) -> None:
        """Replace the text of the line."""
        self._last = text
        if self.console.is_terminal:
            self._live.update(Text(text, no_wrap=True, overflow="ellipsis"))
        elif time.monotonic() - self._last_time >= SECONDS_BETWEEN_LINES:
            self.say(text)
            self._last = ""

    def say(self, text: str) -> None:
        """Print a line that stays, above the one that is updated."""
        self._last_time = time.monotonic()
        self.console.print(text, markup=False)


class StageBars:
    """A context manager that draws one line a stage: bar, parts, rate and time left.

    The bar of a stage appears when it starts and moves when a part is done. A stream that is not a terminal gets a line every
    ten seconds.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._last_time = time.monotonic()
        self._bars = ProgressBars(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[parts]:>8} parts"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "StageBars":
        self._bars.start()
        self._open(STAGES.names[0])
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks.values():
            self._bars.remove_task(task)
        self._tasks.clear()
        self._bars.stop()

    def progress(self, event: ProgressEvent) -> None:
        """Move the bar of the stage."""
        if event.stage not in self._tasks:
            self._open(event.stage)
        task = self._tasks[event.stage]
        elapsed = next(bar.elapsed for bar in self._bars.tasks if bar.id == task) or 0.0
        rate = _speed(event.num_bytes, elapsed) if elapsed > 0.05 else ""
        parts = f"{event.num_done}/{event.num_parts}"
        self._bars.update(task, total=event.num_parts, completed=event.num_done, parts=parts, rate=rate, left="left")
        if not self.console.is_terminal and time.monotonic() - self._last_time >= SECONDS_BETWEEN_LINES:
            self._last_time = time.monotonic()
            self.console.print(f"{event.stage:<10} {parts} parts  {rate}")

    def _open(self, stage: str) -> None:
        self._tasks[stage] = self._bars.add_task(stage, total=None, parts="", rate="", left="")

    def finished(self, result: StageResult, seconds: float) -> None:
        """Replace the stage's bar by a line that stays: rows in and out, speed, and whether the stage is unchanged."""
        task = self._tasks.pop(result.stage, None)
        if task is not None:
            self._bars.remove_task(task)
        self._last_time = time.monotonic()
        self.console.print(stage_line(result, seconds))
        following = STAGES.names[STAGES.names.index(result.stage) + 1 :]
        if following and not result.blocked:
            self._open(following[0])


def stage_line(result: StageResult, seconds: float) -> str:
    """Format one line about a finished stage."""
    report = result.report
    color = "red" if result.blocked else "green"
    bar = f"[{color}]{'━' * 12}[/{color}]"
    speed = "unchanged" if result.unchanged else _speed(report.num_bytes_in, seconds)
    state = "[red]blocked[/red]" if result.blocked else result.object_id[:12]
    rows = f"{report.rows_in:>6,} -> {report.rows_out:>6,}"
    return f"{result.stage:<10} {bar} {rows} {seconds:>6.1f} s  {speed:<10} {state}"


def _speed(num_bytes: int, seconds: float) -> str:
    rate = num_bytes / seconds if seconds > 0 else 0.0
    return f"{rate / 1e6:.1f} MB/s" if rate >= 1e5 else f"{rate / 1e3:.1f} kB/s"


def waterfall_table(results: Sequence[StageResult]) -> Table:
    """Build a table of files, bytes and tokens in and out of each stage, and its drops by reason, most frequent first."""
    table = Table(title="Waterfall", title_justify="left")
    table.add_column("stage")
    for name in ("in", "out", "MB in", "MB out", "tokens"):
        table.add_column(name, justify="right")
    table.add_column("dropped, by reason")
    for result in results:
        report = result.report
        tokens = report.measures.get("num_tokens")
        drops = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
        table.add_row(
            result.stage,
            f"{report.rows_in:,}",
            f"{report.rows_out:,}",
            f"{report.num_bytes_in / 1e6:.2f}",
            f"{report.num_bytes_out / 1e6:.2f}",
            f"{tokens:,.0f}" if tokens else "",
            ", ".join(f"{reason} {count:,}" for reason, count in drops),
        )
    return table


def gate_lines(gates: Iterable[Gate]) -> Iterator[str]:
    """Format gates by stage: the name, the measure with its limit and what a failure does, and below it why the gate is there."""
    places = {name: place for place, name in enumerate(STAGES.names)}
    in_order = sorted(gates, key=lambda gate: places.get(gate.stage, len(places)))
    for stage, of_stage in groupby(in_order, lambda gate: gate.stage):
        yield stage
        for gate in of_stage:
            yield f"  {gate.name}"
            limit = f"{gate.measure} {gate.limit.comparison} {gate.limit.value}"
            yield f"      {limit}, {'blocks' if gate.blocking else 'warns'}"
            yield f"      {gate.why}"


def verdict_table(verdicts: Iterable[GateVerdict]) -> Table:
    """Build a table of gates with measured value, limit and verdict."""
    table = Table(title="Gates", title_justify="left")
    for name in ("stage", "gate", "measured", "limit", "verdict"):
        table.add_column(name, justify="right" if name in ("measured", "limit") else "left")
    for verdict in verdicts:
        color = {"failed": "red", "warning": "yellow", "passed": "green"}.get(verdict.outcome, "dim")
        text = f"[{color}]{'BLOCKED' if verdict.outcome == 'failed' else verdict.outcome}[/{color}]"
        sign = "≤" if verdict.comparison == "at most" else "≥"
        table.add_row(verdict.stage, verdict.gate, f"{verdict.measured:g}", f"{sign} {verdict.limit:g}", text)
    return table


def seen_red_tables(seen: Iterable[GateSeenRed]) -> Iterator[Table]:
    """Build a table of gates and of the offenses that turned each red, for each build that last saw some of them red."""
    groups: dict[str, list[GateSeenRed]] = {}
    for each in seen:
        title = f"Gates last seen red in build {each.build[:12]} with code {each.code[:12]} at {each.when[:16]}"
        groups.setdefault(title, []).append(each)
    for title, group in groups.items():
        rows = [{"gate": each.gate, "by": ", ".join(each.offenses) or "[red]nothing[/red]"} for each in group]
        yield plain_table(title, rows)


def plain_table(title: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Build a table of rows that share their keys."""
    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")  # a name that is cut cannot be searched for
    for row in rows:
        table.add_row(*[str(value) for value in row.values()])
    return table
