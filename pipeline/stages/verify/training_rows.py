"""Proofs that the memory-mapped training rows hold what the packed rows and the documents hold.

Shapes: N rows, P pieces of all rows (or of one), S text slots of all rows (or chunk starts of one), one after the other.
"""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.training_row import FILE_DIGEST, PIECE_DIGEST, ROW_GROUP, STRUCTURE
from pipeline.stages.verify.list_values import BoolArray, IntArray, flat_values, lengths, lists, lists_agree


def count_training_rows_that_differ(packed: pa.Table, training: pa.Table) -> int:
    """Count training rows with other ids, lengths, piece ids or chronology than the packed row."""
    if packed.num_rows != training.num_rows:
        return max(int(packed.num_rows), int(training.num_rows))
    agree_N = (
        lists_agree(packed["input_ids"], training["input_ids"])
        & lists_agree(packed["source_doc_token_lengths"], training["lengths"])
        & lists_agree(_piece_ids(packed), training["piece_ids"])
        & _chronology_agrees(packed, training)
    )
    return int((~agree_N).sum())


def count_rows_of_other_groups(tokens: pa.Table, packed: pa.Table, training: pa.Table) -> int:
    """Count training rows that are called of another provenance or license than one of their documents.

    0 where there are more or fewer than packed rows, which `count_training_rows_that_differ` counts.
    """
    if packed.num_rows != training.num_rows:
        return 0
    groups, found = (zip(*(table[name].to_pylist() for name in ROW_GROUP), strict=True) for table in (tokens, training))
    of_documents = dict(zip(tokens["document_id"].to_pylist(), groups, strict=True))
    rows = zip(packed["source_doc_ids"].to_pylist(), found, strict=True)
    return sum(any(of_documents.get(name) != group for name in names) for names, group in rows)


def count_structures_that_differ(
    tokens: pa.Table, packed: pa.Table, training: pa.Table, no_text: tuple[int, ...], with_structure: bool
) -> int:
    """Count training rows whose structure is not that of their documents' tokens, or not 0 where a slot has no text.

    `tokens` has the documents of the rows' split, `no_text` the ids of slots without text; `with_structure` says that rows
    have structure, all of them, and none of them otherwise. 0 where there are more or fewer than packed rows, which
    `count_training_rows_that_differ` counts.
    """
    if not training.num_rows or packed.num_rows != training.num_rows:
        return 0
    if not with_structure:
        return max(int(training.num_rows - training[name].null_count) for name in STRUCTURE)
    lengths_N = lengths(training["input_ids"])
    if any(training[name].null_count or (lengths(training[name]) != lengths_N).any() for name in STRUCTURE):
        return int(training.num_rows)
    ids, row_of_slot = flat_values(training["input_ids"]), np.repeat(np.arange(training.num_rows), lengths_N)
    is_text = ~np.isin(ids, no_text)
    slots_S = np.flatnonzero(is_text)[_document_order(tokens, packed, is_text, lengths_N)]
    is_wrong_N = np.zeros(training.num_rows, np.bool_)
    for name in STRUCTURE:
        found, wanted_S = flat_values(training[name]), flat_values(tokens[name])
        if len(wanted_S) != len(slots_S):
            return int(training.num_rows)
        is_wrong_N[row_of_slot[slots_S[found[slots_S] != wanted_S]]] = True
        is_wrong_N[row_of_slot[~is_text & (found != 0)]] = True
    return int(is_wrong_N.sum())


def count_chunk_starts_that_differ(
    tokens: pa.Table, packed: pa.Table, training: pa.Table, no_text: tuple[int, ...]
) -> int:
    """Count training rows whose chunk starts, or their number in each piece, are not those of their documents' tokens.

    Arguments as in `count_structures_that_differ`.
    """
    if not training.num_rows or packed.num_rows != training.num_rows:
        return 0
    lengths_N, ids = lengths(training["input_ids"]), flat_values(training["input_ids"])
    is_text = ~np.isin(ids, no_text)
    slots_S = np.flatnonzero(is_text)[_document_order(tokens, packed, is_text, lengths_N)]
    num_tokens_D = lengths(tokens["input_ids"])
    first_D = np.cumsum(num_tokens_D) - num_tokens_D
    starts = flat_values(tokens["chunk_starts"]) + np.repeat(first_D, lengths(tokens["chunk_starts"]))
    if len(slots_S) != num_tokens_D.sum() or (starts >= len(slots_S)).any():
        return int(training.num_rows)
    is_start = np.zeros(len(ids), np.int64)
    is_start[slots_S[starts]] = 1
    rows = zip(*(lists(training[name]) for name in ("chunk_starts", "chunk_counts", "lengths")), strict=True)
    starts_NT = np.split(is_start, np.cumsum(lengths_N)[:-1])
    return sum(not _are_chunks(starts_T, *row) for starts_T, row in zip(starts_NT, rows, strict=True))


def _are_chunks(is_start_T: IntArray, starts_S: IntArray, counts_P: IntArray, lengths_P: IntArray) -> bool:
    """Return whether a row's chunk starts are the marked slots, and its counts those of the slots of each piece."""
    ends_P = np.cumsum(lengths_P.astype(np.int64))
    before_T = np.append(0, np.cumsum(is_start_T))
    expected_P = before_T[ends_P] - before_T[ends_P - lengths_P]
    return np.array_equal(starts_S, np.flatnonzero(is_start_T)) and np.array_equal(counts_P, expected_P)


def _document_order(tokens: pa.Table, packed: pa.Table, is_text: BoolArray, lengths_N: IntArray) -> IntArray:
    """Return the text slots of the rows in the order of the documents' tokens."""
    num_pieces_N, lengths_P = (
        lengths(packed["source_doc_token_lengths"]),
        flat_values(packed["source_doc_token_lengths"]),
    )
    rows_P = np.repeat(np.arange(len(num_pieces_N)), num_pieces_N)
    before_P = np.cumsum(lengths_P) - lengths_P
    first_of_row_N = before_P[np.minimum(np.cumsum(num_pieces_N) - num_pieces_N, len(before_P) - 1)]
    starts_P = before_P - first_of_row_N[rows_P] + (np.cumsum(lengths_N) - lengths_N)[rows_P]
    text_before = np.append(0, np.cumsum(is_text))
    first_S, last_S = text_before[starts_P], text_before[starts_P + lengths_P]
    names = pc.list_flatten(packed["source_doc_ids"])
    document_P = pc.index_in(names, value_set=tokens["document_id"].combine_chunks()).fill_null(-1).to_numpy()
    order_P = np.lexsort((flat_values(packed["piece_indices"]), document_P))
    counts_P = (last_S - first_S)[order_P]
    return np.repeat(first_S[order_P] - (np.cumsum(counts_P) - counts_P), counts_P) + np.arange(counts_P.sum())


def _piece_ids(packed: pa.Table) -> pa.ChunkedArray:
    rows = zip(packed["source_doc_ids"].to_pylist(), packed["piece_indices"].to_pylist(), strict=True)
    ids = [[_digest(f"{name}:{index}", PIECE_DIGEST) for name, index in zip(*row, strict=True)] for row in rows]
    return pa.chunked_array([pa.array(ids, pa.large_list(pa.uint64()))])


def _chronology_agrees(packed: pa.Table, training: pa.Table) -> BoolArray:
    columns = ("filepath_stable_id", "file_local_commit_indices")
    expected = (
        (None if file is None else _digest(file, FILE_DIGEST), indices[0] if indices else None)
        for file, indices in zip(*(packed[name].to_pylist() for name in columns), strict=True)
    )
    found = zip(*(training[name].to_pylist() for name in ("file_identity", "first_commit_index")), strict=True)
    return np.array([one == other for one, other in zip(expected, found, strict=True)], dtype=np.bool_)


def _digest(text: str, person: bytes) -> int:
    return int(np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8, person=person).digest(), "<u8")[0])
