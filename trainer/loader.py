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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.errors import SnapshotError, TrainingError
from pipeline.params import Params, digest
from pipeline.tokenize.fim import (
    Infillable,
    Infilling,
    InfillingParams,
    Sentinels,
    decide_all,
    keyed,
    remap_ids,
    source_slots,
)
from trainer.mixture import Mixture
from trainer.permutation import Permutation
from trainer.rows import Row, TrainingRows

STATE_VERSION = 1
NO_DOCUMENT = -1
"""`doc_ids` of a padding slot; pieces count from 1."""

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
    row_length: int
    pad: int
    sentinels: Sentinels

    @classmethod
    def of(cls, snapshot_id: str, row_length: int, specials: Mapping[str, int]) -> "RowLayout":
        """The layout by the spellings of the vocabulary's specials."""
        names = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|eos|>")
        return cls(snapshot_id, row_length, specials["<|pad|>"], Sentinels(*(specials[name] for name in names)))


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
        self.layout = layout
        self.config = config
        amounts = [
            Fraction(source.weight).limit_denominator(_MAX_DENOMINATOR) * len(source.rows) for source in self.sources
        ]
        self._mixture = Mixture(amounts)
        self._source_words = [_word(source.name) for source in self.sources]
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
        key = keyed(self.config.seed, self._source_words[source], epoch)
        return Sample(source, epoch, Permutation(len(self.sources[source].rows), key)(place))

    def batch_at(self, position: int, batch_size: int) -> Batch:
        """The rows at `position` and the `batch_size - 1` positions behind it."""
        samples = [self.sample_at(place) for place in range(position, position + batch_size)]
        read = [self._read(sample) for sample in samples]
        triples = [
            ResumeTriple(self.sources[sample.source].name, sample.epoch, sample.row, _spelling(infillings))
            for sample, (_, infillings) in zip(samples, read, strict=True)
        ]
        return _batch(position, [row for row, _ in read], tuple(triples), self.layout)

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

    def _read(self, sample: Sample) -> tuple["_Filled", list[Infilling | None]]:
        row = self.sources[sample.source].rows[sample.row]
        if not self.config.infilling.rate:
            return _Filled(row.input_ids, row.lengths), [None] * len(row.lengths)
        infillings = decide_all(_infillables(row, self.layout), sample.epoch, self.config.seed, self.config.infilling)
        return _infill(row, infillings, self.layout), infillings

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
        yield _batch(start, [_Filled(row.input_ids, row.lengths) for row in rows], triples, layout)


class _Filled(NamedTuple):
    """The slots of a row and the lengths of its pieces, as the model will see them."""

    input_ids: npt.NDArray[np.uint16]
    lengths: npt.NDArray[np.uint32]


def _infillables(row: Row, layout: RowLayout) -> list[Infillable]:
    ends = np.cumsum(row.lengths, dtype=np.int64)
    chunk_ends = np.cumsum(row.chunk_counts, dtype=np.int64)
    first_slots = ends - row.lengths + 1
    num_tokens = row.lengths - 1 - (row.input_ids[ends - 1] == layout.sentinels.eos)
    return [
        Infillable(
            identity=int(row.piece_ids[piece]),
            num_tokens=int(num_tokens[piece]),
            chunk_starts=row.chunk_starts[chunk_ends[piece] - row.chunk_counts[piece] : chunk_ends[piece]]
            - first_slots[piece],
        )
        for piece in range(len(ends))
    ]


def _infill(row: Row, infillings: Sequence[Infilling | None], layout: RowLayout) -> _Filled:
    """The row with its pieces infilled, one behind the other, padding last."""
    pieces = np.split(row.input_ids, np.cumsum(row.lengths, dtype=np.int64))[:-1]
    filled = [
        ids if infilling is None else _infill_piece(ids, infilling, layout)
        for ids, infilling in zip(pieces, infillings, strict=True)
    ]
    ids_T = np.full(len(row.input_ids), layout.pad, dtype=row.input_ids.dtype)
    lengths_P = np.array([len(ids) for ids in filled], dtype=np.uint32)
    ids_T[: lengths_P.sum()] = np.concatenate(filled)
    return _Filled(ids_T, lengths_P)


def _infill_piece(ids: npt.NDArray[np.uint16], infilling: Infilling, layout: RowLayout) -> npt.NDArray[np.uint16]:
    slots = source_slots(infilling, len(ids), has_eos=int(ids[-1]) == layout.sentinels.eos)
    return remap_ids(ids, slots, layout.sentinels)


def _batch(position: int, rows: Sequence[_Filled], triples: tuple[ResumeTriple, ...], layout: RowLayout) -> Batch:
    shape = len(rows), layout.row_length
    ids_BT = np.empty(shape, dtype=np.int64)
    doc_ids_BT = np.full(shape, NO_DOCUMENT, dtype=np.int32)
    for place, (row, triple) in enumerate(zip(rows, triples, strict=True)):
        if len(row.input_ids) != layout.row_length:
            subject = f"row {triple.row} of source {triple.source}"
            raise SnapshotError(subject, f"it has {len(row.input_ids)} slots", f"{layout.row_length}")
        ids_BT[place] = row.input_ids
        doc_ids = np.repeat(np.arange(1, len(row.lengths) + 1, dtype=np.int32), row.lengths)
        doc_ids_BT[place, : len(doc_ids)] = doc_ids
    target_ids_BT = np.full(shape, layout.pad, dtype=np.int64)
    target_ids_BT[:, :-1] = ids_BT[:, 1:]
    loss_mask_BT = np.zeros(shape, dtype=np.bool_)
    loss_mask_BT[:, :-1] = (doc_ids_BT[:, :-1] == doc_ids_BT[:, 1:]) & (doc_ids_BT[:, 1:] != NO_DOCUMENT)
    return Batch(position, ids_BT, target_ids_BT, loss_mask_BT, doc_ids_BT, triples)


def _spelling(infillings: Sequence[Infilling | None]) -> str:
    return " ".join("plain" if infilling is None else str(infilling) for infilling in infillings)


def _word(name: str) -> int:
    """A source's own 64 bits: its order does not change when other sources come or go."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"sluice/source").digest(), "little")
