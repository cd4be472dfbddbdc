"""Proofs about packed rows, from the stored tables alone. Shares no code with the packer.

Shapes: N rows, T slots of a row, P pieces of all rows one after the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.contracts.training_row import NUM_SENTINELS
from pipeline.core.records import PROVENANCE_CODES, Provenance
from pipeline.stages.verify.list_values import BoolArray, IntArray, flat_values, lengths, lists

_ROWS_IN_STRETCH = 512
"""Rows that are laid out at once: eight numbers a slot, each of eight bytes."""
Pieces = dict[int, npt.NDArray[Any]]
"""The ids of the pieces of a document, by the index of the piece."""


def count_boundary_mismatches(packed: pa.Table, row_length: int, specials: Mapping[str, int]) -> int:
    """Count rows whose doc_ids, loss mask, targets, counts, number or special ids are not what their document lengths require."""
    if not packed.num_rows:
        return 0
    columns = [packed[name] for name in ("input_ids", "doc_ids", "loss_mask", "target_ids")]
    has_other_length_N = np.any([lengths(column) != row_length for column in columns], axis=0)
    if has_other_length_N.any():
        return int(has_other_length_N.sum())
    starts = range(0, packed.num_rows, _ROWS_IN_STRETCH)
    return sum(_num_mismatches(packed.slice(start, _ROWS_IN_STRETCH), start, row_length, specials) for start in starts)


def _num_mismatches(packed: pa.Table, first: int, row_length: int, specials: Mapping[str, int]) -> int:
    """Count the rows of a stretch that differ from what their lengths require; `first` is the number of its first row."""
    columns = [packed[name] for name in ("input_ids", "doc_ids", "loss_mask", "target_ids")]
    ids_NT, doc_ids_NT, loss_mask_NT, target_ids_NT = (
        flat_values(column).reshape(-1, row_length) for column in columns
    )
    expected_NT, starts_NT, ends_NT = _layout(packed, row_length)
    is_valid_NT = expected_NT > 0
    trained_NT = is_valid_NT & ~ends_NT
    shifted_NT = np.concatenate([ids_NT[:, 1:], np.full((len(ids_NT), 1), specials["<|pad|>"])], axis=1)
    right_N = (
        (doc_ids_NT == expected_NT).all(axis=1)
        & (loss_mask_NT == trained_NT).all(axis=1)
        & (target_ids_NT == shifted_NT).all(axis=1)
        & _specials_agree(ids_NT, is_valid_NT, starts_NT, ends_NT, specials)
        & _counts_agree(packed, first, is_valid_NT, trained_NT)
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


def count_documents_not_rebuilt(tokens: pa.Table, packed: Mapping[str, pa.Table], begin_id: int, end_id: int) -> int:
    """Count documents whose pieces in the rows of their split, in order, are not exactly their tokens, and stray pieces.

    `packed` has a table for each split. A piece must begin with BOS, and only the last piece of a document must end with EOS.
    """
    pieces: dict[tuple[str, str], Pieces] = defaultdict(dict)
    num_stray = 0
    for split, table in packed.items():
        num_stray += sum(found != split for found in table["split"].to_pylist())
        ids, piece_lengths = lists(table["input_ids"]), lists(table["source_doc_token_lengths"])
        names, indices = table["source_doc_ids"].to_pylist(), table["piece_indices"].to_pylist()
        for ids_T, lengths_P, *row in zip(ids, piece_lengths, names, indices, strict=True):
            for name, index, piece in zip(*row, np.split(ids_T, np.cumsum(lengths_P))[:-1], strict=True):
                num_stray += index in pieces[name, split]
                pieces[name, split][index] = piece
    keys = zip(tokens["document_id"].to_pylist(), tokens["split"].to_pylist(), strict=True)
    expected = dict(zip(keys, lists(tokens["input_ids"]), strict=True))
    num_stray += len(pieces.keys() - expected.keys())
    return num_stray + sum(not _is_rebuilt(pieces.get(key, {}), ids, begin_id, end_id) for key, ids in expected.items())


def count_fractions_that_differ(tokens: pa.Table, packed: pa.Table) -> int:
    """Count rows whose `build_aware_fraction` is not the share of their text tokens that a compiler read.

    A document without provenances of tokens has its own for all of them.
    """
    if "build_aware_fraction" not in packed.column_names:
        return int(packed.num_rows)
    code, names = PROVENANCE_CODES[Provenance.BUILD_AWARE], ("document_id", "provenance")
    columns = [
        *(tokens[name].to_pylist() for name in names),
        lists(tokens["provenances"]),
        lengths(tokens["input_ids"]),
    ]
    read_by_compiler = {
        document_id: codes == code if len(codes) else np.full(num_tokens, provenance == Provenance.BUILD_AWARE)
        for document_id, provenance, codes, num_tokens in zip(*columns, strict=True)
    }
    found_N, total_N = np.zeros(packed.num_rows), np.zeros(packed.num_rows)
    start = 0
    for name, index, row, num_slots in sorted(_pieces_of(packed)):
        of_document = read_by_compiler.get(name, np.zeros(0, np.bool_))
        start = 0 if index == 0 else start
        of_piece = of_document[start : start + num_slots - 1]  # one slot is the BOS; an EOS is past the document's end
        found_N[row] += np.count_nonzero(of_piece)
        total_N[row] += len(of_piece)
        start += len(of_piece)
    expected_N = (found_N / np.maximum(1, total_N)).astype(np.float32)
    return int((np.asarray(packed["build_aware_fraction"], np.float32) != expected_N).sum())


def _pieces_of(packed: pa.Table) -> Iterator[tuple[str, int, int, int]]:
    """Iterate over the pieces of rows: document, index in it, row, and slots."""
    columns = ("source_doc_ids", "piece_indices", "source_doc_token_lengths")
    for row, pieces in enumerate(zip(*(packed[name].to_pylist() for name in columns), strict=True)):
        for name, index, num_slots in zip(*pieces, strict=True):
            yield name, index, row, num_slots


def count_trained_tokens(packed: Iterable[pa.Table]) -> int:
    """Count slots whose target is trained."""
    return sum(int(np.asarray(table["trained_token_count"]).sum(dtype=np.int64)) for table in packed)


def _layout(packed: pa.Table, row_length: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """Lay out pieces by their lengths: the piece of each slot (-1 for padding), and where pieces start and end.

    A row whose pieces do not fit gets no pieces at all, so that it is a mismatch.
    """
    column = packed["source_doc_token_lengths"]
    lengths_P, num_pieces_N = flat_values(column), lengths(column)
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


def _counts_agree(packed: pa.Table, first: int, is_valid_NT: BoolArray, trained_NT: BoolArray) -> BoolArray:
    num_docs_N, valid_N = lengths(packed["source_doc_token_lengths"]), is_valid_NT.sum(axis=1)
    expected = {
        "valid_token_count": valid_N,
        "trained_token_count": trained_NT.sum(axis=1),
        "slack_tokens": is_valid_NT.shape[1] - valid_N,
        "num_docs": num_docs_N,
        "pack_id": np.arange(first, first + packed.num_rows),
    }
    agree = [np.asarray(packed[name]).astype(np.int64) == counts_N for name, counts_N in expected.items()]
    return np.asarray(np.all(agree, axis=0) & (num_docs_N > 0), dtype=np.bool_)


def _is_rebuilt(pieces: Pieces, expected: npt.NDArray[Any], begin_id: int, end_id: int) -> bool:
    if not pieces or sorted(pieces) != list(range(len(pieces))):
        return False
    ordered = [pieces[index] for index in range(len(pieces))]
    ends = [piece[-1] == end_id for piece in ordered]
    if any(piece[0] != begin_id for piece in ordered) or any(ends[:-1]) or not ends[-1]:
        return False
    return np.array_equal(np.concatenate([piece[1:] for piece in ordered])[:-1], expected)
