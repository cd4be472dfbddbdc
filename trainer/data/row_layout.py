"""Rows as the model will see them: a batch's pieces infilled where it was decided, one behind the other, padding last.

What becomes of the pieces is found for many rows at once; then the slots are copied in runs, straight from the mapped
rows, and no index of single slots is built.

Shapes: R rows of a block, B rows of a batch, T slots of a row, P pieces of the rows, I of them infilled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.core.errors import SnapshotError
from trainer.config.training import InfillingParams
from trainer.data.infilling import Sentinels, draw, infill
from trainer.data.infilling_spans import Pieces, Spans
from trainer.data.mapped_rows import Integers, Rows

NO_DOCUMENT = -1
"""`doc_ids` of a padding slot; pieces count from 1."""

NUM_SENTINELS = 3
NO_STRUCTURE = b"\0"


class Filled(NamedTuple):
    """The arrays of a batch, each (B, T). The last two are None unless structure was asked for."""

    input_ids_BT: npt.NDArray[np.int64]
    target_ids_BT: npt.NDArray[np.int64]
    loss_mask_BT: npt.NDArray[np.bool_]
    doc_ids_BT: npt.NDArray[np.int32]
    structure_kind_BT: npt.NDArray[np.uint8] | None = None
    dependency_level_BT: npt.NDArray[np.uint8] | None = None

    @classmethod
    def empty(cls, num_rows: int, row_length: int, with_structure: bool) -> "Filled":
        """Arrays to be written."""
        kinds = [np.int64, np.int64, np.bool_, np.int32] + [np.uint8, np.uint8] * with_structure
        return cls(*(np.empty((num_rows, row_length), dtype=kind) for kind in kinds))  # type: ignore[arg-type]

    def rows(self, rows: slice | Integers) -> "Filled":
        """Some of the rows."""
        return Filled(*(None if array is None else array[rows] for array in self))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Slots:
    """How slots are written: how many a row has, the ids of padding and of what infilling writes,
    and how many ids there are."""

    row_length: int
    pad: int
    sentinels: Sentinels
    vocabulary_size: int = 1 << 16


Cut = tuple[int, int, int, int, bool]
"""An infilled piece in slots of its plain row: where its text begins, its middle begins and ends, and its text ends;
and whether it becomes SPM. Plain tuples, which the garbage collector need not look at.
"""


class Decided(NamedTuple):
    """What becomes of the pieces of R rows: their middles, -1 where plain, and whether in the form SPM."""

    spans: Spans
    are_spm_P: npt.NDArray[np.bool_]


class Block(NamedTuple):
    """R rows and how they are laid out: the cuts of each row, and runs of equal `doc_ids`, padding the last of a row."""

    rows: Rows
    decided: Decided
    cuts: list[list[Cut]]
    run_values: npt.NDArray[np.int32]
    run_lengths: Integers
    first_runs_R: Integers


def decide(rows: Rows, epochs_R: Integers, eos: int, seed: int, params: InfillingParams) -> Decided:
    """What becomes of each piece of the rows."""
    if not params.rate:
        return plain(rows)
    drawn = draw(rows.piece_ids_P, np.repeat(epochs_R, rows.num_pieces_R), seed, params)
    return Decided(infill(_pieces(rows, eos), drawn, seed, params), drawn.are_spm_P)


def plain(rows: Rows) -> Decided:
    """No piece is infilled."""
    none = np.full(len(rows.lengths_P), -1, dtype=np.int64)
    return Decided(Spans(none, none), np.zeros(len(none), dtype=np.bool_))


def lay_out(rows: Rows, decided: Decided, slots: Slots) -> Block:
    """The rows with their pieces in their new places."""
    num_rows = len(rows.num_pieces_R)
    chosen = np.flatnonzero(decided.spans.starts_P >= 0)
    row_P = np.repeat(np.arange(num_rows), rows.num_pieces_R)
    cuts: list[list[Cut]] = [[] for _ in range(num_rows)]
    for row, cut in zip(row_P[chosen].tolist(), _cuts(rows, decided, chosen, slots.sentinels.eos), strict=True):
        cuts[row].append(cut)
    lengths_P = rows.lengths_P.copy()
    lengths_P[chosen] += NUM_SENTINELS
    number_P = np.arange(len(row_P)) - (np.cumsum(rows.num_pieces_R) - rows.num_pieces_R)[row_P] + 1
    run_of_P = np.arange(len(row_P)) + row_P
    run_values = np.full(len(row_P) + num_rows, NO_DOCUMENT, dtype=np.int32)
    run_lengths = np.zeros(len(run_values), dtype=np.int64)
    run_values[run_of_P], run_lengths[run_of_P] = number_P, lengths_P
    ends_R = np.cumsum(rows.num_pieces_R + 1)
    used_R = np.bincount(row_P, weights=lengths_P, minlength=num_rows).astype(np.int64)
    run_lengths[ends_R - 1] = slots.row_length - used_R
    if (run_lengths < 0).any():
        raise SnapshotError(
            "rows", "a row has no room for the sentinels of its pieces", f"{NUM_SENTINELS} slots a piece"
        )
    return Block(rows, decided, cuts, run_values, run_lengths, np.append(0, ends_R))


def fill(block: Block, first: int, last: int, slots: Slots, out: Filled) -> None:
    """Write rows `first` to `last` of the block into the rows of `out`.

    `target_ids` is the shift; the mask is False on a piece's last slot and on padding.
    """
    sentinels = [np.uint16(spelled).tobytes() for spelled in slots.sentinels[:NUM_SENTINELS]]
    ids_BT, targets_BT = out.input_ids_BT, out.target_ids_BT
    ids = _in_runs(block.rows.input_ids, block.cuts[first:last], first, sentinels, ids_BT.shape, np.uint16)
    if ids.max() >= slots.vocabulary_size:
        raise SnapshotError("rows", f"id {ids.max()} is in them", f"less than {slots.vocabulary_size}")
    ids_BT[...] = ids
    targets_BT[:, :-1] = ids_BT[:, 1:]
    targets_BT[:, -1] = slots.pad
    runs = slice(block.first_runs_R[first], block.first_runs_R[last])
    values, lengths = block.run_values[runs], block.run_lengths[runs]
    out.doc_ids_BT[...] = np.repeat(values, lengths).reshape(ids_BT.shape)
    np.greater(out.doc_ids_BT, 0, out=out.loss_mask_BT)
    ends = np.cumsum(lengths)[values > 0] - 1
    out.loss_mask_BT[np.divmod(ends, slots.row_length)] = False
    for column, array_BT in zip(block.rows.structure, out[4:], strict=False):
        assert array_BT is not None  # the arrays were made for this block
        array_BT[...] = _in_runs(
            column, block.cuts[first:last], first, [NO_STRUCTURE] * NUM_SENTINELS, ids_BT.shape, np.uint8
        )


def _pieces(rows: Rows, eos: int) -> Pieces:
    """The pieces as infilling sees them: text alone, chunks counted from its first token."""
    first_slots_P = rows.last_slots_P - rows.lengths_P + 1
    starts_C = rows.chunk_starts_C - np.repeat(first_slots_P + 1, rows.num_chunks_P)
    num_tokens_P = rows.lengths_P - 1 - (rows.last_ids_P == eos)
    first_chunks_P = np.cumsum(rows.num_chunks_P) - rows.num_chunks_P
    return Pieces(rows.piece_ids_P, num_tokens_P, first_chunks_P, rows.num_chunks_P, starts_C)


def _cuts(rows: Rows, decided: Decided, chosen_I: Integers, eos: int) -> list[Cut]:
    first_I = rows.last_slots_P[chosen_I] - rows.lengths_P[chosen_I] + 2
    stop_I = rows.last_slots_P[chosen_I] + (rows.last_ids_P[chosen_I] != eos)
    begin_I, end_I = (first_I + edges_P[chosen_I] for edges_P in decided.spans)
    columns = (first_I, begin_I, end_I, stop_I, decided.are_spm_P[chosen_I])
    return list(zip(*(column.tolist() for column in columns), strict=True))  # type: ignore[arg-type]


def _in_runs(
    columns: Sequence[memoryview],
    cuts: Sequence[Sequence[Cut]],
    first_row: int,
    sentinels: Sequence[bytes],
    shape: tuple[int, ...],
    kind: Any,
) -> npt.NDArray[Any]:
    """The slots of some rows in their new order, as one array. Slots between two infilled pieces are one run.

    What stands behind the text of a piece, EOS if anything, stays where its piece ends; of the padding there is less.
    """
    prefix, middle, suffix = sentinels
    both = prefix + suffix
    runs: list[memoryview | bytes] = []
    for row, row_cuts in enumerate(cuts, start=first_row):
        values, done = columns[row], 0
        for first, begin, end, stop, is_spm in row_cuts:
            if is_spm:
                runs += (values[done:first], both, values[end:stop], middle, values[first:end])
            else:
                runs += (values[done:first], prefix, values[first:begin], suffix, values[end:stop])
                runs += (middle, values[begin:end])
            done = stop
        runs.append(values[done : len(values) - NUM_SENTINELS * len(row_cuts)] if done else values)
    return np.frombuffer(b"".join(runs), dtype=kind).reshape(shape)
