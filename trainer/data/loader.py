"""Loader: the batch at a position, as a pure function of snapshot, seed and position.

    1. The mixture maps a position to a source and a sample number, by integer quotas spread evenly over a cycle.
    2. A keyed permutation of the source's rows, another one in each epoch, maps the number to a row.
    3. A hash of seed, piece and epoch decides for each piece of the row whether it is infilled, and where it is split.
    4. The slots are copied from the memory-mapped file, with the sentinels of infilling; targets are the ids shifted by one.

A mapped row becomes part of a batch in five records: MappedRows, InfillingPieces, RowOrigins, Block, Batch.

Price: about 1 % of the slots are padding, most of it reserved by packing for sentinels (three slots a piece), and no token is
cropped. Infilling takes about a quarter of the reading speed. There is no shuffle buffer: rows are read in random order, and
two blocks of 512 rows are kept. The whole state is the position, so that a resume is exact and takes milliseconds.

Ranks, workers, micro-batches and prefetch divide the positions and change no row. No global generator is used.

Shapes: B rows of a batch, R rows of a block, T slots of a row, P pieces.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

import numpy as np
from pydantic import Field

from pipeline.core.errors import SnapshotError, TrainingError
from pipeline.core.params import Params, digest
from trainer.config.choices import EpochOrder
from trainer.config.training_config import InfillingParams, MixtureChange, TrainingConfig
from trainer.data.batch import Batch, RowOrigins, empty_arrays, global_batch
from trainer.data.keyed_hash import Integers, Permutation, keyed, permute
from trainer.data.mapped_rows import TrainingRows, gather
from trainer.data.mixture import Mixture
from trainer.data.mixture_schedule import MixtureSchedule, Reweighting, WeightedRows, by_source, fraction_of
from trainer.data.row_layout import Block, RowLayout, fill, infill_rows, lay_out_rows

STATE_VERSION = 1
_IDENTITY = ("mixture_changes", "epoch_caps")
_OF_SCHEDULE = (*_IDENTITY, "change_positions")
"""Settings that are digested where they are set. Positions are not: they follow from the steps, which are."""
_PUBLISHED_EPOCHS = 2

RowPlaces = tuple[Integers, Integers, Integers]
"""Of R rows the index in `Loader.sources`, the source's own epoch counted from 1, and the row of the source."""


class LoaderConfig(Params):
    """Settings that decide order and content of the batches, besides the snapshot."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of order and infilling. The model has a seed of its own."""
    epoch_order: EpochOrder = EpochOrder.PERMUTED
    """Order in which a source's rows are read."""
    infilling: InfillingParams = Field(default_factory=InfillingParams)
    """Rates and places of infilling."""
    mixture_changes: tuple[MixtureChange, ...] = ()
    """Changes of the shares of sources."""
    change_positions: tuple[int, ...] = ()
    """The position of each change, which follows from its step and from the batches before it."""
    epoch_caps: Mapping[str, float] = {}
    """Epochs of a source that are read at most."""

    @classmethod
    def of_training(cls, config: TrainingConfig, seed: int, change_positions: tuple[int, ...]) -> "LoaderConfig":
        """Return the settings of a training, whose mixture changes at these positions."""
        return cls(
            seed=seed,
            epoch_order=config.epoch_order,
            infilling=config.infilling,
            mixture_changes=config.mixture_changes,
            change_positions=change_positions,
            epoch_caps=config.epoch_caps,
        )


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of one source, or of a part of it, and the weight of each of them in the mixture; a Fraction is exact."""

    name: str
    rows: TrainingRows
    weight: float | Fraction = 1.0
    part_of: str | None = None
    """Name of the source where `name` is another: of a part of it, or of one in a mixture of snapshots."""
    share_of: str | None = None
    """The value whose share of tokens the weight gives, where shares are given: changes are factors on such a weight."""

    @property
    def source(self) -> str:
        """The name of the source."""
        return self.part_of or self.name

    def weight_at(self, change: float) -> float | Fraction:
        """Return the weight that a change sets: itself, or so many times the one that a share gives."""
        return change if self.share_of is None else fraction_of(change) * fraction_of(self.weight)


class Start(NamedTuple):
    """Position of a run at which it begins to read a snapshot, and the epochs of snapshots before it.

    Epochs continue to count, so that a document which two snapshots share is permuted and infilled anew in the second.
    """

    position: int = 0
    epochs: int = 0


class Loader:
    """The training rows of a snapshot, in the order of a seed. Sources without rows are left out.

    `with_structure` adds the two columns of structure to the batches and changes nothing else in them.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        layout: RowLayout,
        config: LoaderConfig,
        with_structure: bool = False,
        start: Start = Start(),  # noqa: B008  # a tuple
    ) -> None:
        self.sources = sorted((source for source in sources if len(source.rows)), key=lambda source: source.name)
        if not self.sources:
            raise SnapshotError(
                f"snapshot {layout.snapshot_id[:12]}", "no source has training rows", "at least one row"
            )
        for source in self.sources:
            if not (source.weight > 0 and isfinite(source.weight)):
                raise SnapshotError(f"source {source.name}", f"its weight is {source.weight}", "a number above zero")
        self.block_rows = min(source.rows.block_rows for source in self.sources)
        self.layout = layout
        self.config = config
        self.with_structure = with_structure
        self.start = start
        self._mixture = self._mixture_of_config()
        self._sizes = np.array([len(source.rows) for source in self.sources], dtype=np.int64)
        self._source_words = [_word(source.name) for source in self.sources]
        self._orders: dict[int, tuple[int, Permutation]] = {}
        self._blocks: dict[int, Block] = {}
        self.mixture_digest = self._digest()

    @property
    def end(self) -> int | None:
        """The position from which on no source is read, as each that has a weight has reached its epoch cap; None without one."""
        found = self._mixture.end if isinstance(self._mixture, MixtureSchedule) else None
        return None if found is None else found + self.start.position

    @property
    def num_rows(self) -> int:
        """Rows of all sources: the samples of an epoch if all weights are equal."""
        return sum(len(source.rows) for source in self.sources)

    def quotas_at(self, position: int) -> tuple[int, ...]:
        """Return the rows of each source in a cycle of the mixture that a position is of; 0 for one that is not read."""
        if isinstance(self._mixture, Mixture):
            return self._mixture.quotas
        return self._mixture.quotas_at(max(0, position - self.start.position))

    def locate(self, position: int, num_rows: int) -> RowPlaces:
        """Return source, epoch and row of the positions from `position` on. Takes the same short time everywhere."""
        sources_R, numbers_R = self._mixture.draw(position - self.start.position, num_rows)
        turns_R, rows_R = np.divmod(numbers_R, self._sizes[sources_R])
        epochs_R = turns_R + self.start.epochs + 1
        is_published = self.config.epoch_order is EpochOrder.PUBLISHED
        permuted = np.flatnonzero(epochs_R > (_PUBLISHED_EPOCHS if is_published else 0))
        if len(permuted):
            pairs = np.stack([sources_R[permuted], epochs_R[permuted]])
            known, which = np.unique(pairs, axis=1, return_inverse=True)
            orders = [self._order_of(source, epoch) for source, epoch in known.T.tolist()]
            rows_R[permuted] = permute(orders, which.reshape(-1), rows_R[permuted])
        return sources_R, epochs_R, rows_R

    def finished_epochs(self, position: int) -> int:
        """Count the epochs before `position` of the slowest source: how often every row of every source was read."""
        return int((self._num_read(position) // self._sizes).min()) + self.start.epochs

    def started_epochs(self, position: int) -> int:
        """Return the latest epoch that any source began before `position`."""
        return int((-(-self._num_read(position) // self._sizes)).max()) + self.start.epochs

    def _num_read(self, position: int) -> Integers:
        return self._mixture.count_before(position - self.start.position)

    def batch_at(self, position: int, batch_size: int) -> Batch:
        """Return the global batch of the rows at `position` and the `batch_size - 1` positions after it."""
        if position < self.start.position or batch_size < 1:
            raise TrainingError(
                "batch", f"{batch_size} rows at position {position}", f"1 or more, at {self.start.position} or later"
            )
        arrays = empty_arrays(batch_size, self.layout.row_length, self.with_structure)
        parts: list[RowOrigins] = []
        place = 0
        while place < batch_size:
            number, first = divmod(position - self.start.position + place, self.block_rows)
            last = min(self.block_rows, first + batch_size - place)
            block, end = self._block(number), place + last - first
            fill(block, first, last, self.layout, tuple(array[place:end] for array in arrays))
            parts.append(block.origins.between(first, last))
            place = end
        return global_batch(position, arrays, RowOrigins.concatenated(parts))

    def _block(self, number: int) -> Block:
        """Return the rows of block `number` after the start. The last two blocks are cached."""
        found = self._blocks.get(number)
        if found is None:
            places = self.locate(self.start.position + number * self.block_rows, self.block_rows)
            found = _read_block(self.sources, places, self.layout, self.config, self.with_structure)
            self._blocks = dict([*self._blocks.items(), (number, found)][-2:])
        return found

    def __getstate__(self) -> dict[str, object]:
        # A worker makes its own blocks; their rows must not be sent to it.
        return self.__dict__ | {"_blocks": {}}

    def state_at(self, position: int) -> dict[str, int | str]:
        """Return the whole state of a loader that continues at `position`, as JSON of less than 200 bytes."""
        return {
            "version": STATE_VERSION,
            "mixture": self.mixture_digest,
            "seed": self.config.seed,
            "position": position,
        }

    def position_of(self, state: Mapping[str, int | str]) -> int:
        """Return the position of a state. Raises TrainingError for a state of other data, another seed or another version."""
        for name, expected in self.state_at(0).items():
            if name != "position" and state.get(name) != expected:
                raise TrainingError(
                    "loader state",
                    f"its {name} is {state.get(name)}",
                    f"{expected}",
                    "Resume with the snapshot, weights and loader configuration that it was written with.",
                )
        return int(state["position"])

    def _order_of(self, source: int, epoch: int) -> Permutation:
        """Return the order of a source in an epoch, made in microseconds. The last one of each source is cached."""
        kept = self._orders.get(source)
        if kept is None or kept[0] != epoch:
            key = keyed(self.config.seed, self._source_words[source], epoch)
            kept = self._orders[source] = epoch, Permutation(len(self.sources[source].rows), key)
        return kept[1]

    def _mixture_of_config(self) -> Mixture | MixtureSchedule:
        """Return one mixture, or a schedule of several. Raises SnapshotError for names that no source has."""
        config, names = self.config, [(source.name, source.source) for source in self.sources]
        if not (config.mixture_changes or config.epoch_caps):
            return Mixture([fraction_of(source.weight) * len(source.rows) for source in self.sources])
        caps = by_source(config.epoch_caps, names, "epoch_caps")
        sources = [WeightedRows(source.name, len(source.rows), source.weight) for source in self.sources]
        for place, epochs in caps.items():
            most = max(1, int(fraction_of(epochs) * sources[place].num_rows))
            sources[place] = sources[place]._replace(max_samples=most)
        changes, in_force = [], {place: source.weight for place, source in enumerate(sources)}
        for change, position in zip(config.mixture_changes, config.change_positions, strict=True):
            subject = f"the mixture from step {change.at_step} on"
            set_by_source = by_source(change.weights, names, subject)
            weights = {place: self.sources[place].weight_at(weight) for place, weight in set_by_source.items()}
            in_force |= weights
            if not any(in_force.values()):
                remedy = "Leave a source its weight, or end the run there by --stop-after."
                raise SnapshotError(subject, "all sources have the weight 0", "one at least that is read", remedy)
            changes.append(Reweighting(max(0, position - self.start.position), weights))
        schedule = MixtureSchedule(sources, changes)
        end = schedule.end
        unreached = (
            each.at_step
            for each, change in zip(config.mixture_changes, changes, strict=True)
            if end is not None and change.position > end
        )
        if (step := next(unreached, None)) is not None:
            found = f"all sources that have a weight until then have reached their caps after {end} rows"
            remedy = "Raise a cap or a weight before that step, or leave the change out."
            raise SnapshotError(f"the mixture from step {step} on", found, "rows to read until it begins", remedy)
        return schedule

    def _digest(self) -> str:
        """Digest data and proportions: the snapshot, each source's rows and quota, and the settings except the seed."""
        quotas = zip(self.sources, self._mixture.quotas, strict=True)
        start = {} if self.start == Start() else {"start": list(self.start)}
        has_factors = self.config.mixture_changes and any(source.share_of for source in self.sources)
        return digest(
            {
                "snapshot": self.layout.snapshot_id,
                "sources": [[source.name, len(source.rows), quota] for source, quota in quotas],
                "config": self.config.model_dump(mode="json", exclude={"seed", *_OF_SCHEDULE}),
                **start,
                **({"changes": "factors on shares"} if has_factors else {}),
                **{name: value for name, value in self.config.model_dump(include={*_IDENTITY}).items() if value},
            }
        )


def held_out_batches(
    sources: Sequence[Source], layout: RowLayout, batch_size: int, with_structure: bool = False
) -> Iterator[Batch]:
    """Yield every held-out row once, in stored order by source, never infilled. The last batch may be smaller."""
    ordered = sorted((source for source in sources if len(source.rows)), key=lambda source: source.name)
    sizes = np.array([len(source.rows) for source in ordered], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    plain = LoaderConfig(infilling=InfillingParams(rate=0))
    for first in range(0, int(sizes.sum()), batch_size):
        places_B = np.arange(first, min(first + batch_size, int(sizes.sum())))
        sources_B = np.searchsorted(starts, places_B, side="right") - 1
        places = sources_B, np.ones_like(places_B), places_B - starts[sources_B]
        block = _read_block(ordered, places, layout, plain, with_structure)
        arrays = empty_arrays(len(places_B), layout.row_length, with_structure)
        fill(block, 0, len(places_B), layout, arrays)
        yield Batch(first, block.origins, *arrays)


def _read_block(
    sources: Sequence[Source], places: RowPlaces, layout: RowLayout, config: LoaderConfig, with_structure: bool
) -> Block:
    """Read the rows at these places, infill them and lay them out."""
    sources_R, epochs_R, rows_R = places
    subject = f"rows of snapshot {layout.snapshot_id[:12]}"
    rows = gather([source.rows for source in sources], sources_R, rows_R, subject, with_structure)
    for place, ids in enumerate(rows.input_ids):
        if len(ids) != layout.row_length:
            subject = f"row {rows_R[place]} of source {sources[sources_R[place]].name}"
            raise SnapshotError(subject, f"it has {len(ids)} slots", f"{layout.row_length}")
    infilled = infill_rows(rows, epochs_R, layout.sentinels.eos, config.seed, config.infilling)
    names = tuple(source.name for source in sources)
    origins = RowOrigins(names, *places, rows.num_pieces_R, *infilled, rows.files_R, rows.commits_R)
    return lay_out_rows(rows, origins, layout)


def _word(name: str) -> int:
    """Return 64 bits of a source's name: its order does not change when other sources are added or removed."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"sluice/source").digest(), "little")
