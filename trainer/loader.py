"""From a logical position to a batch: a pure function of snapshot, seed and position.

It knows no ranks, workers, micro-batches or prefetch; those divide the positions and change no row. Nothing is drawn
from a global generator and nothing is remembered: the state of a reading is its position.

Shapes: B rows of a batch, T slots of a row, P pieces of a row.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.errors import SnapshotError, TrainingError
from pipeline.params import Params, digest
from pipeline.tokenize.fim import Infilling, InfillingParams, Sentinels, keyed
from trainer.filling import Decisions, Slots, decide_rows, fill
from trainer.mixture import Mixture
from trainer.permutation import Permutation
from trainer.rows import Row, TrainingRows

STATE_VERSION = 1
_MAX_DENOMINATOR = 10_000
_PUBLISHED_EPOCHS = 2


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
    def of(cls, snapshot_id: str, row_length: int, specials: Mapping[str, int]) -> "RowLayout":
        """The layout by the spellings of the vocabulary's specials."""
        names = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|eos|>")
        sentinels = Sentinels(*(specials[name] for name in names))
        return cls(snapshot_id, Slots(row_length, specials["<|pad|>"], sentinels))

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


class Sample(NamedTuple):
    """What stands at a logical position.

    `source` is a place in `Loader.sources`, `epoch` the source's own, counted from 1.
    """

    source: int
    epoch: int
    row: int


class ResumeTriple(NamedTuple):
    """What a resumed run must meet again: source, row (with its epoch), and what infilling does with each piece."""

    source: str
    epoch: int
    row: int
    infilling: str


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows of T slots at consecutive positions; the four arrays are (B, T).

    `target_ids` is the shift; the mask is False on a piece's last slot and on padding.
    """

    position: int
    input_ids_BT: npt.NDArray[np.int64]
    target_ids_BT: npt.NDArray[np.int64]
    loss_mask_BT: npt.NDArray[np.bool_]
    doc_ids_BT: npt.NDArray[np.int32]
    triples: tuple[ResumeTriple, ...]

    @property
    def next_position(self) -> int:
        """Where the next batch begins."""
        return self.position + len(self.triples)


class Loader:
    """The training rows of a snapshot, in the order of a seed. Sources without rows take no part."""

    def __init__(self, sources: Sequence[Source], layout: RowLayout, config: LoaderConfig) -> None:
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
        amounts = [
            Fraction(source.weight).limit_denominator(_MAX_DENOMINATOR) * len(source.rows) for source in self.sources
        ]
        self._mixture = Mixture(amounts)
        self._source_words = [_word(source.name) for source in self.sources]
        self._orders: dict[int, tuple[int, Permutation]] = {}
        self.mixture_digest = self._digest()

    @property
    def num_rows(self) -> int:
        """Rows of all sources: the samples of an epoch where all weights are equal."""
        return sum(len(source.rows) for source in self.sources)

    def sample_at(self, position: int) -> Sample:
        """Source, epoch and row of a logical position, counted from 0. Takes the same short time everywhere."""
        source, number = self._mixture.draw(position)
        turn, place = divmod(number, len(self.sources[source].rows))
        epoch = turn + 1
        if self.config.epoch_order is EpochOrder.PUBLISHED and epoch <= _PUBLISHED_EPOCHS:
            return Sample(source, epoch, place)
        return Sample(source, epoch, self._order_of(source, epoch)(place))

    def batch_at(self, position: int, batch_size: int) -> Batch:
        """The rows at `position` and the `batch_size - 1` positions behind it."""
        samples = [self.sample_at(place) for place in range(position, position + batch_size)]
        rows = [self.sources[sample.source].rows[sample.row] for sample in samples]
        epochs, eos = [sample.epoch for sample in samples], self.layout.sentinels.eos
        decisions = decide_rows(rows, epochs, eos, self.config.seed, self.config.infilling)
        triples = tuple(
            ResumeTriple(self.sources[sample.source].name, sample.epoch, sample.row, _spelling(infillings))
            for sample, infillings in zip(samples, decisions, strict=True)
        )
        return _batch(position, rows, decisions, triples, self.layout)

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
        return digest(
            {
                "snapshot": self.layout.snapshot_id,
                "sources": [[source.name, len(source.rows), quota] for source, quota in quotas],
                "config": self.config.model_dump(mode="json", exclude={"seed"}),
            }
        )


def held_out_batches(sources: Sequence[Source], layout: RowLayout, batch_size: int) -> Iterator[Batch]:
    """Every held-out row once, in stored order by source, never infilled. The last batch may be smaller."""
    ordered = sorted(sources, key=lambda source: source.name)
    places = [(source, row) for source in ordered for row in range(len(source.rows))]
    for start in range(0, len(places), batch_size):
        chosen = places[start : start + batch_size]
        triples = tuple(ResumeTriple(source.name, 1, row, "") for source, row in chosen)
        rows = [source.rows[row] for source, row in chosen]
        yield _batch(start, rows, [[None] * len(row.lengths) for row in rows], triples, layout)


def _batch(
    position: int, rows: Sequence[Row], decisions: Decisions, triples: tuple[ResumeTriple, ...], layout: RowLayout
) -> Batch:
    _check_lengths(rows, triples, layout.row_length)
    return Batch(position, *fill(rows, decisions, layout.slots), triples)


def _check_lengths(rows: Sequence[Row], triples: Sequence[ResumeTriple], row_length: int) -> None:
    for row, triple in zip(rows, triples, strict=True):
        if len(row.input_ids) != row_length:
            subject = f"row {triple.row} of source {triple.source}"
            raise SnapshotError(subject, f"it has {len(row.input_ids)} slots", f"{row_length}")


def _spelling(infillings: Sequence[Infilling | None]) -> str:
    return " ".join("plain" if infilling is None else str(infilling) for infilling in infillings)


def _word(name: str) -> int:
    """A source's own 64 bits: its order does not change when other sources come or go."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"sluice/source").digest(), "little")
