"""Sanity of what training will read: documents put together again from packed rows, and how much of a row is worth reading."""

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.uint16]


def count_documents_not_rebuilt(tokens: pa.Table, packed: list[pa.Table], begin_id: int, end_id: int) -> int:
    """Number of documents whose pieces, put together from the rows in order, are not exactly their tokens.

    A piece must begin with BOS, and the last piece of a document, and no other, must end with EOS.
    """
    pieces: dict[str, dict[int, Ids]] = defaultdict(dict)
    num_strange = 0
    for table in packed:
        for row in range(table.num_rows):
            num_strange += _collect(table, row, pieces)
    expected = dict(zip(tokens["document_id"].to_pylist(), tokens["input_ids"], strict=True))
    num_strange += len(pieces.keys() - expected.keys())
    return num_strange + sum(
        not _is_rebuilt(pieces.get(document_id, {}), np.asarray(ids.values), begin_id, end_id)
        for document_id, ids in expected.items()
    )


def count_trained_tokens(packed: list[pa.Table]) -> int:
    """Number of slots whose target is trained."""
    return sum(int(np.asarray(table["trained_token_count"]).sum(dtype=np.int64)) for table in packed)


def _collect(table: pa.Table, row: int, pieces: dict[str, dict[int, Ids]]) -> int:
    """Add the pieces of one row; returns how many of them had been seen before."""
    ids = np.asarray(table["input_ids"][row].values)
    lengths = np.asarray(table["source_doc_token_lengths"][row].values).astype(np.int64)
    bounds = np.cumsum(lengths)[:-1]
    names = zip(table["source_doc_ids"][row].as_py(), table["piece_indices"][row].as_py(), strict=True)
    num_repeated = 0
    for (document_id, index), piece in zip(names, np.split(ids[: lengths.sum()], bounds), strict=True):
        num_repeated += index in pieces[document_id]
        pieces[document_id][index] = piece
    return num_repeated


def _is_rebuilt(pieces: dict[int, Ids], expected: Ids, begin_id: int, end_id: int) -> bool:
    if sorted(pieces) != list(range(len(pieces))) or not pieces:
        return False
    ordered = [pieces[index] for index in range(len(pieces))]
    if any(piece[0] != begin_id for piece in ordered) or any(piece[-1] == end_id for piece in ordered[:-1]):
        return False
    if ordered[-1][-1] != end_id:
        return False
    text = [*(piece[1:] for piece in ordered[:-1]), ordered[-1][1:-1]]
    return bool(np.array_equal(np.concatenate(text), expected))
