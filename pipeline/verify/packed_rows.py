"""Proofs about packed rows, from the stored tables alone. Shares no code with the packer.

Shapes: N rows, T slots of a row, P pieces of all rows one after the other.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from pipeline.contracts.training_row import NUM_SENTINELS
from pipeline.verify.list_values import BoolArray, IntArray, flat, lengths


def count_boundary_mismatches(packed: pa.Table, row_length: int, specials: Mapping[str, int]) -> int:
    """Count rows whose doc_ids, loss mask, targets, counts or special ids are not what their document lengths require."""
    if not packed.num_rows:
        return 0
    ids_NT, doc_ids_NT, loss_mask_NT, target_ids_NT = (
        _matrix(packed, name, row_length) for name in ("input_ids", "doc_ids", "loss_mask", "target_ids")
    )
    if ids_NT is None or doc_ids_NT is None or loss_mask_NT is None or target_ids_NT is None:
        return int(packed.num_rows)
    expected_NT, starts_NT, ends_NT = _layout(packed, row_length)
    is_valid_NT = expected_NT > 0
    trained_NT = is_valid_NT & ~ends_NT
    shifted_NT = np.concatenate([ids_NT[:, 1:], np.full((len(ids_NT), 1), specials["<|pad|>"])], axis=1)
    right_N = (
        (doc_ids_NT == expected_NT).all(axis=1)
        & (loss_mask_NT == trained_NT).all(axis=1)
        & (target_ids_NT == shifted_NT).all(axis=1)
        & _specials_agree(ids_NT, is_valid_NT, starts_NT, ends_NT, specials)
        & _counts_agree(packed, is_valid_NT, trained_NT, row_length)
    )
    return int((~right_N).sum())


def count_commit_order_violations(tokens: pa.Table, packed: pa.Table) -> int:
    """Count rows whose commits are not one ascending run of one file, or are not those of their documents.

    A row without chronology may hold no document that has one.
    """
    names = ("document_id", "filepath_stable_id", "file_local_commit_index")
    known = {name: commit for name, *commit in zip(*(tokens[name].to_pylist() for name in names), strict=True)}
    columns = ("source_doc_ids", "filepath_stable_id", "file_local_commit_indices")
    num_wrong = 0
    for documents, file, indices in zip(*(packed[name].to_pylist() for name in columns), strict=True):
        found = [known.get(name) for name in documents]
        if file is None and indices is None:
            num_wrong += any(commit != [None, None] for commit in found)
        else:
            steps = np.diff(indices or [])
            num_wrong += found != [[file, index] for index in indices or []] or not np.isin(steps, (0, 1)).all()
    return num_wrong


def count_trained_tokens(packed: Iterable[pa.Table]) -> int:
    """Count slots whose target is trained."""
    return sum(int(np.asarray(table["trained_token_count"]).sum(dtype=np.int64)) for table in packed)


def _layout(packed: pa.Table, row_length: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """Lay out pieces by their lengths: the piece of each slot (-1 for padding), and where pieces start and end.

    A row whose pieces do not fit gets no pieces at all, so that it is a mismatch.
    """
    column = packed["source_doc_token_lengths"]
    lengths_P, num_pieces_N = flat(column), lengths(column)
    row_of_piece_P = np.repeat(np.arange(len(num_pieces_N)), num_pieces_N)
    piece_in_row_P = np.arange(len(lengths_P)) - np.repeat(np.cumsum(num_pieces_N) - num_pieces_N, num_pieces_N)
    valid_N = np.bincount(row_of_piece_P, weights=lengths_P, minlength=len(num_pieces_N)).astype(np.int64)
    first_slot_P = np.cumsum(lengths_P) - lengths_P - (np.cumsum(valid_N) - valid_N)[row_of_piece_P]
    fits_P = (valid_N + NUM_SENTINELS * num_pieces_N <= row_length)[row_of_piece_P] & (lengths_P > 0)
    rows, firsts, sizes = row_of_piece_P[fits_P], first_slot_P[fits_P], lengths_P[fits_P]
    slots = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(firsts, sizes)
    pieces_NT = np.full((len(num_pieces_N), row_length), -1, np.int64)
    pieces_NT[np.repeat(rows, sizes), slots] = np.repeat(piece_in_row_P[fits_P] + 1, sizes)
    starts_NT, ends_NT = np.zeros_like(pieces_NT, np.bool_), np.zeros_like(pieces_NT, np.bool_)
    starts_NT[rows, firsts] = True
    ends_NT[rows, firsts + sizes - 1] = True
    return pieces_NT, starts_NT, ends_NT


def _specials_agree(
    ids_NT: IntArray, is_valid_NT: BoolArray, starts_NT: BoolArray, ends_NT: BoolArray, specials: Mapping[str, int]
) -> BoolArray:
    """Return for each row whether BOS starts every piece, padding follows the last, EOS is at ends only, and no other is there."""
    is_right_NT = ~np.isin(ids_NT, list(specials.values())) & is_valid_NT & ~starts_NT
    is_right_NT |= starts_NT & (ids_NT == specials["<|bos|>"])
    is_right_NT |= ends_NT & ~starts_NT & (ids_NT == specials["<|eos|>"])
    is_right_NT |= ~is_valid_NT & (ids_NT == specials["<|pad|>"])
    return np.asarray(is_right_NT.all(axis=1), dtype=np.bool_)


def _counts_agree(packed: pa.Table, is_valid_NT: BoolArray, trained_NT: BoolArray, row_length: int) -> BoolArray:
    valid_N = is_valid_NT.sum(axis=1)
    columns = {name: np.asarray(packed[name]).astype(np.int64) for name in _COUNTS}
    right: BoolArray = (
        (columns["valid_token_count"] == valid_N)
        & (columns["trained_token_count"] == trained_NT.sum(axis=1))
        & (columns["slack_tokens"] == row_length - valid_N)
        & (columns["num_docs"] == lengths(packed["source_doc_token_lengths"]))
        & (columns["num_docs"] > 0)
    )
    return right


_COUNTS = ("valid_token_count", "trained_token_count", "slack_tokens", "num_docs")


def _matrix(table: pa.Table, name: str, row_length: int) -> IntArray | None:
    """Return a column of lists as N x T, or None if a list has another length."""
    if (lengths(table[name]) != row_length).any():
        return None
    return flat(table[name]).reshape(-1, row_length)
