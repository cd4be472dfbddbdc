"""From a logical position to a batch: a pure function of snapshot, seed and position.

It knows no ranks, workers, micro-batches or prefetch; those divide the positions and change no row. Nothing is drawn
from a global generator and nothing is remembered: the state of a reading is its position.

Shapes: B rows of a batch, R rows of a block, T slots of a row, P pieces.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

import numpy as np
from pydantic import Field

from pipeline.core.errors import SnapshotError, TrainingError
from pipeline.core.params import Params, digest
from trainer.config.training import InfillingParams
from trainer.data.batch import Batch, Contents, ResumeTriple, finish
from trainer.data.infilling import Sentinels
from trainer.data.keyed_hash import keyed
from trainer.data.mapped_rows import Integers, TrainingRows, gather
from trainer.data.mixture import Mixture
from trainer.data.permutation import Permutation, permute
from trainer.data.row_layout import Block, Filled, Slots, decide, fill, lay_out, plain

__all__ = ["Batch", "ResumeTriple"]

STATE_VERSION = 1
_MAX_DENOMINATOR = 10_000
_PUBLISHED_EPOCHS = 2

BLOCK_ROWS = 512
"""Positions whose rows are found and decided together. It changes no batch."""


class EpochOrder(StrEnum):
    """In which order a source's rows are read."""

    PERMUTED = "permuted"
    """A new permutation in every epoch."""
    PUBLISHED = "published"
    """As they are stored in the first two epochs, permuted after that."""


class LoaderConfig(Params):
    """What decides order and content of the batches, besides the snapshot."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of order and infilling. The model has a seed of its own."""
    epoch_order: EpochOrder = EpochOrder.PERMUTED
    """In which order a source's rows are read."""
    infilling: InfillingParams = Field(default_factory=InfillingParams)
    """How often and where pieces are infilled."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How rows are written: their slots, and the ids of the special tokens in them. `snapshot_id` names the data."""

    snapshot_id: str
    slots: Slots

    @classmethod
    def of(
        cls, snapshot_id: str, row_length: int, specials: Mapping[str, int], vocabulary_size: int = 1 << 16
    ) -> "RowLayout":
        """The layout by the spellings of the vocabulary's specials."""
        names = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|eos|>")
        sentinels = Sentinels(*(specials[name] for name in names))
        return cls(snapshot_id, Slots(row_length, specials["<|pad|>"], sentinels, vocabulary_size))

    @property
    def row_length(self) -> int:
        """Slots of a row."""
        return self.slots.row_length

    @property
    def sentinels(self) -> Sentinels:
        """The ids that infilling writes or must know."""
        return self.slots.sentinels


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of one source and the weight of each of them in the mixture."""

    name: str
    rows: TrainingRows
    weight: float = 1.0


class Start(NamedTuple):
    """Where the reading of a snapshot begins in a run: at which position, behind how many epochs of snapshots before it.

    Epochs go on counting, so that a document which two snapshots share is permuted and infilled anew in the second.
    """

    position: int = 0
    epochs: int = 0


class Sample(NamedTuple):
    """What stands at a logical position.

    `source` is a place in `Loader.sources`, `epoch` the source's own, counted from 1.
    """

    source: int
    epoch: int
    row: int


class Samples(NamedTuple):
    """What stands at R positions: places in `Loader.sources`, the sources' own epochs counted from 1, and rows."""

    sources_R: Integers
    epochs_R: Integers
    rows_R: Integers


class Loader:
    """The training rows of a snapshot, in the order of a seed. Sources without rows take no part.

    `with_structure` adds the two columns of structure to the batches; it changes nothing else in them.
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
        self.layout = layout
        self.config = config
        self.with_structure = with_structure
        self.start = start
        self._mixture = Mixture([_share(source.weight) * len(source.rows) for source in self.sources])
        self._sizes = np.array([len(source.rows) for source in self.sources], dtype=np.int64)
        self._source_words = [_word(source.name) for source in self.sources]
        self._orders: dict[int, tuple[int, Permutation]] = {}
        self._blocks: dict[int, _SampledBlock] = {}
        self.mixture_digest = self._digest()

    @property
    def num_rows(self) -> int:
        """Rows of all sources: the samples of an epoch where all weights are equal."""
        return sum(len(source.rows) for source in self.sources)

    def sample_at(self, position: int) -> Sample:
        """Source, epoch and row of a logical position, counted from 0. Takes the same short time everywhere."""
        return Sample(*(int(column_R[0]) for column_R in self.samples_at(position, 1)))

    def samples_at(self, position: int, num_rows: int) -> Samples:
        """Source, epoch and row of the positions from `position` on."""
        sources_R, numbers_R = self._mixture.draw_all(position - self.start.position, num_rows)
        turns_R, rows_R = np.divmod(numbers_R, self._sizes[sources_R])
        epochs_R = turns_R + self.start.epochs + 1
        is_published = self.config.epoch_order is EpochOrder.PUBLISHED
        permuted = np.flatnonzero(epochs_R > (_PUBLISHED_EPOCHS if is_published else 0))
        if len(permuted):
            pairs = np.stack([sources_R[permuted], epochs_R[permuted]])
            known, which = np.unique(pairs, axis=1, return_inverse=True)
            orders = [self._order_of(source, epoch) for source, epoch in known.T.tolist()]
            rows_R[permuted] = permute(orders, which.reshape(-1), rows_R[permuted])
        return Samples(sources_R, epochs_R, rows_R)

    def finished_epochs(self, position: int) -> int:
        """Epochs behind `position` of the source that is furthest behind: so often was every row of every source read."""
        return int((self._num_read(position) // self._sizes).min()) + self.start.epochs

    def started_epochs(self, position: int) -> int:
        """The latest epoch that any source began before `position`."""
        return int((-(-self._num_read(position) // self._sizes)).max()) + self.start.epochs

    def _num_read(self, position: int) -> Integers:
        return self._mixture.count_before(position - self.start.position)

    def batch_at(self, position: int, batch_size: int) -> Batch:
        """The global batch of the rows at `position` and the `batch_size - 1` positions behind it."""
        if position < self.start.position or batch_size < 1:
            raise TrainingError(
                "batch", f"{batch_size} rows at position {position}", f"1 or more, at {self.start.position} or later"
            )
        out = Filled.empty(batch_size, self.layout.row_length, self.with_structure)
        parts: list[Contents] = []
        place = 0
        while place < batch_size:
            number, first = divmod(position - self.start.position + place, BLOCK_ROWS)
            last = min(BLOCK_ROWS, first + batch_size - place)
            found, num_rows = self._block(number), last - first
            fill(found.block, first, last, self.layout.slots, out.rows(slice(place, place + num_rows)))
            parts.append(found.contents(self._names, first, last))
            place += num_rows
        return finish(position, out, Contents.concatenated(parts))

    def _block(self, number: int) -> "_SampledBlock":
        """The rows of block `number` behind the start, decided together. The last two blocks are kept at hand."""
        found = self._blocks.get(number)
        if found is None:
            samples = self.samples_at(self.start.position + number * BLOCK_ROWS, BLOCK_ROWS)
            found = _read(self.sources, samples, self.layout, self.config, self.with_structure)
            self._blocks = dict([*self._blocks.items(), (number, found)][-2:])
        return found

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)

    def __getstate__(self) -> dict[str, object]:
        # Blocks are made again in a worker; their rows must not travel to it.
        return self.__dict__ | {"_blocks": {}}

    def state_at(self, position: int) -> dict[str, int | str]:
        """The whole state of a reading that goes on at `position`, as JSON of less than 200 bytes."""
        return {
            "version": STATE_VERSION,
            "mixture": self.mixture_digest,
            "seed": self.config.seed,
            "position": position,
        }

    def position_of(self, state: Mapping[str, int | str]) -> int:
        """Where a state goes on. Raises TrainingError for a state of other data, another seed or another version."""
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
        """The order of a source in an epoch. The last one asked for is kept at hand; it is made in microseconds."""
        kept = self._orders.get(source)
        if kept is None or kept[0] != epoch:
            key = keyed(self.config.seed, self._source_words[source], epoch)
            kept = self._orders[source] = epoch, Permutation(len(self.sources[source].rows), key)
        return kept[1]

    def _digest(self) -> str:
        """Names data and proportions: the snapshot, each source's rows and quota, and how rows are read.

        The seed stands beside it.
        """
        quotas = zip(self.sources, self._mixture.quotas, strict=True)
        start = {} if self.start == Start() else {"start": list(self.start)}
        return digest(
            {
                "snapshot": self.layout.snapshot_id,
                "sources": [[source.name, len(source.rows), quota] for source, quota in quotas],
                "config": self.config.model_dump(mode="json", exclude={"seed"}),
                **start,
            }
        )


def held_out_batches(
    sources: Sequence[Source], layout: RowLayout, batch_size: int, with_structure: bool = False
) -> Iterator[Batch]:
    """Every held-out row once, in stored order by source, never infilled. The last batch may be smaller."""
    ordered = sorted((source for source in sources if len(source.rows)), key=lambda source: source.name)
    names = tuple(source.name for source in ordered)
    sizes = np.array([len(source.rows) for source in ordered], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    for first in range(0, int(sizes.sum()), batch_size):
        places_B = np.arange(first, min(first + batch_size, int(sizes.sum())))
        sources_B = np.searchsorted(starts, places_B, side="right") - 1
        samples = Samples(sources_B, np.ones_like(places_B), places_B - starts[sources_B])
        found = _read(ordered, samples, layout, None, with_structure)
        filled = Filled.empty(len(places_B), layout.row_length, with_structure)
        fill(found.block, 0, len(places_B), layout.slots, filled)
        yield Batch(first, *filled, found.contents(names, 0, len(places_B)))


class _SampledBlock(NamedTuple):
    """A block and what stands in it."""

    samples: Samples
    block: Block

    def contents(self, names: tuple[str, ...], first: int, last: int) -> Contents:
        """What rows `first` to `last` are."""
        rows, decided = self.block.rows, self.block.decided
        before_R = np.append(0, np.cumsum(rows.num_pieces_R))
        few, pieces = slice(first, last), slice(before_R[first], before_R[last])
        of_pieces = (*decided.spans, decided.are_spm_P)
        return Contents(
            names,
            *(column_R[few] for column_R in (*self.samples, rows.num_pieces_R)),
            *(column_P[pieces] for column_P in of_pieces),
            rows.files_R[few],
            rows.commits_R[few],
        )


def _read(
    sources: Sequence[Source], samples: Samples, layout: RowLayout, config: LoaderConfig | None, with_structure: bool
) -> _SampledBlock:
    """The rows of these samples, decided and laid out; plain without a configuration."""
    subject = f"rows of snapshot {layout.snapshot_id[:12]}"
    rows = gather([source.rows for source in sources], samples.sources_R, samples.rows_R, subject, with_structure)
    for place, ids in enumerate(rows.input_ids):
        if len(ids) != layout.row_length:
            subject = f"row {samples.rows_R[place]} of source {sources[samples.sources_R[place]].name}"
            raise SnapshotError(subject, f"it has {len(ids)} slots", f"{layout.row_length}")
    eos = layout.sentinels.eos
    decided = decide(rows, samples.epochs_R, eos, config.seed, config.infilling) if config else plain(rows)
    return _SampledBlock(samples, lay_out(rows, decided, layout.slots))


def _share(weight: float) -> Fraction:
    """A weight as the fraction that was meant; one too small for that, exactly."""
    return Fraction(weight).limit_denominator(_MAX_DENOMINATOR) or Fraction(weight)


def _word(name: str) -> int:
    """A source's own 64 bits: its order does not change when other sources come or go."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"sluice/source").digest(), "little")
