"""Rows as the model will see them: a batch's pieces infilled where it was decided, one behind the other, padding last.

Everything is copied in runs of slots, straight from the mapped row into the batch; no index of single slots is built.
Shapes: B rows of a batch, T slots of a row, P pieces of the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.tokenize.fim import Form, Infillable, Infilling, InfillingParams, Sentinels, draw, infill
from trainer.rows import Row

NO_DOCUMENT = -1
"""`doc_ids` of a padding slot; pieces count from 1."""

Decisions = Sequence[Sequence[Infilling | None]]


class Filled(NamedTuple):
    """The arrays of a batch, each (B, T)."""

    input_ids_BT: npt.NDArray[np.int64]
    target_ids_BT: npt.NDArray[np.int64]
    loss_mask_BT: npt.NDArray[np.bool_]
    doc_ids_BT: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Slots:
    """How slots are written: how many a row has, the id of padding, and the ids that infilling writes."""

    row_length: int
    pad: int
    sentinels: Sentinels


def decide_rows(
    rows: Sequence[Row], epochs: Sequence[int], eos: int, seed: int, params: InfillingParams
) -> list[list[Infilling | None]]:
    """What becomes of each piece of each row. One draw for all of them; only pieces that are infilled are looked at."""
    if not params.rate:
        return [[None] * len(row.lengths) for row in rows]
    counts = [len(row.lengths) for row in rows]
    drawn = draw(np.concatenate([row.piece_ids for row in rows]), np.repeat(epochs, counts), seed, params)
    decisions: list[list[Infilling | None]] = []
    first = 0
    for row, count in zip(rows, counts, strict=True):
        numbers, forms = drawn.numbers[first : first + count], drawn.are_spm[first : first + count]
        decisions.append(_decide_row(row, numbers, forms, eos, seed, params) if max(numbers) >= 0 else [None] * count)
        first += count
    return decisions


def fill(rows: Sequence[Row], decisions: Decisions, slots: Slots) -> Filled:
    """The batch of these rows. `target_ids` is the shift; the mask is False on a piece's last slot and on padding."""
    shape = len(rows), slots.row_length
    ids_BT = np.empty(shape, dtype=np.int64)
    doc_ids_BT = np.empty(shape, dtype=np.int32)
    target_ids_BT = np.empty(shape, dtype=np.int64)
    last_slots: list[int] = []
    for place, (row, row_decisions) in enumerate(zip(rows, decisions, strict=True)):
        lengths = row.lengths.tolist()
        if any(row_decisions):
            lengths = _infill_row(ids_BT[place], row.input_ids, lengths, row_decisions, slots)
        else:
            ids_BT[place] = row.input_ids
        last_slots += _number_pieces(doc_ids_BT[place], lengths, place * slots.row_length)
    target_ids_BT[:, :-1] = ids_BT[:, 1:]
    target_ids_BT[:, -1] = slots.pad
    loss_mask_BT = doc_ids_BT > 0
    loss_mask_BT.reshape(-1)[last_slots] = False
    return Filled(ids_BT, target_ids_BT, loss_mask_BT, doc_ids_BT)


def _decide_row(
    row: Row, numbers: Sequence[int], forms: Sequence[bool], eos: int, seed: int, params: InfillingParams
) -> list[Infilling | None]:
    decisions: list[Infilling | None] = [None] * len(numbers)
    slot = chunk = 0
    lengths, chunk_counts = row.lengths.tolist(), row.chunk_counts.tolist()
    for place, (length, num_chunks, number) in enumerate(zip(lengths, chunk_counts, numbers, strict=True)):
        if number >= 0:
            num_tokens = length - 1 - int(row.input_ids[slot + length - 1] == eos)
            starts = row.chunk_starts[chunk : chunk + num_chunks].astype(np.int64) - (slot + 1)
            piece = Infillable(int(row.piece_ids[place]), num_tokens, starts)
            decisions[place] = infill(piece, number, forms[place], seed, params)
        slot += length
        chunk += num_chunks
    return decisions


def _infill_row(
    ids_T: npt.NDArray[np.int64],
    plain_T: npt.NDArray[np.uint16],
    lengths: Sequence[int],
    decisions: Sequence[Infilling | None],
    slots: Slots,
) -> list[int]:
    """Write the row's pieces into `ids_T`; returns their new lengths."""
    filled: list[int] = []
    start = slot = 0
    for length, infilling in zip(lengths, decisions, strict=True):
        if infilling is None:
            ids_T[slot : slot + length] = plain_T[start : start + length]
            filled.append(length)
        else:
            _infill_piece(ids_T[slot : slot + length + 3], plain_T[start : start + length], infilling, slots.sentinels)
            filled.append(length + 3)
        start += length
        slot += filled[-1]
    ids_T[slot:] = slots.pad
    return filled


def _infill_piece(
    out: npt.NDArray[np.int64], plain: npt.NDArray[np.uint16], infilling: Infilling, sentinels: Sentinels
) -> None:
    """The runs of `pipeline.tokenize.fim`, copied: what stands behind the middle stays at the piece's end with its EOS."""
    begin, end = 1 + infilling.start, 1 + infilling.end
    text_end = len(plain) - int(plain[-1] == sentinels.eos)
    num_suffix = text_end - end
    out[0], out[1] = plain[0], sentinels.prefix
    if infilling.form is Form.PSM:
        at_suffix = begin + 1
        out[2:at_suffix] = plain[1:begin]
        middle: Any = plain[begin:end]
    else:
        at_suffix = 2
        middle = plain[1:end]
    at_middle = at_suffix + 1 + num_suffix
    out[at_suffix] = sentinels.suffix
    out[at_suffix + 1 : at_middle] = plain[end:text_end]
    out[at_middle] = sentinels.middle
    out[at_middle + 1 : at_middle + 1 + len(middle)] = middle
    out[text_end + 3 :] = plain[text_end:]


def _number_pieces(doc_ids_T: npt.NDArray[np.int32], lengths: Sequence[int], first_slot: int) -> list[int]:
    """Write `doc_ids` of a row; returns the last slot of each piece, counted through the batch."""
    last_slots: list[int] = []
    slot = 0
    for number, length in enumerate(lengths, start=1):
        doc_ids_T[slot : slot + length] = number
        slot += length
        last_slots.append(first_slot + slot - 1)
    doc_ids_T[slot:] = NO_DOCUMENT
    return last_slots
