"""The rows as they lie on disk, judged from their own columns alone: no code of the packer is used here.

Shapes: N rows, T slots of a row, P pieces of all rows one after the other.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

NUM_SPARE_SLOTS = 3
"""Slots a piece that the sentinels of infilling need."""

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def count_boundary_mismatches(packed: pa.Table, row_length: int, begin_id: int, pad_id: int) -> int:
    """Number of packed rows whose doc_ids, loss mask, targets or counts are not what their document lengths say."""
    if not packed.num_rows:
        return 0
    ids_NT = _matrix(packed, "input_ids", row_length)
    doc_ids_NT, loss_mask_NT, target_ids_NT = (
        _matrix(packed, name, row_length) for name in ("doc_ids", "loss_mask", "target_ids")
    )
    if ids_NT is None or doc_ids_NT is None or loss_mask_NT is None or target_ids_NT is None:
        return int(packed.num_rows)
    expected_NT, starts_NT, ends_NT = _layout(packed, row_length)
    is_valid_NT = expected_NT > 0
    trained_NT = is_valid_NT & ~ends_NT
    shifted_NT = np.concatenate([ids_NT[:, 1:], np.full((len(ids_NT), 1), pad_id)], axis=1)
    right_N = (
        (doc_ids_NT == expected_NT).all(axis=1)
        & (loss_mask_NT == trained_NT).all(axis=1)
        & ((target_ids_NT == shifted_NT) | ~trained_NT).all(axis=1)
        & ((ids_NT == pad_id) | is_valid_NT).all(axis=1)
        & (((ids_NT == begin_id) & is_valid_NT) == starts_NT).all(axis=1)
        & _counts_agree(packed, is_valid_NT, trained_NT, row_length)
    )
    return int((~right_N).sum())


def count_hot_rows_that_differ(packed: pa.Table, hot: pa.Table) -> int:
    """Number of rows whose memory-mapped ids or lengths are not those of the cold table, in order."""
    if packed.num_rows != hot.num_rows:
        return int(max(packed.num_rows, hot.num_rows))
    pairs = [(packed["input_ids"], hot["input_ids"]), (packed["source_doc_token_lengths"], hot["lengths"])]
    if all(cold.equals(warm) for cold, warm in pairs):
        return 0
    columns = [column.to_pylist() for pair in pairs for column in pair]
    return sum(row[0] != row[1] or row[2] != row[3] for row in zip(*columns, strict=True))


def count_ids_out_of_range(table: pa.Table, vocabulary_size: int) -> int:
    """Number of ids in the column `input_ids` at or above the vocabulary's size."""
    return int((_flat(table, "input_ids") >= vocabulary_size).sum())


def count_ids(table: pa.Table, vocabulary_size: int) -> IntArray:
    """How often each id of the vocabulary occurs in the column `input_ids`; ids out of range are left out."""
    ids = _flat(table, "input_ids")
    return np.bincount(ids[ids < vocabulary_size], minlength=vocabulary_size).astype(np.int64)


def _layout(packed: pa.Table, row_length: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """What the lengths say: the piece of each slot (-1 for padding), and where pieces start and end.

    A row whose pieces do not fit gets no pieces at all, so that it is a mismatch.
    """
    lengths_P, num_pieces_N = (
        _flat(packed, "source_doc_token_lengths"),
        _list_lengths(packed, "source_doc_token_lengths"),
    )
    row_of_piece_P = np.repeat(np.arange(len(num_pieces_N)), num_pieces_N)
    piece_in_row_P = np.arange(len(lengths_P)) - np.repeat(np.cumsum(num_pieces_N) - num_pieces_N, num_pieces_N)
    valid_N = np.bincount(row_of_piece_P, weights=lengths_P, minlength=len(num_pieces_N)).astype(np.int64)
    first_slot_P = np.cumsum(lengths_P) - lengths_P - (np.cumsum(valid_N) - valid_N)[row_of_piece_P]
    fits_P = (valid_N + NUM_SPARE_SLOTS * num_pieces_N <= row_length)[row_of_piece_P] & (lengths_P > 0)
    rows, firsts, lengths = row_of_piece_P[fits_P], first_slot_P[fits_P], lengths_P[fits_P]
    slots = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(firsts, lengths)
    pieces_NT = np.full((len(num_pieces_N), row_length), -1, np.int64)
    pieces_NT[np.repeat(rows, lengths), slots] = np.repeat(piece_in_row_P[fits_P] + 1, lengths)
    starts_NT, ends_NT = np.zeros_like(pieces_NT, np.bool_), np.zeros_like(pieces_NT, np.bool_)
    starts_NT[rows, firsts] = True
    ends_NT[rows, firsts + lengths - 1] = True
    return pieces_NT, starts_NT, ends_NT


def _counts_agree(packed: pa.Table, is_valid_NT: BoolArray, trained_NT: BoolArray, row_length: int) -> BoolArray:
    valid_N = is_valid_NT.sum(axis=1)
    columns = {name: np.asarray(packed[name]).astype(np.int64) for name in _COUNTS}
    right: BoolArray = (
        (columns["valid_token_count"] == valid_N)
        & (columns["trained_token_count"] == trained_NT.sum(axis=1))
        & (columns["slack_tokens"] == row_length - valid_N)
        & (columns["num_docs"] == _list_lengths(packed, "source_doc_token_lengths"))
        & (columns["num_docs"] > 0)
    )
    return right


_COUNTS = ("valid_token_count", "trained_token_count", "slack_tokens", "num_docs")


def _matrix(table: pa.Table, name: str, row_length: int) -> IntArray | None:
    """A column of lists as N x T, or None where a list has another length."""
    if (_list_lengths(table, name) != row_length).any():
        return None
    return _flat(table, name).astype(np.int64).reshape(-1, row_length)


def _list_lengths(table: pa.Table, name: str) -> IntArray:
    offsets = [np.asarray(chunk.offsets).astype(np.int64) for chunk in table[name].chunks]
    return np.concatenate([np.diff(each) for each in offsets]) if offsets else np.zeros(0, np.int64)


def _flat(table: pa.Table, name: str) -> IntArray:
    chunks = [np.asarray(chunk.flatten()).astype(np.int64) for chunk in table[name].chunks]
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)
