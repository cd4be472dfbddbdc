"""Packing: the pieces of documents that share a row, decided by lengths, chunk starts and identities, not by tokens.

A document that does not fit a row is cut into pieces: at the start of a chunk, unless that would waste too much of the
row; then at the start of a line, and only inside an over-long line anywhere. A piece takes one
slot for BOS and, if it is its document's last, one for EOS. Three more are kept free for the sentinels of infilling.
The same documents give the same rows, in whatever order they come in.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.contracts.training_row import NUM_SENTINELS, PIECE_DIGEST
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.params import Packing, TokenizeParams


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens `start` to `end` of a document, which is given by its index in the input."""

    document: int
    index: int
    start: int
    end: int
    is_last: bool
    identity: int

    @property
    def num_slots(self) -> int:
        """BOS, the tokens, and EOS on the last piece of a document."""
        return 1 + self.end - self.start + self.is_last


@dataclass(frozen=True, slots=True)
class Documents:
    """Lengths and possible cuts of the documents of one split of one source. `order` is the reading order, ties by id.

    Chunk and line starts are token indices, ascending.
    """

    document_ids: Sequence[str]
    num_tokens: npt.NDArray[np.int64]
    chunk_starts: ListColumn
    line_starts: ListColumn
    order: npt.NDArray[np.int64]
    files: Sequence[str | None] = ()
    """The stable id of the file whose commit a document is; empty or None where it has no chronology."""
    commits: npt.NDArray[np.int64] | None = None
    """The `file_local_commit_index` of those documents."""
    groups: Sequence[Any] = ()
    """Values that all documents of a row have in common, such as the license; empty where any may be together."""

    def group(self, piece: Piece) -> Any:
        """Return what all documents of the row of a piece have in common."""
        return self.groups[piece.document] if self.groups else None


Rows = list[list[Piece]]

_PIECE_HASH = hashlib.blake2b(digest_size=8, person=PIECE_DIGEST)
"""Initial state of the hash of a piece: a copy of it costs less than another one."""


def pack(documents: Documents, params: TokenizeParams) -> Rows:
    """Return the pieces of each row, in reading order. Every token of every document is in exactly one piece."""
    pieces = _pieces_in_order(documents, params)
    dated = [piece for piece in pieces if documents.files and documents.files[piece.document] is not None]
    if dated:
        pieces = [piece for piece in pieces if documents.files[piece.document] is None]
    return _pack_groups(pieces, documents, params) + _pack_chains(dated, documents, params)


def _pack_groups(pieces: Sequence[Piece], documents: Documents, params: TokenizeParams) -> Rows:
    """Pack pieces without chronology, each group apart; the rows are in the order of their first pieces."""
    by_group: dict[Any, list[Piece]] = {}
    for piece in pieces:
        by_group.setdefault(documents.group(piece), []).append(piece)
    rows = [row for each in by_group.values() for row in _pack_plain(each, params)]
    if len(by_group) > 1:
        places = {(piece.document, piece.index): place for place, piece in enumerate(pieces)}
        rows.sort(key=lambda row: places[row[0].document, row[0].index])
    return rows


def _pack_plain(pieces: Sequence[Piece], params: TokenizeParams) -> Rows:
    """Pack pieces of one group."""
    if params.packing is Packing.SINGLE_DOC:
        return [[piece] for piece in pieces]
    rows: Rows = []
    for start in range(0, len(pieces), params.window_pieces):
        rows += _pack_window(pieces[start : start + params.window_pieces], params.row_length)
    return rows


def _pack_chains(pieces: Sequence[Piece], documents: Documents, params: TokenizeParams) -> Rows:
    """Pack consecutive commits of one file, oldest first, file by file: a row ends where the next piece does not fit."""
    if not pieces:
        return []
    assert documents.commits is not None  # documents with files have commits
    commits = documents.commits.tolist()

    def place(piece: Piece) -> tuple[str, int, str, int]:
        """Return file, commit, document and piece."""
        number = piece.document
        return str(documents.files[number]), commits[number], documents.document_ids[number], piece.index

    rows: Rows = []
    before, room = ("", -2, None), 0
    for piece in sorted(pieces, key=place):
        file, commit, _, _ = place(piece)
        group = documents.group(piece)
        follows = (file, group) == before[::2] and commit - before[1] in (0, 1)
        slots = piece.num_slots + NUM_SENTINELS
        if params.packing is Packing.SINGLE_DOC or not follows or slots > room:
            rows.append([])
            room = params.row_length
        rows[-1].append(piece)
        before, room = (file, commit, group), room - slots
    return rows


def piece_identity(document_id: str, index: int) -> int:
    """Return the 64-bit identity of a piece.

    It seeds infilling and breaks ties, so that no decision depends on an index in a list.
    """
    state = _PIECE_HASH.copy()
    state.update(f"{document_id}:{index}".encode())
    return int.from_bytes(state.digest(), "little")


class Cuts(NamedTuple):
    """Ascending token indices at which a document may be cut: starts of chunks, and starts of lines."""

    chunk_starts: npt.NDArray[np.uint32]
    line_starts: npt.NDArray[np.uint32]


def cut(num_tokens: int, cuts: Cuts, row_length: int, max_waste: int = 0) -> list[tuple[int, int]]:
    """Cut a document into token ranges, each as long as fits.

    A piece ends where the last chunk in reach starts, if that leaves at most `max_waste` tokens of room; else where the
    last line in reach starts, or hard in a line that is longer than a row.
    """
    room = row_length - NUM_SENTINELS - 1
    ranges: list[tuple[int, int]] = []
    start = 0
    while num_tokens - start > room - 1:  # the last piece needs a slot for EOS
        limit = min(start + room, num_tokens - 1)
        end = _last_until(cuts.chunk_starts, limit)
        if end <= start or limit - end > max_waste:
            end = max(end, _last_until(cuts.line_starts, limit))
        if end <= start:
            end = limit
        ranges.append((start, end))
        start = end
    return [*ranges, (start, num_tokens)]


def _last_until(starts: npt.NDArray[np.uint32], limit: int) -> int:
    place = int(np.searchsorted(starts, limit, side="right"))
    return int(starts[place - 1]) if place else 0


def best_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Pack lengths, in the order given, into bins: each goes to the bin with the least room that is enough.

    Returns the indices in each bin. Rooms with a bin in them are bits of one integer, so that the best bin is found
    with a shift and the lowest set bit, O(N log L) for capacities of machine words (arXiv 2404.10830 keeps a segment
    tree).
    """
    bins: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(capacity + 1)]
    rooms = 0
    for index, length in enumerate(lengths):
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            bin_index = with_room[room].pop()
            if not with_room[room]:
                rooms ^= 1 << room
        else:
            room, bin_index = capacity, len(bins)
            bins.append([])
        bins[bin_index].append(index)
        with_room[room - length].append(bin_index)
        rooms |= 1 << (room - length)
    return bins


def _pieces_in_order(documents: Documents, params: TokenizeParams) -> list[Piece]:
    ids, num_tokens = documents.document_ids, documents.num_tokens.tolist()
    orders = documents.order.tolist()
    max_waste = int(params.max_cut_waste_fraction * params.row_length)
    pieces: list[Piece] = []
    for document in sorted(range(len(ids)), key=lambda document: (orders[document], ids[document])):
        if num_tokens[document] < params.row_length - NUM_SENTINELS - 1:
            ranges = [(0, num_tokens[document])]
        else:
            cuts = Cuts(documents.chunk_starts[document], documents.line_starts[document])
            ranges = cut(num_tokens[document], cuts, params.row_length, max_waste)
        for index, (start, end) in enumerate(ranges):
            is_last = end == num_tokens[document]
            pieces.append(Piece(document, index, start, end, is_last, piece_identity(ids[document], index)))
    return pieces


def _pack_window(pieces: Sequence[Piece], row_length: int) -> Rows:
    """Pack the longest pieces first, ties by identity; then sort the pieces of a row, and the rows, in reading order."""
    slots = [piece.num_slots for piece in pieces]
    falling = sorted(range(len(pieces)), key=lambda place: (-slots[place], pieces[place].identity))
    bins = best_fit([slots[place] + NUM_SENTINELS for place in falling], row_length)
    rows = sorted(sorted(falling[index] for index in members) for members in bins)
    return [[pieces[place] for place in row] for row in rows]
