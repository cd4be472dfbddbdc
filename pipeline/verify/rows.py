"""The rows as they lie on disk, judged from their own columns alone: no code of the packer is used here."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IntArray = npt.NDArray[np.int64]


def count_boundary_mismatches(packed: pa.Table, row_length: int, begin_id: int, pad_id: int) -> int:
    """Number of packed rows whose doc_ids, loss mask, targets or counts are not what their document lengths say."""
    return sum(not _row_is_consistent(row, row_length, begin_id, pad_id) for row in packed.to_pylist())


def count_hot_rows_that_differ(packed: pa.Table, hot: pa.Table) -> int:
    """Number of rows whose memory-mapped ids or lengths are not those of the cold table, in order."""
    if packed.num_rows != hot.num_rows:
        return max(packed.num_rows, hot.num_rows)
    pairs = zip(packed["input_ids"], hot["input_ids"], packed["source_doc_token_lengths"], hot["lengths"], strict=True)
    return sum(
        _differ(cold_ids, hot_ids) or _differ(lengths, hot_lengths) for cold_ids, hot_ids, lengths, hot_lengths in pairs
    )


def count_ids_out_of_range(table: pa.Table, vocabulary_size: int) -> int:
    """Number of ids in the column `input_ids` at or above the vocabulary's size."""
    return int((flat_ids(table) >= vocabulary_size).sum())


def count_ids(table: pa.Table, vocabulary_size: int) -> IntArray:
    """How often each id of the vocabulary occurs in the column `input_ids`; ids out of range are left out."""
    ids = flat_ids(table)
    return np.bincount(ids[ids < vocabulary_size], minlength=vocabulary_size).astype(np.int64)


def flat_ids(table: pa.Table) -> npt.NDArray[np.uint16]:
    """All ids of the column `input_ids`, one after the other."""
    chunks = [np.asarray(chunk.flatten()) for chunk in table["input_ids"].chunks]
    return np.concatenate(chunks) if chunks else np.zeros(0, np.uint16)


def _row_is_consistent(row: dict[str, object], row_length: int, begin_id: int, pad_id: int) -> bool:
    ids, lengths = np.asarray(row["input_ids"], np.int64), np.asarray(row["source_doc_token_lengths"], np.int64)
    valid = int(lengths.sum())
    if len(ids) != row_length or valid + 3 * len(lengths) > row_length:
        return False
    padding = row_length - valid
    doc_ids = np.concatenate([np.repeat(np.arange(1, len(lengths) + 1), lengths), np.full(padding, -1)])
    ends = np.cumsum(lengths) - 1
    loss_mask = np.concatenate([np.ones(valid, np.int64), np.zeros(padding, np.int64)])
    loss_mask[ends] = 0
    targets = np.append(ids[1:], pad_id)
    starts = ends - lengths + 1
    return bool(
        np.array_equal(doc_ids, row["doc_ids"])
        and np.array_equal(loss_mask, row["loss_mask"])
        and np.array_equal(targets[loss_mask == 1], np.asarray(row["target_ids"])[loss_mask == 1])
        and (ids[valid:] == pad_id).all()
        and (ids[starts] == begin_id).all()
        and int((ids[:valid] == begin_id).sum()) == len(lengths) == row["num_docs"]
        and row["valid_token_count"] == valid
        and row["trained_token_count"] == int(loss_mask.sum())
        and row["slack_tokens"] == padding
    )


def _differ(left: pa.Scalar, right: pa.Scalar) -> bool:
    return not np.array_equal(np.asarray(left.values), np.asarray(right.values))
