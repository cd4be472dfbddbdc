"""RowsRead: the rows that the run of a checkpoint has read, without its tensors: what was in a slot, and every read of a row.

Shapes: N reads, P pieces of a row, T slots.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipeline.contracts.training_row import INFILLING_TOKENS
from pipeline.core.errors import DamagedError, MissingError, TrainingError
from pipeline.core.records import Split
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from trainer.checkpoint.batch_positions import batch_sizes, change_positions, position_of_step
from trainer.checkpoint.stored_state import changes_rows, open_stored, training_place
from trainer.config.training_config import TrainingConfig
from trainer.data.batch import RowOrigins
from trainer.data.infilling import Form, Infilling, source_slots
from trainer.data.keyed_hash import Integers
from trainer.data.loader import Loader, LoaderConfig, Start
from trainer.data.mapped_rows import MappedRows
from trainer.data.open_loader import WeightedSnapshot, open_loader, open_mixture
from trainer.data.row_selection import RowSelection

_POSITIONS_AT_ONCE = 1 << 16
_PADDING = -4
_SPECIAL = {**{-place: name for place, name in enumerate(INFILLING_TOKENS, 1)}, _PADDING: "padding"}
"""Names of what a slot shows that no slot of the stored row has."""


@dataclass(frozen=True)
class TokenRead:
    """Token in a slot of a batch: a slot of a stored row of a snapshot, in an epoch of its source, and the form of its piece."""

    checkpoint_id: str
    step: int
    position: int
    snapshot_id: str
    row: str
    """SOURCE/SPLIT/PACK_ID."""
    slot: int
    token_id: int
    epoch: int
    infilling: str


class RowRead(NamedTuple):
    """A read of a row: the step that trained on it, and the epoch of its source."""

    pack_id: int
    step: int
    epoch: int


class _Stretch(NamedTuple):
    """The rows from a position on, and the snapshot that they are of; None for a mixture, whose sources name theirs."""

    position: int
    loader: Loader
    snapshot_id: str | None


class RowsRead:
    """The rows that the run of a checkpoint has read, up to its step."""

    def __init__(self, store: Store, checkpoint_id: str) -> None:
        self.checkpoint_id = checkpoint_id
        self._store = store
        self._place = training_place(open_stored(store, checkpoint_id))
        self._config = TrainingConfig.model_validate(self._place.identity["config"])
        self._sizes = batch_sizes(self._place.forks)

    def token(self, step: int, row: int, slot: int) -> TokenRead:
        """Find what slot `slot` of row `row` showed in the batch of a step, counted from 1.

        Raises MissingError for a step, a row or a slot that there was not, and for sentinels of infilling and padding, which no
        stored row has; TrainingError for a step before a resume that changed the rows.
        """
        subject = f"checkpoint {self.checkpoint_id[:12]}"
        if not 1 <= step <= self._place.step:
            expected = f"1 to {self._place.step}"
            raise MissingError(f"step {step} of {subject}", "it has not been there", expected, "Name one of these.")
        self._refuse_before_fork(step)
        position, end = (self._position(number) for number in (step - 1, step))
        if not 0 <= row < end - position:
            found, expected = f"the batch has {end - position} rows", f"0 to {end - position - 1}"
            raise MissingError(f"row {row} of step {step}", found, expected, "Name one of these.")
        stretch = [each for each in self._stretches if each.position <= position][-1]
        batch = stretch.loader.batch_at(position, end - position)
        origins = batch.origins.between(row, row + 1)
        place, epoch, number = (int(column[0]) for column in origins[1:4])
        source = stretch.loader.sources[place]
        mapped = source.rows[number]
        slots_T = _plain_slots(mapped, origins, stretch.loader)
        if not 0 <= slot < len(slots_T):
            found = f"a row has {len(slots_T)} slots"
            raise MissingError(f"slot {slot}", found, f"0 to {len(slots_T) - 1}", "Name one of these.")
        plain = int(slots_T[slot])
        if plain < 0:
            what = f"slot {slot} of row {row} of step {step}"
            found = f"it is {_SPECIAL[plain]}, which is of no bytes of a file"
            raise MissingError(what, found, "a slot with a token of a text", "Name another slot.")
        token_id = int(mapped.input_ids[0][plain])
        if token_id != int(batch.input_ids_BT[row, slot]):
            raise DamagedError(
                f"row {number} of source {source.name}", "its layout is not that of the batch", "the same ids"
            )
        pack_id = int(source.rows.stored_rows(np.array([number]))[0])
        name = f"{source.source}/{Split.TRAIN}/{pack_id}"
        snapshot_id, form = self._snapshot_of(stretch, source.name), _form_at(slot, mapped, origins)
        return TokenRead(self.checkpoint_id, step, position, snapshot_id, name, plain, token_id, epoch, form)

    def reads(self, snapshot_id: str, source: str, pack_ids: Collection[int]) -> list[RowRead]:
        """Find every read of some training rows of a snapshot, in order of step, from the `first_known_step` on."""
        found: list[RowRead] = []
        wanted = np.array(sorted(pack_ids), dtype=np.int64)
        first, last = self._position(self.first_known_step - 1), self._position(self._place.step)
        bounds_N = np.array([self._position(step) for step in range(self._place.step + 1)])
        for stretch, end in self._in_turn(last):
            places = [
                place
                for place, each in enumerate(stretch.loader.sources)
                if each.source == source and self._snapshot_of(stretch, each.name) == snapshot_id
            ]
            for start in range(max(first, stretch.position), end if places else 0, _POSITIONS_AT_ONCE):
                number = min(end - start, _POSITIONS_AT_ONCE)
                sources_N, epochs_N, rows_N = stretch.loader.locate(start, number)
                for place in places:
                    mine_N = np.flatnonzero(sources_N == place)
                    stored_N = stretch.loader.sources[place].rows.stored_rows(rows_N[mine_N])
                    hits_N = np.flatnonzero(np.isin(stored_N, wanted))
                    steps_N = np.searchsorted(bounds_N, start + mine_N[hits_N], side="right")
                    columns = (stored_N[hits_N], steps_N, epochs_N[mine_N[hits_N]])
                    found += map(RowRead, *(column.tolist() for column in columns))
        return sorted(found, key=lambda read: (read.step, read.pack_id))

    @cached_property
    def first_known_step(self) -> int:
        """The first step whose rows the checkpoint tells: that after the last resume that changed the rows."""
        changes = (fork["step"] for fork in self._place.forks if changes_rows(fork["fields"]))
        return max(changes, default=0) + 1

    @cached_property
    def _stretches(self) -> list[_Stretch]:
        found = self._opened()
        self._require_same_rows(found[-1].loader)
        return found

    def _opened(self) -> list[_Stretch]:
        place, identity = self._place, self._place.identity
        positions = change_positions(place.forks, self._config)
        config = LoaderConfig.of_training(self._config, identity["seed"], positions)
        selection = RowSelection.of_identity(identity.get("selection", {}))
        mixture = sorted(identity.get("mixture", {}).items())
        if mixture:
            members = [WeightedSnapshot(open_snapshot(self._store, name), weight) for name, weight in mixture]
            return [_Stretch(0, open_mixture(members, config, selection=selection), None)]
        snapshot = open_snapshot(self._store, identity["snapshot_id"])
        found = [_Stretch(0, open_loader(snapshot, config, selection=selection), snapshot.snapshot_id)]
        for adoption in place.adoptions:
            start = Start(adoption["position"], found[-1].loader.started_epochs(adoption["position"]))
            snapshot = open_snapshot(self._store, adoption["new"])
            loader = open_loader(snapshot, config, start=start, selection=selection)
            found.append(_Stretch(start.position, loader, snapshot.snapshot_id))
        return found

    def _require_same_rows(self, loader: Loader) -> None:
        """Raise TrainingError for a run whose rows this program draws in another order, as of an earlier version."""
        found, expected = self._place.loader["mixture"], loader.mixture_digest
        if found != expected:
            subject = f"loader state of checkpoint {self.checkpoint_id[:12]}"
            remedy = "Ask the program that trained it."
            raise TrainingError(subject, f"its mixture is {found}", f"{expected}, which this program draws", remedy)

    def _in_turn(self, last: int) -> Iterator[tuple[_Stretch, int]]:
        """Iterate over the stretches, each with its end."""
        ends = [*(each.position for each in self._stretches[1:]), last]
        return zip(self._stretches, ends, strict=True)

    def _position(self, step: int) -> int:
        return position_of_step(step, self._sizes, self._config.batch_rows)

    def _snapshot_of(self, stretch: _Stretch, source: str) -> str:
        if stretch.snapshot_id is not None:
            return stretch.snapshot_id
        short = source.partition("/")[0]
        return next(name for name in self._place.identity["mixture"] if name.startswith(short))

    def _refuse_before_fork(self, step: int) -> None:
        if step < self.first_known_step:
            found = f"the run was resumed after step {self.first_known_step - 1} with other rows"
            remedy = "Name a checkpoint from before: `python -m trainer checkpoints list` shows them."
            raise TrainingError(
                f"step {step} of checkpoint {self.checkpoint_id[:12]}", found, "a step after that", remedy
            )


def _infillings(origins: RowOrigins) -> list[Infilling | None]:
    """Return the infilling of each piece of one row."""
    columns = (origins.starts_P.tolist(), origins.ends_P.tolist(), origins.are_spm_P.tolist())
    forms = zip(*columns, strict=True)
    return [
        None if start < 0 else Infilling(Form.SPM if is_spm else Form.PSM, start, end) for start, end, is_spm in forms
    ]


def _plain_slots(mapped: MappedRows, origins: RowOrigins, loader: Loader) -> Integers:
    """Return for each of the T slots of a row, as it was read, the slot of the stored row; what is in none is negative."""
    eos, first, parts = loader.layout.sentinels.eos, 0, []
    pieces = zip(mapped.lengths_P.tolist(), mapped.last_ids_P.tolist(), _infillings(origins), strict=True)
    for length, last_id, infilling in pieces:
        slots = np.arange(length) if infilling is None else source_slots(infilling, length, last_id == eos)
        parts.append(np.where(slots < 0, slots, slots + first))
        first += length
    used = np.concatenate(parts)
    return np.append(used, np.full(loader.layout.row_length - len(used), _PADDING))


def _form_at(slot: int, mapped: MappedRows, origins: RowOrigins) -> str:
    """Return the form of the piece in a slot of a row as it was read, as `RowOrigin` spells it."""
    infillings = _infillings(origins)
    lengths = [
        length + 3 * (each is not None) for length, each in zip(mapped.lengths_P.tolist(), infillings, strict=True)
    ]
    ends = np.cumsum(lengths)
    found = infillings[int(np.searchsorted(ends, slot, side="right"))]
    return "plain" if found is None else str(found)
