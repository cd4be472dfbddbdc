"""Loaders over the rows of one snapshot, or of several. Light: nothing of torch is imported."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from pipeline.core.errors import SnapshotError
from pipeline.core.params import digest
from pipeline.core.records import Split
from pipeline.store.snapshot import Snapshot
from trainer.data.loader import Loader, LoaderConfig, Source, Start
from trainer.data.mapped_rows import STRUCTURE_REMEDY, TrainingRows
from trainer.data.row_layout import RowLayout
from trainer.data.row_selection import RowSelection, select_rows
from trainer.data.streaming.streamed_rows import RowFile, StreamedRows

_SHORT = 12


class WeightedSnapshot(NamedTuple):
    """A snapshot in a mixture. `weight` multiplies the weight of each of its rows."""

    snapshot: Snapshot
    weight: float = 1.0


def open_loader(
    snapshot: Snapshot,
    config: LoaderConfig,
    with_structure: bool = False,
    start: Start = Start(),  # noqa: B008  # a tuple
    selection: RowSelection | None = None,
) -> Loader:
    """Open the loader over one snapshot's training rows, or a selection of them.

    Raises SnapshotError for structure that its rows lack, and for a selection of what is not there.
    """
    layout = RowLayout.of(
        snapshot.snapshot_id, snapshot.row_length, snapshot.vocabulary["specials"], snapshot.vocabulary["size"]
    )
    sources = sources_of(snapshot, Split.TRAIN, with_structure)
    chosen = select_rows(sources, selection or RowSelection(), f"snapshot {snapshot.snapshot_id[:_SHORT]}")
    return Loader(chosen, layout, config, with_structure, start)


def open_mixture(
    members: Sequence[WeightedSnapshot],
    config: LoaderConfig,
    with_structure: bool = False,
    selection: RowSelection | None = None,
) -> Loader:
    """Open the loader over the training rows of several snapshots, or those of each that are selected.

    Raises SnapshotError unless all have one vocabulary, one row length, such rows and a weight above zero.
    """
    if not members:
        raise SnapshotError("a mixture", "it names no snapshot", "at least one")
    first = members[0].snapshot
    for snapshot, weight in members:
        check_same(snapshot, first)
        if not (weight > 0 and isfinite(weight)):
            raise SnapshotError(
                f"snapshot {snapshot.snapshot_id[:_SHORT]}", f"its weight is {weight}", "a number above zero"
            )
        if not any(source.num_rows_train for source in snapshot.sources):
            raise SnapshotError(
                f"snapshot {snapshot.snapshot_id[:_SHORT]}", "no source has training rows", "at least one row"
            )
    ids = [snapshot.snapshot_id for snapshot, _ in members]
    if len(set(ids)) < len(ids):
        raise SnapshotError("a mixture", f"it names a snapshot twice: {sorted(ids)}", "each once, with its weight")
    sources = mixed_sources(members, selection or RowSelection(), with_structure)
    # The quotas are part of the mixture's digest beside this name, so that the weights need not be.
    layout = RowLayout.of(digest(sorted(ids)), first.row_length, first.vocabulary["specials"], first.vocabulary["size"])
    return Loader(sources, layout, config, with_structure)


def mixed_sources(
    members: Sequence[WeightedSnapshot], selection: RowSelection, with_structure: bool = False
) -> list[Source]:
    """Map the selected training rows of several snapshots; the names of sources begin with the snapshot's id.

    Raises SnapshotError for a value that none of them has, and for a snapshot without a row of the selection.
    """
    found = [
        Source(f"{snapshot.snapshot_id[:_SHORT]}/{source.name}", source.rows, source.weight * weight, source.name)
        for snapshot, weight in members
        for source in sources_of(snapshot, Split.TRAIN, with_structure)
    ]
    chosen = select_rows(found, selection, "the mixture of snapshots")
    for snapshot, _ in members:
        short = snapshot.snapshot_id[:_SHORT]
        if selection.identity and not any(source.name.startswith(f"{short}/") for source in chosen):
            remedy = "Leave it out of --mix, or change --only."
            raise SnapshotError(f"snapshot {short}", "no row of it is of all that --only names", "one at least", remedy)
    return chosen


def sources_of(snapshot: Snapshot, split: Split = Split.TRAIN, with_structure: bool = False) -> list[Source]:
    """Map the sources of a snapshot in one split. Raises SnapshotError if structure is requested and missing."""
    is_streamed = split is Split.TRAIN and snapshot.store.storage.max_cache_bytes is not None
    sources = [
        Source(entry.name, _streamed(snapshot, entry.name, with_structure), entry.weight)
        if is_streamed
        else Source(entry.name, TrainingRows.open(snapshot.row_files(entry.name, split)), entry.weight)
        for entry in snapshot.sources
    ]
    for source in sources if with_structure else ():
        if not source.rows.has_structure:
            raise SnapshotError(
                f"source {source.name} of snapshot {snapshot.snapshot_id[:_SHORT]}",
                "its rows have no structure",
                "the columns structure_kinds and structure_levels, for a model with `structure`",
                STRUCTURE_REMEDY,
            )
    return sources


def _streamed(snapshot: Snapshot, source: str, with_structure: bool) -> StreamedRows:
    """Return the training rows of a source of which none is fetched yet."""
    files = [
        RowFile(stored.path, entry.name, entry.num_rows or 0, entry.num_bytes)
        for stored, entry in snapshot.row_entries(source, Split.TRAIN)
    ]
    return StreamedRows(files, must_have_structure=with_structure)


def check_same(snapshot: Snapshot, first: Snapshot) -> None:
    """Raise SnapshotError unless two snapshots have one vocabulary and one row length."""
    found = {"vocabulary": snapshot.vocabulary["sha256"], "row length": snapshot.row_length}
    wanted = {"vocabulary": first.vocabulary["sha256"], "row length": first.row_length}
    for name, value in wanted.items():
        if found[name] != value:
            raise SnapshotError(
                f"snapshot {snapshot.snapshot_id[:_SHORT]}",
                f"its {name} is {found[name]}",
                f"{value}, as in snapshot {first.snapshot_id[:_SHORT]}",
                "Build both corpora with the same tokenize parameters.",
            )
