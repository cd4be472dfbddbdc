"""Packed pieces as columns: the table of PackedRow and the memory-mapped table of TrainingRow.

Shapes: R rows, T slots in a row.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.contracts.training_row import FILE_DIGEST, NO_DOCUMENT, ROW_GROUP, STRUCTURE
from pipeline.core.records import PROVENANCE_CODES, PackedRow, Provenance, TrainingRow
from pipeline.core.schema import arrow_schema, table_of
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.rows.pack import Piece, Rows
from pipeline.stages.tokenize.vocabulary import SPECIALS

PAD, BOS, EOS = (SPECIALS.index(special) for special in ("<|pad|>", "<|bos|>", "<|eos|>"))


def packed_table(rows: Rows, tokens: pa.Table, row_length: int) -> pa.Table:
    """Build the table of packed rows. `tokens` holds the documents that the pieces are of.

    `target_ids` is the shift by one slot; `loss_mask` is 0 on the last slot of a piece and on padding.
    """
    ids_RT, doc_ids_RT = _fill(rows, ListColumn.from_arrow(tokens["input_ids"]), row_length)
    target_ids_RT = np.full_like(ids_RT, PAD)
    target_ids_RT[:, :-1] = ids_RT[:, 1:]
    loss_mask_RT = np.zeros(ids_RT.shape, dtype=np.uint8)
    loss_mask_RT[:, :-1] = (doc_ids_RT[:, 1:] == doc_ids_RT[:, :-1]) & (doc_ids_RT[:, 1:] != NO_DOCUMENT)
    lengths = [[piece.num_slots for piece in row] for row in rows]
    valid_R = np.array([sum(row) for row in lengths], dtype=np.int64)
    names, commits = tokens["document_id"].to_pylist(), tokens["file_local_commit_index"].fill_null(-1).to_pylist()
    first_documents = pa.array([row[0].document for row in rows], pa.int64())
    sources, splits, files = (tokens[name].take(first_documents) for name in ("source", "split", "filepath_stable_id"))
    columns = {
        "input_ids": _slots(ids_RT),
        "target_ids": _slots(target_ids_RT),
        "loss_mask": _slots(loss_mask_RT),
        "doc_ids": _slots(doc_ids_RT),
        "pack_id": np.arange(len(rows), dtype=np.uint32),
        "source": sources,
        "split": splits,
        "valid_token_count": valid_R.astype(np.uint32),
        "num_docs": np.array([len(row) for row in rows], dtype=np.uint32),
        "trained_token_count": loss_mask_RT.sum(axis=1, dtype=np.uint32),
        "slack_tokens": (row_length - valid_R).astype(np.uint32),
        "source_doc_ids": [[names[piece.document] for piece in row] for row in rows],
        "source_doc_token_lengths": lengths,
        "piece_indices": [[piece.index for piece in row] for row in rows],
        "filepath_stable_id": files,
        "file_local_commit_indices": [
            None if file is None else [commits[piece.document] for piece in row]
            for file, row in zip(files.to_pylist(), rows, strict=True)
        ],
        "build_aware_fraction": _build_aware_fractions(rows, tokens),
    }
    return table_of(PackedRow, columns)


def training_table(rows: Rows, tokens: pa.Table, packed: pa.Table, params: TokenizeParams) -> pa.Table:
    """Build the table of training rows in the order of `packed`: ids, lengths, identities and chunk starts of pieces, and what
    the documents of a row have in common.
    """
    chunk_starts = ListColumn.from_arrow(tokens["chunk_starts"])
    chunks = [_chunk_slots(row, chunk_starts) for row in rows]
    files = packed["filepath_stable_id"].to_pylist()
    columns = {
        "input_ids": packed["input_ids"],
        "lengths": packed["source_doc_token_lengths"],
        "piece_ids": [[piece.identity for piece in row] for row in rows],
        "chunk_counts": [[len(slots) for slots in row] for row in chunks],
        "chunk_starts": ListColumn.of([np.concatenate(row) for row in chunks], np.dtype(np.uint32)).to_arrow(
            arrow_schema(TrainingRow).field("chunk_starts").type
        ),
        "file_identity": [None if file is None else file_identity(file) for file in files],
        "first_commit_index": pc.list_element(packed["file_local_commit_indices"], 0),
        **{name: tokens[name].take(pa.array([row[0].document for row in rows], pa.int64())) for name in ROW_GROUP},
    }
    for name in STRUCTURE if params.with_structure else ():
        columns[name] = _slots(_lay_out(rows, ListColumn.from_arrow(tokens[name]), params.row_length, 0))
    return table_of(TrainingRow, columns)


def file_identity(stable_id: str) -> int:
    """Return the 64-bit identity of a file, by which the global batch is sorted."""
    return int.from_bytes(hashlib.blake2b(stable_id.encode(), digest_size=8, person=FILE_DIGEST).digest(), "little")


def _slots(matrix_RT: npt.NDArray[Any]) -> pa.Array:
    """Return the Arrow column whose lists are the rows of a matrix."""
    item = pa.field("item", pa.from_numpy_dtype(matrix_RT.dtype), nullable=False)
    return ListColumn.of_matrix(matrix_RT).to_arrow(pa.large_list(item))


def _placed(row: Sequence[Piece]) -> Iterator[tuple[int, Piece]]:
    """Iterate over the pieces of a row, each with its first slot."""
    return zip(accumulate((piece.num_slots for piece in row), initial=0), row, strict=False)


def _lay_out(rows: Rows, values: ListColumn, row_length: int, blank: int) -> npt.NDArray[Any]:
    """Lay a column of tokens out as slots, with `blank` for BOS, EOS and padding."""
    slots_RT = np.full((len(rows), row_length), blank, dtype=values.values.dtype)
    for slots_T, row in zip(slots_RT, rows, strict=True):
        for slot, piece in _placed(row):
            text = values[piece.document][piece.start : piece.end]
            slots_T[slot + 1 : slot + 1 + len(text)] = text
    return slots_RT


def _fill(rows: Rows, ids: ListColumn, row_length: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
    """Return the ids and the `doc_ids` of the slots."""
    ids_RT = _lay_out(rows, ids, row_length, PAD)
    doc_ids_RT = np.full(ids_RT.shape, NO_DOCUMENT, dtype=np.int32)
    for ids_T, doc_ids_T, row in zip(ids_RT, doc_ids_RT, rows, strict=True):
        for number, (slot, piece) in enumerate(_placed(row), start=1):
            end = slot + piece.num_slots
            ids_T[slot] = BOS
            if piece.is_last:
                ids_T[end - 1] = EOS
            doc_ids_T[slot:end] = number
    return ids_RT, doc_ids_RT


def _chunk_slots(row: Sequence[Piece], chunk_starts: ListColumn) -> list[npt.NDArray[np.int64]]:
    """Return for each piece the slots of the row at which a chunk starts."""
    slots: list[npt.NDArray[np.int64]] = []
    for slot, piece in _placed(row):
        starts = chunk_starts[piece.document].astype(np.int64)
        inside = starts[np.searchsorted(starts, piece.start) : np.searchsorted(starts, piece.end)]
        slots.append(inside - piece.start + slot + 1)
    return slots


def _build_aware_fractions(rows: Rows, tokens: pa.Table) -> npt.NDArray[np.float32]:
    """Return for each row the share of its text tokens that a compiler read, without BOS, EOS and padding.

    A document without provenances of tokens has its own for all of them.
    """
    codes, documents = ListColumn.from_arrow(tokens["provenances"]), tokens["provenance"].to_pylist()
    build_aware = PROVENANCE_CODES[Provenance.BUILD_AWARE]

    def num_build_aware(piece: Piece) -> int:
        codes_N = codes[piece.document][piece.start : piece.end]
        if len(codes_N):
            return int(np.count_nonzero(codes_N == build_aware))
        return piece.end - piece.start if documents[piece.document] == Provenance.BUILD_AWARE else 0

    num_tokens = (sum(piece.end - piece.start for piece in row) for row in rows)
    pairs = zip((sum(map(num_build_aware, row)) for row in rows), num_tokens, strict=True)
    return np.array([aware / max(1, number) for aware, number in pairs], dtype=np.float32)
