"""Console: answers for people on stdout, progress and words on stderr; progress bars, the waterfall and other tables.

With `--json` stdout is for that value alone.
"""

import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.measure import Measurement
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.table import Table
from rich.text import Text

from pipeline.build.build import ProgressEvent
from pipeline.build.run_stage import StageResult
from pipeline.build.seen_red import GateSeenRed
from pipeline.cli.time_left import TimeLeft, clock_text
from pipeline.contracts.gates import Gate, GateVerdict
from pipeline.contracts.stage_report import evidence_files
from pipeline.stages.stages import STAGES

_WIDTH_OF_PIPE = 100_000
_WIDTH_OF_TABLE = 160
"""Characters of a line above which a table is not read as one, however wide the stream is."""
SECONDS_BETWEEN_LINES = 10.0
"""Time between two lines about a running stage or training session, on a stream that is not a terminal."""


class PersonConsole(Console):
    """A console for people: words with `print`, answers with `answer`.

    Lines are not wrapped, so that paths and commands can be copied; a stream that is not a terminal is as wide as what is printed.
    """

    def __init__(self, file: TextIO, answers: TextIO | None = None, is_quiet: bool = False) -> None:
        """Open a console whose words go to `file`, and whose answers go to another stream if one is given."""
        super().__init__(file=file, width=None if file.isatty() else _WIDTH_OF_PIPE, highlight=False, quiet=is_quiet)
        self._answers = None if answers is None else PersonConsole(answers)

    def print(self, *objects: Any, **options: Any) -> None:
        is_text = all(isinstance(item, str) for item in objects)
        if not (is_text or self.is_terminal):  # tables fill their lines with spaces
            with self.capture() as captured:
                super().print(*objects, **{"crop": False, **options})
            lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
            objects, options = (lines,), {"markup": False, "soft_wrap": True}
        options.setdefault("soft_wrap", is_text)
        super().print(*objects, **{"crop": False, **options})

    def answer(self, *objects: Any, **options: Any) -> None:
        """Print the answer of a command."""
        (self._answers or self).print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """Set the console quiet: who reads it has closed the pipe, and the work is not done yet."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def person(file: TextIO | None = None, answers: TextIO | None = None, is_quiet: bool = False) -> PersonConsole:
    """Return a console for people, on stderr unless another stream is given."""
    return PersonConsole(file or sys.stderr, answers, is_quiet)


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


class _LeftColumn(ProgressColumn):
    """Time left, by the function in the task's field `left`."""

    def render(self, task: Task) -> Text:
        """Format it anew, as it falls while nothing is finished."""
        return Text(clock_text(task.fields["left"]()), style="progress.remaining")


class StageBars:
    """A context manager that draws one line for the stage that runs and one for the build: bar, parts, MB, and time left.

    The line of a stage appears when it starts, with the number of its parts, and moves when a part is done. A stream that is not a
    terminal gets a line every ten seconds.
    """

    def __init__(self, console: Console, num_workers: int = 1) -> None:
        self.console = console
        self._last_time = time.monotonic()
        self._time_left = TimeLeft(num_workers)
        self._bars = ProgressBars(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[parts]:>12}"),
            TextColumn("{task.fields[rate]:>16}"),
            TimeElapsedColumn(),
            _LeftColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "StageBars":
        self._bars.start()
        self._open(STAGES.names[0])
        total = len(STAGES.names)
        self._build = self._bars.add_task(
            "build", total=total, parts=f"0/{total} stages", rate="", left=self._time_left.of_build
        )
        return self

    def __exit__(self, *_: object) -> None:
        for task in (*self._tasks.values(), self._build):
            self._bars.remove_task(task)
        self._tasks.clear()
        self._bars.stop()

    def progress(self, event: ProgressEvent) -> None:
        """Move the bar of the stage."""
        if event.stage not in self._tasks:
            self._open(event.stage)
        self._time_left.update(event)
        task = self._tasks[event.stage]
        parts, rate = f"{event.num_done}/{event.num_parts} parts", f"{_size(event.num_bytes)} read"
        done = self._time_left.share_done()
        self._bars.update(task, total=1.0, completed=done, parts=parts, rate=rate)
        self._bars.update(self._build, completed=STAGES.names.index(event.stage) + done)
        if not self.console.is_terminal and time.monotonic() - self._last_time >= SECONDS_BETWEEN_LINES:
            self._last_time = time.monotonic()
            of_stage, of_build = clock_text(self._time_left.of_stage()), clock_text(self._time_left.of_build())
            of_build = f"build {of_build}" if of_build else ""
            self.console.print("  ".join(filter(None, [f"{event.stage:<10} {parts}", rate, of_stage, of_build])))

    def _open(self, stage: str) -> None:
        self._time_left.start()
        left = self._time_left.of_stage
        self._tasks[stage] = self._bars.add_task(stage, total=1.0, parts="", rate="", left=left)

    def finished(self, result: StageResult, seconds: float) -> None:
        """Replace the stage's bar by a line that stays: rows in and out, speed, and whether the stage is unchanged."""
        task = self._tasks.pop(result.stage, None)
        if task is not None:
            self._bars.remove_task(task)
        self._last_time = time.monotonic()
        self.console.print(stage_line(result, seconds))
        place = STAGES.names.index(result.stage) + 1
        self._bars.update(self._build, completed=place, parts=f"{place}/{len(STAGES.names)} stages")
        following = STAGES.names[place:]
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
    return f"{_size(num_bytes / seconds if seconds > 0 else 0.0)}/s"


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e5 else f"{num_bytes / 1e3:.1f} kB"


def waterfall_table(results: Sequence[StageResult]) -> Table:
    """Build a table of files, bytes and tokens in and out of each stage, and its drops by reason, most frequent first."""
    table = Table(title="Waterfall", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("stage", no_wrap=True)
    for name in ("in", "out", "MB in", "MB out", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("dropped, by reason", min_width=28, overflow="fold")
    for result in results:
        report = result.report
        tokens = report.measures.get("num_tokens")
        drops = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
        num_evidence, _ = evidence_files(report)
        aside = f"({num_evidence:,} of those out are license evidence, no documents)" if num_evidence else ""
        table.add_row(
            result.stage,
            f"{report.rows_in:,}",
            f"{report.rows_out:,}",
            f"{report.num_bytes_in / 1e6:.2f}",
            f"{report.num_bytes_out / 1e6:.2f}",
            f"{tokens:,.0f}" if tokens else "",
            f"{', '.join(f'{reason} {count:,}' for reason, count in drops)} {aside}".strip(),
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


def verdict_table(verdicts: Iterable[GateVerdict], title: str = "Gates") -> "FittedTable":
    """Build a table of gates with measured value, limit and verdict."""
    rows: list[dict[str, object]] = []
    for verdict in verdicts:
        color = {"failed": "red", "warning": "yellow", "passed": "green"}.get(verdict.outcome, "dim")
        word = Text("BLOCKED" if verdict.outcome == "failed" else verdict.outcome, style=color)
        sign = "≤" if verdict.comparison == "at most" else "≥"
        row = {"stage": verdict.stage, "gate": verdict.gate, "measured": f"{verdict.measured:g}"}
        rows.append({**row, "limit": f"{sign} {verdict.limit:g}", "verdict": word})
    return FittedTable(title, rows, right=("measured", "limit"))


def seen_red_tables(seen: Iterable[GateSeenRed]) -> Iterator["FittedTable"]:
    """Build a table of gates and of the offenses that turned each red, for each build that last saw some of them red."""
    groups: dict[str, list[GateSeenRed]] = {}
    for each in seen:
        title = f"Gates last seen red in build {each.build[:12]} with code {each.code[:12]} at {each.when[:16]}"
        groups.setdefault(title, []).append(each)
    for title, group in groups.items():
        nothing = Text("nothing", style="red")
        yield FittedTable(title, [{"gate": one.gate, "by": ", ".join(one.offenses) or nothing} for one in group])


def _cell(value: object) -> Text:
    """Return the text of a cell, of a list its values one after the other."""
    if isinstance(value, list | tuple):
        return Text(", ".join(map(str, value)))
    return value if isinstance(value, Text) else Text("-" if value is None else str(value))


@dataclass(frozen=True)
class FittedTable:
    """Rows that share their keys: a table where its names fit whole, and a value a line where not."""

    title: str
    rows: Sequence[Mapping[str, object]]
    right: Collection[str] = ()
    """Columns of numbers, which are aligned on the right."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(title=self.title, title_justify="left", box=SIMPLE_HEAD)
        names = list(self.rows[0]) if self.rows else []
        for name in names:
            table.add_column(name, no_wrap=True, justify="right" if name in self.right else "left")
        cells = [[_cell(value) for value in row.values()] for row in self.rows]
        for row in cells:
            table.add_row(*row)
        width = Measurement.get(console, options.update(max_width=_WIDTH_OF_PIPE), table).maximum
        if width <= min(options.max_width, _WIDTH_OF_TABLE):
            yield table
            return
        yield Text(self.title, style="italic")
        width = max(map(len, names))
        room = min(options.max_width, _WIDTH_OF_TABLE) - width - 4
        for row in cells:
            for name, value in zip(names, row, strict=True):
                for number, part in enumerate(_lines_of_list(value, room)):
                    line = Text.assemble(f"  {'' if number else name:<{width}}  ", part)
                    line.no_wrap, line.overflow = True, "ignore"
                    yield line
            yield Text("")


def _lines_of_list(value: Text, width: int) -> list[Text]:
    """Return a text as lines of that width, divided after commas alone: what is between them can be copied."""
    if len(value) <= width:
        return [value]
    lines = [""]
    for part in value.plain.split(", "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += f"{part}, "
    return [
        Text(line[:-2] if number == len(lines) else line[:-1], style=value.style)
        for number, line in enumerate(lines, start=1)
    ]
