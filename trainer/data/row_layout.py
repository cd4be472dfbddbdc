"""Layout of rows as the model sees them: a batch's pieces, infilled or plain, one after the other, padding last.

Infilling is decided for many rows at once; then the slots are copied in runs, straight from the mapped rows, without an
index of single slots.

Shapes: R rows of a block, B rows of a batch, T slots of a row, P pieces of the rows, I of them infilled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.contracts.training_row import INFILLING_TOKENS, NO_DOCUMENT, NUM_SENTINELS
from pipeline.core.errors import SnapshotError
from trainer.config.training_config import InfillingParams
from trainer.data.batch import Arrays, RowOrigins
from trainer.data.infilling import Sentinels, infill
from trainer.data.infilling_spans import InfillingPieces
from trainer.data.keyed_hash import Integers
from trainer.data.mapped_rows import MappedRows

NO_STRUCTURE = b"\0"


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Format of the rows of snapshot `snapshot_id`: slots of a row, the ids of the special tokens, and the number of ids."""

    snapshot_id: str
    row_length: int
    pad: int
    sentinels: Sentinels
    vocabulary_size: int = 1 << 16

    @classmethod
    def of(
        cls, snapshot_id: str, row_length: int, specials: Mapping[str, int], vocabulary_size: int = 1 << 16
    ) -> "RowLayout":
        """Return the layout for the special tokens of a vocabulary."""
        sentinels = Sentinels(*(specials[name] for name in (*INFILLING_TOKENS, "<|eos|>")))
        return cls(snapshot_id, row_length, specials["<|pad|>"], sentinels, vocabulary_size)


Cut = tuple[int, int, int, int, bool]
"""An infilled piece in slots of its plain row: begin of its text, begin and end of its middle, end of its text; and whether
its form is SPM. A plain tuple, which the garbage collector need not visit."""


class Block(NamedTuple):
    """R rows and their layout: the cuts of each row, and runs of equal `doc_ids`, padding the last of a row."""

    rows: MappedRows
    origins: RowOrigins
    cuts: list[list[Cut]]
    run_values: npt.NDArray[np.int32]
    run_lengths: Integers
    first_runs_R: Integers


def infill_rows(
    rows: MappedRows, epochs_R: Integers, eos: int, seed: int, params: InfillingParams
) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Decide the infilling of each piece of the rows: the columns `starts_P`, `ends_P` and `are_spm_P` of their origins."""
    if not params.rate:
        plain_P = np.full(len(rows.lengths_P), -1)
        return plain_P, plain_P, np.zeros(len(plain_P), dtype=np.bool_)
    return infill(_pieces(rows, eos), np.repeat(epochs_R, rows.num_pieces_R), seed, params)


def lay_out_rows(rows: MappedRows, origins: RowOrigins, layout: RowLayout) -> Block:
    """Return the rows with the new places of their pieces."""
    num_rows = len(rows.num_pieces_R)
    chosen = np.flatnonzero(origins.starts_P >= 0)
    row_P = np.repeat(np.arange(num_rows), rows.num_pieces_R)
    cuts: list[list[Cut]] = [[] for _ in range(num_rows)]
    for row, cut in zip(row_P[chosen].tolist(), _cuts(rows, origins, chosen, layout.sentinels.eos), strict=True):
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
    run_lengths[ends_R - 1] = layout.row_length - used_R
    if (run_lengths < 0).any():
        raise SnapshotError(
            "rows", "a row has no room for the sentinels of its pieces", f"{NUM_SENTINELS} slots a piece"
        )
    return Block(rows, origins, cuts, run_values, run_lengths, np.append(0, ends_R))


def fill(block: Block, first: int, last: int, layout: RowLayout, arrays: Arrays) -> None:
    """Write rows `first` to `last` of the block into the arrays of a batch.

    `target_ids` is the shift; the mask is False on a piece's last slot and on padding.
    """
    sentinels = [np.uint16(spelled).tobytes() for spelled in layout.sentinels[:NUM_SENTINELS]]
    ids_BT, targets_BT, mask_BT, doc_ids_BT, *structure = arrays
    ids = _in_runs(block.rows.input_ids, block.cuts[first:last], first, sentinels, np.uint16)
    if ids.max() >= layout.vocabulary_size:
        raise SnapshotError("rows", f"id {ids.max()} is in them", f"less than {layout.vocabulary_size}")
    ids_BT[...] = ids.reshape(ids_BT.shape)
    targets_BT[:, :-1] = ids_BT[:, 1:]
    targets_BT[:, -1] = layout.pad
    runs = slice(block.first_runs_R[first], block.first_runs_R[last])
    values, lengths = block.run_values[runs], block.run_lengths[runs]
    doc_ids_BT[...] = np.repeat(values, lengths).reshape(ids_BT.shape)
    np.greater(doc_ids_BT, 0, out=mask_BT)
    ends = np.cumsum(lengths)[values > 0] - 1
    mask_BT[np.divmod(ends, layout.row_length)] = False
    for column, array_BT in zip(block.rows.structure, structure, strict=True):
        kinds = _in_runs(column, block.cuts[first:last], first, [NO_STRUCTURE] * NUM_SENTINELS, np.uint8)
        array_BT[...] = kinds.reshape(ids_BT.shape)


def _pieces(rows: MappedRows, eos: int) -> InfillingPieces:
    """Return the pieces without BOS and EOS, chunks counted from the first text token."""
    first_slots_P = rows.last_slots_P - rows.lengths_P + 1
    starts_C = rows.chunk_starts_C - np.repeat(first_slots_P + 1, rows.num_chunks_P)
    num_tokens_P = rows.lengths_P - 1 - (rows.last_ids_P == eos)
    first_chunks_P = np.cumsum(rows.num_chunks_P) - rows.num_chunks_P
    return InfillingPieces(rows.piece_ids_P, num_tokens_P, first_chunks_P, rows.num_chunks_P, starts_C)


def _cuts(rows: MappedRows, origins: RowOrigins, chosen_I: Integers, eos: int) -> list[Cut]:
    first_I = rows.last_slots_P[chosen_I] - rows.lengths_P[chosen_I] + 2
    stop_I = rows.last_slots_P[chosen_I] + (rows.last_ids_P[chosen_I] != eos)
    begin_I, end_I = (first_I + edges_P[chosen_I] for edges_P in (origins.starts_P, origins.ends_P))
    columns = (first_I, begin_I, end_I, stop_I, origins.are_spm_P[chosen_I])
    return list(zip(*(column.tolist() for column in columns), strict=True))  # type: ignore[arg-type]


def _in_runs(
    columns: Sequence[memoryview],
    cuts: Sequence[Sequence[Cut]],
    first_row: int,
    sentinels: Sequence[bytes],
    kind: Any,
) -> npt.NDArray[Any]:
    """Return the slots of some rows in their new order, one row after the other. Slots between two infilled pieces are one run.

    EOS after the text of a piece stays at the end of the piece; the padding of the row is shortened.
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
    return np.frombuffer(b"".join(runs), dtype=kind)
