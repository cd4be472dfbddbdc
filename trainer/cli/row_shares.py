"""Rows on a command line: `--only DIMENSION=VALUES`, and `--mix` with shares by lane, source or license."""

import math
from collections.abc import Sequence

from pipeline.core.errors import ParamsError, did_you_mean
from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot
from trainer.config.mix import LANES
from trainer.data.open_loader import WeightedSnapshot, mixed_sources, sources_of
from trainer.data.row_selection import Dimension, RowSelection, select_rows

_EXAMPLE = "Write as `--mix build_aware=0.7,syntax_only=0.3` or `--mix license:permissive=0.9,MPL-2.0=0.1`."


def row_selection(snapshots: Sequence[Snapshot], only: Sequence[str], shares: str | None) -> RowSelection:
    """Return the selection that arguments ask for. Raises ParamsError, and SnapshotError for what the snapshots lack."""
    filters: dict[Dimension, tuple[str, ...]] = {}
    for argument in only:
        name, _, text = argument.partition("=")
        values = tuple(sorted({value.strip() for value in text.split(",")} - {""}))
        if name not in set(Dimension) or not values:
            expected = f"{', '.join(Dimension)}, and values after `=`"
            remedy = "Write as `--only license=permissive`."
            near = remedy if name in set(Dimension) else did_you_mean(name, Dimension, remedy)
            raise ParamsError(f"--only {argument}", "it names no rows", expected, near)
        if Dimension(name) in filters:
            found = f"{name} is named twice"
            raise ParamsError(f"--only {argument}", found, "each dimension once", "Join the values by commas.")
        filters[Dimension(name)] = values
    snapshot = snapshots[0]
    selection = RowSelection(tuple(sorted(filters.items())), *_shares(snapshot, shares))
    if selection.identity and len(snapshots) > 1:
        mixed_sources([WeightedSnapshot(each) for each in snapshots], selection)
    elif selection.identity:
        select_rows(sources_of(snapshot, Split.TRAIN), selection, f"snapshot {snapshot.snapshot_id[:12]}")
    return selection


def _shares(snapshot: Snapshot, argument: str | None) -> tuple[Dimension | None, tuple[tuple[str, float], ...]]:
    if argument is None:
        return None, ()
    prefix, colon, text = argument.rpartition(":")
    named = [each.strip().partition(":")[0] for each in argument.split(",") if ":" in each]
    if len(named) > 1 and set(named) <= set(Dimension):
        found = f"it names {' and '.join(named)}"
        raise ParamsError(
            f"--mix {argument}", found, "shares by one of them, which is written once, in front", _EXAMPLE
        )
    if colon and prefix not in set(Dimension):
        found, expected = f"{prefix or 'an empty name'} is no property of a row", ", ".join(Dimension)
        raise ParamsError(f"--mix {argument}", found, expected, did_you_mean(prefix, Dimension, _EXAMPLE))
    shares: dict[str, float] = {}
    for each in text.split(","):
        name, _, number = each.strip().rpartition("=")
        share = _number(number)
        if not name or share is None:
            found = f"{each.strip() or 'an empty entry'} is no name with its share"
            raise ParamsError(f"--mix {argument}", found, "NAME=SHARE, a number above zero", _EXAMPLE)
        if name in shares:
            raise ParamsError(f"--mix {argument}", f"{name} has two shares", "each name once", "Leave one of them out.")
        shares[name] = share
    by = Dimension(prefix) if colon else _dimension(snapshot, set(shares))
    return by, tuple(sorted(shares.items()))


def _dimension(snapshot: Snapshot, names: set[str]) -> Dimension:
    """Return what names without a dimension are: lanes, else sources of the snapshot, else licenses."""
    if names & LANES:
        return Dimension.LANE
    return Dimension.SOURCE if names & {source.name for source in snapshot.sources} else Dimension.LICENSE


def _number(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if share > 0 and math.isfinite(share) else None
