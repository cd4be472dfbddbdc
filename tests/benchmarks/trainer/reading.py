"""The loader: how fast it reads, beside the loaders that others use; how fast it resumes; how much memory it takes."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.build.recipes import ROOT
from pipeline.core.records import TrainingRow
from pipeline.core.schema import arrow_schema, table_of
from pipeline.stages.tokenize.columns.list_column import ListColumn
from tests.benchmarks.figure import Figure
from tests.tools.other_environments import PEERS, absent, peer_python
from trainer.config.training_config import InfillingParams
from trainer.data.loader import Loader, LoaderConfig, Source
from trainer.data.mapped_rows import TrainingRows
from trainer.data.row_layout import RowLayout

ROW_LENGTH, BATCH_ROWS, NUM_ROWS = 2048, 16, 4096
NUM_ROUNDS = 3
SPECIALS = {
    f"<|{name}|>": place for place, name in enumerate(("pad", "bos", "eos", "fim_prefix", "fim_middle", "fim_suffix"))
}
LAYOUT = RowLayout.of("0" * 64, ROW_LENGTH, SPECIALS)


def loader() -> list[Figure]:
    """Packed rows of 2,048 slots as the full slice has them: tokens a second of processor time in one process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.arrow"
        write_rows(path, NUM_ROWS)
        rows = TrainingRows.open([path])
        infilled, plain = (_loader(rows, rate) for rate in (0.5, 0.0))
        rounds, peers = [], {}
        for name in [
            peer.name for peer in PEERS if "loader" in peer.used_by
        ]:  # in turn, so that a busy minute is everybody's
            rounds += [(_speed(_reading(infilled)), _speed(_reading(plain))) for _ in range(NUM_ROUNDS)]
            peers[name] = _peer_speed(name, path)
    mine, without = (max(values) for values in zip(*rounds, strict=True))
    cost = 1 - mine / without
    figures = [
        Figure("loader", round(mine / 1e6, 1), "M tokens/s", ">= 20 M tokens/s", mine >= 20e6),
        Figure("loader/infilling-costs", round(cost, 3), "share of the plain speed", "<= 0.3", cost <= 0.3),
        Figure("loader/plain", round(without / 1e6, 1), "M tokens/s", "reported", True),
    ]
    return figures + beside_peers(mine, peers)


def peers_of_loader() -> list[str]:
    """Return the names of the loaders to compare with."""
    return [peer.name for peer in PEERS if "loader" in peer.used_by]


def beside_peers(mine: float, peers: dict[str, float | None]) -> list[Figure]:
    """Return a row for each peer. The claim is over the best: without one of them it can miss, but not hold."""
    speeds = {name: speed for name, speed in peers.items() if speed is not None}
    figures = []
    for name, speed in peers.items():
        if speed is None:
            figures.append(Figure(f"loader/{name}", None, "x", "reported", None, absent(name)))
            continue
        ratio, is_best = round(mine / speed, 1), speed == max(speeds.values())
        holds = (None if len(speeds) < len(peers) and ratio >= 5 else ratio >= 5) if is_best else True
        reach, peer_value = ">= 5 x the best peer" if is_best else "reported", round(speed / 1e6, 2)
        figures.append(Figure(f"loader/{name}", ratio, "x", reach, holds, f"{name}, M tokens/s", peer_value, ratio))
    return figures


def resume_position() -> list[Figure]:
    """A virtual corpus of 1e13 rows: from a state to the first batch, at three positions; and how large the state is."""
    sources = [
        Source(name, _VirtualRows(num_rows))
        for name, num_rows in (("heron", 5 * 10**12), ("lantern", 3 * 10**12), ("quarry", 2 * 10**12))
    ]
    reading = Loader(sources, LAYOUT, LoaderConfig(seed=1))
    figures, seconds = [], []
    for position in (0, 10**6, 10**12):
        state = json.dumps(reading.state_at(position))
        seconds.append(min(_seconds_to_resume(sources, state) for _ in range(5)))
        milliseconds = round(seconds[-1] * 1e3, 2)
        figures.append(Figure(f"resume-position/{position:.0e}", milliseconds, "ms", "< 50 ms", seconds[-1] < 0.05))
    size = len(json.dumps(reading.state_at(10**12)))
    spread = max(seconds) / min(seconds)
    return [
        *figures,
        Figure("resume-position/state", size, "bytes", "<= 200 bytes", size <= 200),
        Figure("resume-position/spread", round(spread, 2), "slowest over fastest", "reported", True),
    ]


def loader_memory() -> list[Figure]:
    """Peak memory of a process that reads 2,000 rows of a small corpus, and of one sixteen times larger."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for num_rows in (2_000, 32_000):
            path = Path(folder) / f"{num_rows}.arrow"
            write_rows(path, num_rows)
            line = [sys.executable, "-m", "tests.benchmarks.trainer.reading", str(path)]
            done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout) / 1024)
    more = peaks[1] - peaks[0]
    return [
        Figure("loader-memory", round(more, 1), "MiB more for 16 x the rows", "<= 16 MiB", more <= 16),
        Figure("loader-memory/peak", round(peaks[1], 1), "MiB, anonymous memory, whole process", "reported", True),
    ]


def write_rows(path: Path, num_rows: int, rows_at_once: int = 1024) -> None:
    """Rows of one to four pieces in chunks of some eighty tokens, as the full slice has them."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, arrow_schema(TrainingRow)) as writer:
        for first in range(0, num_rows, rows_at_once):
            writer.write_table(_rows(np.random.default_rng(first), min(rows_at_once, num_rows - first), first))


def _rows(random: np.random.Generator, num_rows: int, first: int) -> pa.Table:
    columns: dict[str, list[Any]] = {field.name: [] for field in arrow_schema(TrainingRow) if not field.nullable}
    for row in range(first, first + num_rows):
        num_pieces = int(random.choice([1, 1, 1, 2, 2, 3, 4]))
        room = ROW_LENGTH - 3 * num_pieces
        cuts = np.sort(random.choice(np.arange(64, room - 64), num_pieces - 1, replace=False))
        lengths = np.diff([0, *cuts, room])
        ids = random.integers(16, 32_768, ROW_LENGTH).astype(np.uint16)
        ids[room:] = SPECIALS["<|pad|>"]
        ids[[0, *cuts]] = SPECIALS["<|bos|>"]
        starts = [np.arange(end - length + 1, end, 80) for length, end in zip(lengths, np.cumsum(lengths), strict=True)]
        columns["input_ids"].append(ids)
        columns["lengths"].append(lengths)
        columns["piece_ids"].append(np.arange(num_pieces) + row * 8)
        columns["chunk_counts"].append([len(values) for values in starts])
        columns["chunk_starts"].append(np.concatenate(starts))
    schema = arrow_schema(TrainingRow)
    lists = {
        name: ListColumn.of(values, np.dtype(schema.field(name).type.value_type.to_pandas_dtype()))
        for name, values in columns.items()
    }
    return table_of(TrainingRow, {name: column.to_arrow(schema.field(name).type) for name, column in lists.items()})


class _VirtualRows(TrainingRows):
    """As many rows as one likes, all with the content of the first."""

    def __init__(self, num_rows: int) -> None:
        super().__init__(_rows(np.random.default_rng(0), 1, 0))
        self._num_rows = num_rows

    def __len__(self) -> int:
        return self._num_rows

    def locate(self, rows_R: np.ndarray) -> Any:
        return super().locate(np.zeros_like(rows_R))


def _seconds_to_resume(sources: list[Source], state: str) -> float:
    """From the sources' names and a state to the first batch, the loader made anew."""
    started = time.perf_counter()
    resumed = Loader(sources, LAYOUT, LoaderConfig(seed=1))
    resumed.batch_at(resumed.position_of(json.loads(state)), BATCH_ROWS)
    return time.perf_counter() - started


def _loader(rows: TrainingRows, rate: float) -> Loader:
    return Loader([Source("made", rows)], LAYOUT, LoaderConfig(seed=1, infilling=InfillingParams(rate=rate)))


def _reading(reading: Loader) -> Callable[[], Iterator[int]]:
    def batches() -> Iterator[int]:
        for position in range(0, NUM_ROWS, BATCH_ROWS):
            yield reading.batch_at(position, BATCH_ROWS).input_ids_BT.size

    return batches


def _speed(batches: Callable[[], Iterator[int]]) -> float:
    started = time.process_time()
    num_tokens = sum(batches())
    return num_tokens / (time.process_time() - started)


def _peer_speed(name: str, path: Path) -> float | None:
    """Tokens a second of a peer over the same ids, shuffled, in a process of its own interpreter; None without one.

    Raises CalledProcessError where an installed peer fails: that is no peer that is absent.
    """
    python = peer_python(name)
    if python is None:
        return None
    line = [str(python), str(Path(__file__).with_name("loader_peers.py")), name, str(path), str(BATCH_ROWS)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def _read_and_report(path: Path) -> None:
    reading = _loader(TrainingRows.open([path]), 0.5)
    for position in range(0, 2_000, BATCH_ROWS):
        reading.batch_at(position, BATCH_ROWS)
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    # Mapped pages of the file belong to the page cache; what the loader itself holds is anonymous.
    print(next(line.split()[1] for line in lines if line.startswith("RssAnon")))


if __name__ == "__main__":
    _read_and_report(Path(sys.argv[1]))
