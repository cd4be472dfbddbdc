"""Packed pieces as columns: the table of PackedRow and the memory-mapped table of TrainingRow.

Shapes: R rows, T slots in a row.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.core.records import PROVENANCE_CODES, PackedRow, Provenance, TrainingRow
from pipeline.core.schema import arrow_schema, table_of
from pipeline.tokenize.columns.list_column import ListColumn
from pipeline.tokenize.rows.pack import Piece, Rows
from pipeline.tokenize.vocabulary import SPECIALS

PAD, BOS, EOS = (SPECIALS.index(special) for special in ("<|pad|>", "<|bos|>", "<|eos|>"))
STRUCTURE = ("structure_kinds", "structure_levels")
NO_DOCUMENT = -1
"""`doc_ids` of a padding slot."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Token columns of the documents of one source and split, in the order of packing."""

    source: str
    split: str
    document_ids: Sequence[str]
    provenances: Sequence[str]
    input_ids: ListColumn
    chunk_starts: ListColumn
    structure: tuple[ListColumn, ...] | None = None
    """The columns `STRUCTURE` of each document's tokens, where training rows are to carry them."""
    token_provenances: ListColumn | None = None
    """The code of each token's provenance. A document without has its own for all of them."""
    files: Sequence[str | None] = ()
    commits: npt.NDArray[np.int64] | None = None


def packed_table(rows: Rows, texts: Texts, row_length: int) -> pa.Table:
    """Build the table of packed rows.

    `target_ids` is the shift by one slot; `loss_mask` is 0 on the last slot of a piece and on padding.
    """
    ids_RT, doc_ids_RT = _fill(rows, texts, row_length)
    target_ids_RT = np.full_like(ids_RT, PAD)
    target_ids_RT[:, :-1] = ids_RT[:, 1:]
    loss_mask_RT = np.zeros(ids_RT.shape, dtype=np.uint8)
    loss_mask_RT[:, :-1] = (doc_ids_RT[:, 1:] == doc_ids_RT[:, :-1]) & (doc_ids_RT[:, 1:] != NO_DOCUMENT)
    lengths = [[piece.num_slots for piece in row] for row in rows]
    valid_R = np.array([sum(row) for row in lengths], dtype=np.int64)
    schema = arrow_schema(PackedRow)
    matrices: dict[str, npt.NDArray[Any]] = {
        "input_ids": ids_RT,
        "target_ids": target_ids_RT,
        "loss_mask": loss_mask_RT,
        "doc_ids": doc_ids_RT,
    }
    columns = {
        **{name: ListColumn.of_matrix(matrix).to_arrow(schema.field(name).type) for name, matrix in matrices.items()},
        "pack_id": np.arange(len(rows), dtype=np.uint32),
        "source": [texts.source] * len(rows),
        "split": [texts.split] * len(rows),
        "valid_token_count": valid_R.astype(np.uint32),
        "num_docs": np.array([len(row) for row in rows], dtype=np.uint32),
        "trained_token_count": loss_mask_RT.sum(axis=1, dtype=np.uint32),
        "slack_tokens": (row_length - valid_R).astype(np.uint32),
        "source_doc_ids": [[texts.document_ids[piece.document] for piece in row] for row in rows],
        "source_doc_token_lengths": lengths,
        "piece_indices": [[piece.index for piece in row] for row in rows],
        **_chronology(rows, texts),
        "build_aware_fraction": np.array([_build_aware_fraction(row, texts) for row in rows], dtype=np.float32),
    }
    return table_of(PackedRow, columns)


def training_table(rows: Rows, texts: Texts, row_length: int) -> pa.Table:
    """Build the table of training rows: ids, lengths, identities and chunk starts of pieces, in the order of `packed_table`."""
    ids_RT, _ = _fill(rows, texts, row_length)
    chunks = [_chunk_slots(row, texts) for row in rows]
    lists: dict[str, ListColumn] = {
        "input_ids": ListColumn.of_matrix(ids_RT),
        "lengths": ListColumn.of([[piece.num_slots for piece in row] for row in rows], np.dtype(np.uint32)),
        "piece_ids": ListColumn.of([[piece.identity for piece in row] for row in rows], np.dtype(np.uint64)),
        "chunk_counts": ListColumn.of([[len(slots) for slots in row] for row in chunks], np.dtype(np.uint32)),
        "chunk_starts": ListColumn.of([np.concatenate(row) for row in chunks], np.dtype(np.uint32)),
    }
    if texts.structure is not None:
        matrices = (_structure(rows, values, row_length) for values in texts.structure)
        lists |= dict(zip(STRUCTURE, map(ListColumn.of_matrix, matrices), strict=True))
    schema = arrow_schema(TrainingRow)
    columns = {name: column.to_arrow(schema.field(name).type) for name, column in lists.items()}
    chronology = _chronology(rows, texts)
    files, commits = chronology["filepath_stable_id"], chronology["file_local_commit_indices"]
    return table_of(
        TrainingRow,
        {
            **columns,
            "file_identity": [None if file is None else file_identity(file) for file in files],
            "first_commit_index": [None if indices is None else indices[0] for indices in commits],
        },
    )


def file_identity(stable_id: str) -> int:
    """Return the 64-bit identity of a file, by which the global batch is sorted."""
    return int.from_bytes(hashlib.blake2b(stable_id.encode(), digest_size=8, person=b"sluice/file").digest(), "little")


def _chronology(rows: Rows, texts: Texts) -> dict[str, list[Any]]:
    """Return the file of each row and the commits of its pieces; None for a row without chronology."""
    files = [texts.files[row[0].document] if texts.files else None for row in rows]
    commits = [
        None if file is None or texts.commits is None else [int(texts.commits[piece.document]) for piece in row]
        for file, row in zip(files, rows, strict=True)
    ]
    return {"filepath_stable_id": files, "file_local_commit_indices": commits}


def _structure(rows: Rows, values: ListColumn, row_length: int) -> npt.NDArray[np.uint8]:
    """Lay a column of tokens out as slots, with 0 for BOS, EOS and padding."""
    slots_RT = np.zeros((len(rows), row_length), dtype=np.uint8)
    for slots_T, row in zip(slots_RT, rows, strict=True):
        slot = 0
        for piece in row:
            slots_T[slot + 1 : slot + 1 + piece.end - piece.start] = values[piece.document][piece.start : piece.end]
            slot += piece.num_slots
    return slots_RT


def _fill(rows: Rows, texts: Texts, row_length: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
    ids_RT = np.full((len(rows), row_length), PAD, dtype=np.uint16)
    doc_ids_RT = np.full((len(rows), row_length), NO_DOCUMENT, dtype=np.int32)
    for ids_T, doc_ids_T, row in zip(ids_RT, doc_ids_RT, rows, strict=True):
        slot = 0
        for number, piece in enumerate(row, start=1):
            end = slot + piece.num_slots
            ids_T[slot] = BOS
            ids_T[slot + 1 : slot + 1 + piece.end - piece.start] = texts.input_ids[piece.document][
                piece.start : piece.end
            ]
            if piece.is_last:
                ids_T[end - 1] = EOS
            doc_ids_T[slot:end] = number
            slot = end
    return ids_RT, doc_ids_RT


def _chunk_slots(row: Sequence[Piece], texts: Texts) -> list[npt.NDArray[np.int64]]:
    """Return for each piece the slots of the row at which a chunk starts."""
    slots: list[npt.NDArray[np.int64]] = []
    slot = 0
    for piece in row:
        starts = texts.chunk_starts[piece.document].astype(np.int64)
        inside = starts[np.searchsorted(starts, piece.start) : np.searchsorted(starts, piece.end)]
        slots.append(inside - piece.start + slot + 1)
        slot += piece.num_slots
    return slots


def _build_aware_fraction(row: Sequence[Piece], texts: Texts) -> float:
    """Return the share of the row's text tokens that a compiler saw, without BOS, EOS and padding."""
    aware = sum(_num_build_aware(piece, texts) for piece in row)
    return aware / max(1, sum(piece.end - piece.start for piece in row))


def _num_build_aware(piece: Piece, texts: Texts) -> int:
    if texts.token_provenances is not None and len(texts.token_provenances[piece.document]):
        codes_N = texts.token_provenances[piece.document][piece.start : piece.end]
        return int(np.count_nonzero(codes_N == PROVENANCE_CODES[Provenance.BUILD_AWARE]))
    return (piece.end - piece.start) * (texts.provenances[piece.document] == Provenance.BUILD_AWARE)
