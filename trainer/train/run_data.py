"""Data of a run: the rows of one snapshot or of a mixture of several, and the snapshots that were adopted on the way."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.core.errors import TrainingError
from pipeline.store.snapshot import Snapshot, open_snapshot
from trainer.data.batch import Batch
from trainer.data.loader import Loader, LoaderConfig, Start
from trainer.data.loss_by_group import LossByGroup
from trainer.data.open_loader import WeightedSnapshot, check_same, open_loader, open_mixture
from trainer.data.prefetch import Batches
from trainer.data.row_selection import RowSelection
from trainer.data.streaming.fetch_ahead import fetching_ahead
from trainer.train.evaluation import HeldOutRows


class Adoption(NamedTuple):
    """A change of snapshot: from `position` on, the run reads `new` in place of `old`. Checkpoints store its fields."""

    position: int
    old: str
    new: str


class RunData:
    """Rows of a run. The row at a position is decided by the snapshots with which the run began, and by its adoptions.

    With `with_held_out`, the held-out rows of every snapshot that is read are opened too. A `selection` is of training rows.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        mixture: Sequence[tuple[str, float]],
        config: LoaderConfig,
        with_structure: bool = False,
        with_held_out: bool = False,
        selection: RowSelection | None = None,
    ) -> None:
        members = [WeightedSnapshot(open_snapshot(snapshot.store, name), weight) for name, weight in mixture]
        self._members = members or [WeightedSnapshot(snapshot)]
        self._is_mixture = bool(members)
        self._config = config
        self._with_structure = with_structure
        self._with_held_out = with_held_out
        self._selection = selection
        self.messages: list[str] = []
        """Messages about the fetching of rows, which the loop logs."""
        self._begin()

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is read now; of a mixture the first."""
        return self._snapshots[0]

    @property
    def max_documents(self) -> int:
        """The most documents of a row that is read now; padding counts as one."""
        return 1 + max(source.rows.max_pieces for source in self.loader.sources)

    def batches(self, batch_rows: int, num_workers: int, position: int) -> Iterator[Batch]:
        """Yield the batches from a position on, without an end; after an adoption, those of the adopted snapshot."""
        while True:
            loader, started = self.loader, time.monotonic()
            with fetching_ahead(loader, position, self.snapshot.store.storage.max_cache_bytes) as ahead:
                batches, first = iter(Batches(loader, batch_rows, num_workers, position)), position
                while self.loader is loader:
                    if ahead:
                        ahead.prepare(position, batch_rows)
                    batch = next(batches)
                    if ahead and position == first:
                        self.messages.append(ahead.sentence(time.monotonic() - started))
                    position = batch.next_position
                    yield batch

    def place_changes(self, positions: tuple[int, ...]) -> None:
        """Set the positions at which the mixture changes: after a resume with other batches, others than before."""
        if positions != self._config.change_positions:
            self._config = self._config.model_copy(update={"change_positions": positions})
            self._begin()

    def adopt(self, adoption: Adoption) -> None:
        """Continue with another snapshot. On SnapshotError, MissingError or DamagedError nothing has changed."""
        if adoption.old != self.snapshot.snapshot_id or len(self._snapshots) > 1:
            found, expected = (
                f"it leaves snapshot {adoption.old[:12]}",
                f"{self.snapshot.snapshot_id[:12]}, which is read there",
            )
            raise TrainingError(f"adoption at position {adoption.position}", found, expected)
        snapshot = open_snapshot(self.snapshot.store, adoption.new)
        check_same(snapshot, self.snapshot)
        start = Start(adoption.position, self.loader.started_epochs(adoption.position))
        self._read([snapshot], open_loader(snapshot, self._config, self._with_structure, start, self._selection))
        self.adoptions.append(adoption)

    def restore(self, adoptions: Sequence[Adoption]) -> None:
        """Start again from the first snapshots, with the adoptions of a checkpoint."""
        if self.adoptions or adoptions:
            self._begin()
        for adoption in adoptions:
            self.adopt(adoption)

    def _begin(self) -> None:
        self.adoptions: list[Adoption] = []
        first = self._members[0].snapshot
        if self._is_mixture:
            loader = open_mixture(self._members, self._config, self._with_structure, self._selection)
        else:
            loader = open_loader(first, self._config, self._with_structure, selection=self._selection)
        self._read([snapshot for snapshot, _ in self._members], loader)

    def _read(self, snapshots: Sequence[Snapshot], loader: Loader) -> None:
        held_out = HeldOutRows(snapshots, self._with_structure) if self._with_held_out else None
        self._snapshots, self.loader, self.held_out = list(snapshots), loader, held_out
        self.loss_by_group = LossByGroup(loader.sources)
        vocabulary = self.snapshot.vocabulary
        names = {"vocabulary": vocabulary["name"], "vocabulary_sha256": vocabulary["sha256"]}
        self.packing = {"row_length": self.snapshot.row_length, "num_rows": loader.num_rows, **names}
