"""Which pieces of which documents share a row. Nothing here looks at a token: lengths, chunk starts and identities
decide.

A document that does not fit a row is cut into pieces, at the start of a chunk where there is one. A piece takes one
slot for BOS and, if it is its document's last, one for EOS. Three more are kept free for the sentinels of infilling.
The same documents give the same rows, in whatever order they come in.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.tokenize.columns import ListColumn
from pipeline.tokenize.params import Packing, TokenizeParams

NUM_SENTINELS = 3
"""Slots that each piece keeps free for infilling: prefix, middle and suffix."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens `start` to `end` of a document, which is named by its place in the input."""

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
    """What packing knows of one split of one source. `order` is the wanted reading order, ties by id."""

    document_ids: Sequence[str]
    num_tokens: npt.NDArray[np.int64]
    chunk_starts: ListColumn
    order: npt.NDArray[np.int64]


Rows = list[list[Piece]]


def pack(documents: Documents, params: TokenizeParams) -> Rows:
    """The pieces of each row, in reading order. Every token of every document is in exactly one piece."""
    pieces = _pieces_in_order(documents, params.row_length)
    if params.packing is Packing.SINGLE_DOC:
        return [[piece] for piece in pieces]
    rows: Rows = []
    for start in range(0, len(pieces), params.window_pieces):
        rows += _pack_window(pieces[start : start + params.window_pieces], params.row_length)
    return rows


def piece_identity(document_id: str, index: int) -> int:
    """The 64-bit name of a piece.

    It seeds infilling and breaks ties, so that no decision depends on a place in a list.
    """
    digest = hashlib.blake2b(f"{document_id}:{index}".encode(), digest_size=8, person=b"sluice/piece")
    return int.from_bytes(digest.digest(), "little")


def cut(num_tokens: int, chunk_starts: npt.NDArray[np.uint32], row_length: int) -> list[tuple[int, int]]:
    """Token ranges of a document's pieces: as long as fits and ending where a chunk starts, or hard in an over-long one."""
    room = row_length - NUM_SENTINELS - 1
    ranges: list[tuple[int, int]] = []
    start = 0
    while num_tokens - start > room - 1:  # the last piece needs a slot for EOS
        limit = min(start + room, num_tokens - 1)
        place = int(np.searchsorted(chunk_starts, limit, side="right")) - 1
        end = int(chunk_starts[place]) if place >= 0 and chunk_starts[place] > start else limit
        ranges.append((start, end))
        start = end
    return [*ranges, (start, num_tokens)]


def best_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Best-fit of lengths, in the order given, into bins: each goes to the bin with the least room that is enough.

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


def _pieces_in_order(documents: Documents, row_length: int) -> list[Piece]:
    ids, num_tokens = documents.document_ids, documents.num_tokens.tolist()
    reading_order = sorted(range(len(ids)), key=lambda document: (documents.order[document], ids[document]))
    return [
        Piece(document, index, start, end, end == num_tokens[document], piece_identity(ids[document], index))
        for document in reading_order
        for index, (start, end) in enumerate(cut(num_tokens[document], documents.chunk_starts[document], row_length))
    ]


def _pack_window(pieces: Sequence[Piece], row_length: int) -> Rows:
    """Longest pieces first, ties by identity; then the pieces of a row, and the rows, back in reading order."""
    falling = sorted(range(len(pieces)), key=lambda place: (-pieces[place].num_slots, pieces[place].identity))
    bins = best_fit([pieces[place].num_slots + NUM_SENTINELS for place in falling], row_length)
    rows = sorted(sorted(falling[index] for index in members) for members in bins)
    return [[pieces[place] for place in row] for row in rows]
