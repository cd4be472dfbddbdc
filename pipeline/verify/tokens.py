"""Proofs about the token columns of documents, from the stored tables alone.

Shapes: N documents, S chunk starts of all documents, one document after the other.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.verify.list_values import IntArray, flat, lengths


def count_misaligned_columns(tokens: pa.Table) -> int:
    """Count lists beside the ids that are not as long as they are, and chunk starts that are not ascending token indices."""
    lengths_N = lengths(tokens["input_ids"])
    beside = [field.name for field in tokens.schema if pa.types.is_large_list(field.type)]
    num_wrong = 0
    for name in sorted(set(beside) - {"input_ids", "chunk_starts"}):
        is_present_N = np.asarray(pc.is_valid(tokens[name]))
        num_wrong += int(((lengths(tokens[name]) != lengths_N) & is_present_N).sum())
    return num_wrong + _count_bad_chunk_starts(tokens["chunk_starts"], lengths_N)


def count_ids_out_of_range(table: pa.Table, vocabulary_size: int) -> int:
    """Count ids in the column `input_ids` at or above the vocabulary's size."""
    return int((flat(table["input_ids"]) >= vocabulary_size).sum())


def count_special_ids(tokens: pa.Table, special_ids: Iterable[int]) -> int:
    """Count special ids among the ids of documents, which have none: a special token's spelling in a text is text."""
    return int(np.isin(flat(tokens["input_ids"]), sorted(special_ids)).sum())


def count_ids(table: pa.Table, vocabulary_size: int) -> IntArray:
    """Count how often each id of the vocabulary occurs in the column `input_ids`, without ids out of range."""
    ids = flat(table["input_ids"])
    return np.bincount(ids[ids < vocabulary_size], minlength=vocabulary_size).astype(np.int64)


def _count_bad_chunk_starts(column: pa.ChunkedArray, lengths_N: IntArray) -> int:
    """Count documents with a chunk start outside of their tokens or not after the one before."""
    starts_S, document_S = flat(column), np.repeat(np.arange(len(lengths_N)), lengths(column))
    is_bad_S = (starts_S < 0) | (starts_S >= lengths_N[document_S])
    is_bad_S[1:] |= (np.diff(starts_S) <= 0) & (np.diff(document_S) == 0)
    return len(np.unique(document_S[is_bad_S]))
