"""What the gates of the stage look at, measured on the finished tables by code that shares nothing with the packer.

`doc_ids` may not be their own oracle: boundaries are rebuilt from `source_doc_token_lengths`, and tokens are put
together again from the pieces that the rows name.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.tokenize.columns.list_column import ListColumn
from pipeline.tokenize.vocabulary import Vocabulary


def count_misaligned_columns(tokens: pa.Table) -> int:
    """Number of token-aligned lists that are not as long as their ids, or of chunk starts that are not ascending
    indices.
    """
    lengths = ListColumn.from_arrow(tokens["input_ids"]).lengths
    aligned = [
        name
        for name in tokens.column_names
        if name not in ("input_ids", "chunk_starts")
        and pa.types.is_large_list(tokens.schema.field(name).type)
        and tokens[name].null_count < tokens.num_rows
    ]
    wrong = sum(
        int(((ListColumn.from_arrow(tokens[name]).lengths != lengths) & tokens[name].is_valid().to_numpy()).sum())
        for name in aligned
    )
    starts = ListColumn.from_arrow(tokens["chunk_starts"])
    return wrong + sum(not _are_ascending_indices(starts[index], int(lengths[index])) for index in range(len(starts)))


def count_ids_out_of_range(table: pa.Table, size: int) -> int:
    """Number of ids of a table at or above the vocabulary's size."""
    return int((ListColumn.from_arrow(table["input_ids"]).values >= size).sum())


def count_special_ids_in_text(tokens: pa.Table, vocabulary: Vocabulary) -> int:
    """Number of special ids among the ids of documents. There must be none: a special's spelling in a text is text."""
    return int(np.isin(ListColumn.from_arrow(tokens["input_ids"]).values, sorted(vocabulary.specials.values())).sum())


def count_boundary_mismatches(packed: pa.Table, vocabulary: Vocabulary) -> int:
    """Number of rows whose doc_ids, mask, targets, counts or specials are not what their document lengths ask for."""
    columns = {name: ListColumn.from_arrow(packed[name]) for name in _ROW_LISTS}
    columns["controls"] = _controls(columns["input_ids"], vocabulary)
    counts = {name: packed[name].to_numpy() for name in _ROW_COUNTS}
    return sum(
        not _row_agrees(
            {name: column[index] for name, column in columns.items()},
            {name: int(column[index]) for name, column in counts.items()},
            vocabulary.specials,
        )
        for index in range(packed.num_rows)
    )


def count_tokens_not_packed_once(tokens: pa.Table, packed: Iterable[pa.Table], vocabulary: Vocabulary) -> int:
    """Number of tokens of documents that are missing from the rows, changed, or there more than once; and of tokens
    from nowhere.
    """
    pieces = _pieces_by_document(packed, vocabulary.specials["<|eos|>"])
    ids = ListColumn.from_arrow(tokens["input_ids"])
    wrong = 0
    for index, key in enumerate(zip(tokens["document_id"].to_pylist(), tokens["split"].to_pylist(), strict=True)):
        wrong += _num_different(ids[index], pieces.pop(key, {}))
    strays = [values for document in pieces.values() for copies in document.values() for values in copies]
    return wrong + sum(map(len, strays))


def count_hot_rows_that_differ(packed: pa.Table, hot: pa.Table) -> int:
    """Number of hot rows with other ids, lengths or piece identities than the cold row, or chunk starts outside."""
    if packed.num_rows != hot.num_rows:
        return max(int(packed.num_rows), int(hot.num_rows))
    cold = {
        name: ListColumn.from_arrow(packed[name]) for name in ("input_ids", "source_doc_token_lengths", "piece_indices")
    }
    rows = {name: ListColumn.from_arrow(hot[name]) for name in _HOT_LISTS}
    chronology = list(zip(_files_and_first_commits(packed), _chronology_of_hot(hot), strict=True))
    names = packed["source_doc_ids"].to_pylist()
    differing = 0
    for index in range(hot.num_rows):
        row = {name: column[index] for name, column in rows.items()}
        identities = [
            _identity(name, piece) for name, piece in zip(names[index], cold["piece_indices"][index], strict=True)
        ]
        agrees = (
            np.array_equal(cold["input_ids"][index], row["input_ids"])
            and np.array_equal(cold["source_doc_token_lengths"][index], row["lengths"])
            and row["piece_ids"].tolist() == identities
            and _chunk_starts_lie_inside(row)
            and chronology[index][0] == chronology[index][1]
        )
        differing += not agrees
    return differing


def count_commit_order_violations(tokens: pa.Table, packed: pa.Table) -> int:
    """Number of rows whose commits are not one ascending run of one file, or not those of their documents.

    Rows without chronology are in order, and hold no document that has one.
    """
    names = ("document_id", "filepath_stable_id", "file_local_commit_index")
    known = {
        name: (file, index) for name, file, index in zip(*(tokens[name].to_pylist() for name in names), strict=True)
    }
    rows = zip(*(packed[name].to_pylist() for name in ("source_doc_ids", *_ROW_CHRONOLOGY)), strict=True)
    wrong = 0
    for documents, file, indices in rows:
        if file is None and indices is None:
            wrong += any(known[name] != (None, None) for name in documents)
        else:
            expected = [(file, index) for index in indices or []]
            wrong += [known[name] for name in documents] != expected or not _is_ascending_run(indices)
    return wrong


_ROW_LISTS = ("input_ids", "target_ids", "loss_mask", "doc_ids", "source_doc_token_lengths")
_ROW_CHRONOLOGY = ("filepath_stable_id", "file_local_commit_indices")
_HOT_LISTS = ("input_ids", "lengths", "piece_ids", "chunk_counts", "chunk_starts")
_NUM_UINT16 = 1 << 16
_ROW_COUNTS = ("valid_token_count", "num_docs", "trained_token_count", "slack_tokens")


def _controls(ids: ListColumn, vocabulary: Vocabulary) -> ListColumn:
    """The special ids where they stand, and -1 elsewhere."""
    is_special = np.zeros(_NUM_UINT16, dtype=np.bool_)
    is_special[list(vocabulary.specials.values())] = True
    return ListColumn(np.where(is_special[ids.values], ids.values.astype(np.int64), -1), ids.offsets)


def _row_agrees(row: Mapping[str, npt.NDArray[np.int64]], counts: dict[str, int], specials: Mapping[str, int]) -> bool:
    lengths, ids = row["source_doc_token_lengths"].astype(np.int64), row["input_ids"]
    num_slots, num_valid, num_pieces = len(ids), int(lengths.sum()), len(lengths)
    if num_valid + 3 * num_pieces > num_slots or not num_pieces or lengths.min() < 1:
        return False
    ends = np.cumsum(lengths)
    doc_ids = np.append(np.repeat(np.arange(num_pieces) + 1, lengths), np.repeat(-1, num_slots - num_valid))
    loss_mask = (np.arange(num_slots) < num_valid).astype(np.int64)
    loss_mask[ends - 1] = 0
    wanted = {
        "valid_token_count": num_valid,
        "num_docs": num_pieces,
        "trained_token_count": num_valid - num_pieces,
        "slack_tokens": num_slots - num_valid,
    }
    return (
        counts == wanted
        and np.array_equal(doc_ids, row["doc_ids"])
        and np.array_equal(loss_mask, row["loss_mask"])
        and np.array_equal(ids[1:], row["target_ids"][:-1])
        and np.array_equal(_wanted_controls(row["controls"], ends, specials), row["controls"])
    )


def _wanted_controls(
    controls: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], specials: Mapping[str, int]
) -> npt.NDArray[np.int64]:
    """BOS on every first slot of a piece, EOS on last slots if at all, padding behind the last piece, nothing else
    anywhere.
    """
    wanted = np.full(len(controls), -1, dtype=np.int64)
    closed = ends[controls[ends - 1] == specials["<|eos|>"]]
    wanted[closed - 1] = specials["<|eos|>"]
    wanted[np.append(0, ends[:-1])] = specials["<|bos|>"]
    wanted[ends[-1] :] = specials["<|pad|>"]
    return wanted


_Pieces = dict[int, list[npt.NDArray[np.uint16]]]


def _pieces_by_document(packed: Iterable[pa.Table], eos: int) -> dict[tuple[str, str], _Pieces]:
    """Document id and split -> piece index -> the tokens of each piece with that index, BOS and EOS taken off."""
    pieces: dict[tuple[str, str], _Pieces] = defaultdict(lambda: defaultdict(list))
    for table in packed:
        ids, lengths = (
            ListColumn.from_arrow(table["input_ids"]),
            ListColumn.from_arrow(table["source_doc_token_lengths"]),
        )
        rows = zip(
            table["split"].to_pylist(),
            table["source_doc_ids"].to_pylist(),
            table["piece_indices"].to_pylist(),
            strict=True,
        )
        for row, (split, names, numbers) in enumerate(rows):
            parts = np.split(ids[row], np.cumsum(lengths[row].astype(np.int64)))
            for name, number, part in zip(names, numbers, parts[:-1], strict=True):
                pieces[name, split][number].append(part[1:-1] if part[-1] == eos else part[1:])
    return pieces


def _num_different(ids: npt.NDArray[np.uint16], pieces: _Pieces) -> int:
    whole = [values for number in sorted(pieces) for values in pieces[number]]
    together = np.concatenate(whole) if whole else ids[:0]
    common = min(len(ids), len(together))
    return abs(len(ids) - len(together)) + int((ids[:common] != together[:common]).sum())


def _identity(document_id: str, index: int) -> int:
    return _digest(f"{document_id}:{index}", b"sluice/piece")


def _digest(text: str, person: bytes) -> int:
    return int(np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8, person=person).digest(), "<u8")[0])


def _chunk_starts_lie_inside(row: dict[str, npt.NDArray[np.int64]]) -> bool:
    ends = np.cumsum(row["lengths"].astype(np.int64))
    first = ends - row["lengths"] + 1
    if len(row["chunk_counts"]) != len(ends) or int(row["chunk_counts"].sum()) != len(row["chunk_starts"]):
        return False
    piece = np.repeat(np.arange(len(ends)), row["chunk_counts"].astype(np.int64))
    starts = row["chunk_starts"].astype(np.int64)
    return bool((starts >= first[piece]).all() and (starts < ends[piece]).all() and (np.diff(starts) > 0).all())


def _files_and_first_commits(packed: pa.Table) -> list[tuple[int | None, int | None]]:
    columns = zip(*(packed[name].to_pylist() for name in _ROW_CHRONOLOGY), strict=True)
    return [
        (None if file is None else _digest(file, b"sluice/file"), indices[0] if indices else None)
        for file, indices in columns
    ]


def _chronology_of_hot(hot: pa.Table) -> list[tuple[int | None, int | None]]:
    return list(zip(*(hot[name].to_pylist() for name in ("file_identity", "first_commit_index")), strict=True))


def _are_ascending_indices(values: npt.NDArray[np.uint32], length: int) -> bool:
    return bool((np.diff(values.astype(np.int64)) > 0).all() and (values < length).all())


def _is_ascending_run(indices: Sequence[int]) -> bool:
    return all(after - before in (0, 1) for before, after in pairwise(indices))
