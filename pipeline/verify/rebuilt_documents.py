"""Proof that packed rows hold every document of their split once and whole: documents are put together again from rows."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PieceIds = npt.NDArray[np.uint16]
IdsByPiece = dict[int, PieceIds]


def count_documents_not_rebuilt(tokens: pa.Table, packed: Mapping[str, pa.Table], begin_id: int, end_id: int) -> int:
    """Count documents whose pieces in the rows of their split, in order, are not exactly their tokens, and stray pieces.

    `packed` has a table for each split. A piece must begin with BOS, and only the last piece of a document must end with EOS.
    """
    pieces: dict[tuple[str, str], IdsByPiece] = defaultdict(dict)
    num_stray = 0
    for split, table in packed.items():
        num_stray += sum(found != split for found in table["split"].to_pylist())
        for row in range(table.num_rows):
            num_stray += _collect(table, row, split, pieces)
    keys = zip(tokens["document_id"].to_pylist(), tokens["split"].to_pylist(), strict=True)
    expected = dict(zip(keys, tokens["input_ids"], strict=True))
    num_stray += len(pieces.keys() - expected.keys())
    return num_stray + sum(
        not _is_rebuilt(pieces.get(key, {}), np.asarray(ids.values), begin_id, end_id) for key, ids in expected.items()
    )


def _collect(table: pa.Table, row: int, split: str, pieces: dict[tuple[str, str], IdsByPiece]) -> int:
    """Add the pieces of one row, and return how many of them were there already."""
    ids = np.asarray(table["input_ids"][row].values)
    lengths = np.asarray(table["source_doc_token_lengths"][row].values).astype(np.int64)
    bounds = np.cumsum(lengths)[:-1]
    names = zip(table["source_doc_ids"][row].as_py(), table["piece_indices"][row].as_py(), strict=True)
    num_repeated = 0
    for (document_id, index), piece in zip(names, np.split(ids[: lengths.sum()], bounds), strict=True):
        num_repeated += index in pieces[document_id, split]
        pieces[document_id, split][index] = piece
    return num_repeated


def _is_rebuilt(pieces: IdsByPiece, expected: PieceIds, begin_id: int, end_id: int) -> bool:
    if sorted(pieces) != list(range(len(pieces))) or not pieces:
        return False
    ordered = [pieces[index] for index in range(len(pieces))]
    if any(piece[0] != begin_id for piece in ordered) or any(piece[-1] == end_id for piece in ordered[:-1]):
        return False
    if ordered[-1][-1] != end_id:
        return False
    text = [*(piece[1:] for piece in ordered[:-1]), ordered[-1][1:-1]]
    return bool(np.array_equal(np.concatenate(text), expected))
