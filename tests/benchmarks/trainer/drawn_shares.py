"""Shares of drawn tokens by lane, source and license against what was asked, and the rows after a resume."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.conftest import build_tiny
from tests.support.made.made_rows import with_lanes
from trainer.data.loader import Loader, LoaderConfig
from trainer.data.open_loader import open_loader, sources_of
from trainer.data.row_selection import Dimension, RowSelection, select_rows

NUM_TOKENS, NUM_RESUMES, MAX_PERCENT = 10_000_000, 100, 0.1
ASKED = {
    Dimension.LANE: {"build_aware": 0.7, "syntax_only": 0.3},
    Dimension.SOURCE: {"lantern": 0.5, "odds": 0.2, "quarry": 0.3},
    Dimension.LICENSE: {"MIT": 0.6, "Apache-2.0": 0.3, "weak_copyleft": 0.1},
}
"""Shares by dimension, of rows that the made corpus has, but for lanes: a compiler is said to have read some."""


def shares() -> list[Figure]:
    """Ten million tokens of the made corpus by each dimension, and the same rows from a hundred other positions."""
    with tempfile.TemporaryDirectory() as folder:
        build_tiny(Path(folder))
        store = Store(Path(folder))
        return list(_figures(open_snapshot(store, store.ref("tiny", "candidate") or "")))


def _figures(snapshot: Snapshot) -> Iterator[Figure]:
    for dimension, asked in ASKED.items():
        selection = RowSelection((), dimension, tuple(sorted(asked.items())))
        percent, num_differing = _measured(snapshot, selection)
        unit = "percentage points off at 10 million tokens, at most"
        yield Figure(f"shares/{dimension}", round(percent, 4), unit, f"<= {MAX_PERCENT}", percent <= MAX_PERCENT)
        unit = f"of {NUM_RESUMES} resumes with other rows"
        yield Figure(f"shares/{dimension}-resumed", num_differing, unit, "0", num_differing == 0)


def _measured(snapshot: Snapshot, selection: RowSelection) -> tuple[float, int]:
    """Return the largest distance from a share in percentage points, and the resumes that draw other rows."""
    loader = _loader(snapshot, selection)
    places = sources_R, _, rows_R = loader.locate(0, NUM_TOKENS // snapshot.row_length)
    drawn: Counter[str] = Counter()
    for number, source in enumerate(loader.sources):
        value = source.name.removeprefix(f"{source.source}/")
        drawn[value] += int(source.rows.num_targets()[rows_R[sources_R == number]].sum())
    percent = max(100 * abs(drawn[value] / drawn.total() - share) for value, share in selection.shares)
    num_differing = 0
    for first in np.random.default_rng(1).integers(0, len(rows_R) - 64, NUM_RESUMES).tolist():
        again = _loader(snapshot, selection) if first % 10 == 0 else loader
        found = again.locate(again.position_of(loader.state_at(first)), 64)
        num_differing += any(
            not np.array_equal(one[first : first + 64], other) for one, other in zip(places, found, strict=True)
        )
    return percent, num_differing


def _loader(snapshot: Snapshot, selection: RowSelection) -> Loader:
    chosen = select_rows(with_lanes(sources_of(snapshot, Split.TRAIN)), selection, "the made corpus")
    config = LoaderConfig(seed=1)
    return Loader(chosen, open_loader(snapshot, config).layout, config)
