"""Whether the structure in the rows that training maps is that of the documents they were packed from.

Shapes: N rows, T slots of a row, P pieces of all rows, S text slots of all rows, one behind the other.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ("structure_kinds", "structure_levels")

IntArray = npt.NDArray[np.int64]


def count_hot_structures_that_differ(
    tokens: pa.Table, packed: pa.Table, hot: pa.Table, no_text: tuple[int, ...]
) -> int:
    """Number of hot rows whose structure is not that of their documents' tokens, or not 0 where a slot has no text.

    `tokens` holds the documents of the rows' split; `no_text` the ids of slots without text. 0 for rows without structure.
    """
    present = [name for name in COLUMNS if hot.num_rows and hot[name].null_count < hot.num_rows]
    if not present:
        return 0
    lengths_N = _lengths(hot["input_ids"])
    if any(hot[name].null_count or (_lengths(hot[name]) != lengths_N).any() for name in COLUMNS):
        return int(hot.num_rows)
    ids, row_of_slot = _flat(hot["input_ids"]), np.repeat(np.arange(hot.num_rows), lengths_N)
    is_text = ~np.isin(ids, no_text)
    slots_S = np.flatnonzero(is_text)[_document_order(tokens, packed, is_text, lengths_N)]
    is_wrong_N = np.zeros(hot.num_rows, np.bool_)
    for name in COLUMNS:
        found, wanted_S = _flat(hot[name]), _flat(tokens[name])
        if len(wanted_S) != len(slots_S):
            return int(hot.num_rows)
        is_wrong_N[row_of_slot[slots_S[found[slots_S] != wanted_S]]] = True
        is_wrong_N[row_of_slot[~is_text & (found != 0)]] = True
    return int(is_wrong_N.sum())


def _document_order(
    tokens: pa.Table, packed: pa.Table, is_text: npt.NDArray[np.bool_], lengths_N: IntArray
) -> IntArray:
    """The text slots of the rows in the order of the documents' tokens."""
    num_pieces_N, lengths_P = _lengths(packed["source_doc_token_lengths"]), _flat(packed["source_doc_token_lengths"])
    rows_P = np.repeat(np.arange(len(num_pieces_N)), num_pieces_N)
    before_P = np.cumsum(lengths_P) - lengths_P
    first_of_row_N = before_P[np.minimum(np.cumsum(num_pieces_N) - num_pieces_N, len(before_P) - 1)]
    starts_P = before_P - first_of_row_N[rows_P] + (np.cumsum(lengths_N) - lengths_N)[rows_P]
    text_before = np.append(0, np.cumsum(is_text))
    first_S, last_S = text_before[starts_P], text_before[starts_P + lengths_P]
    names = pc.list_flatten(packed["source_doc_ids"])
    document_P = pc.index_in(names, value_set=tokens["document_id"].combine_chunks()).fill_null(-1).to_numpy()
    order_P = np.lexsort((_flat(packed["piece_indices"]), document_P))
    counts_P = (last_S - first_S)[order_P]
    return np.repeat(first_S[order_P] - (np.cumsum(counts_P) - counts_P), counts_P) + np.arange(counts_P.sum())


def _lengths(column: pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)


def _flat(column: pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.list_flatten(column)).astype(np.int64)
