"""Packing: every token once, rows that fit, and the places where documents are cut."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.contracts.training_row import NUM_SENTINELS
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.params import Packing, TokenizeParams
from pipeline.stages.tokenize.rows.pack import Cuts, Documents, Rows, best_fit, cut, pack, piece_identity

Shape = tuple[int, list[int], list[int]]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Number of tokens of a document, its chunk starts and its line starts."""
    num_tokens = draw(st.integers(0, 200))
    starts, lines = (draw(st.sets(st.integers(0, max(0, num_tokens - 1)), max_size=size)) for size in (20, 60))
    return num_tokens, sorted(starts) if num_tokens else [], sorted(lines) if num_tokens else []


PARAMS = st.builds(
    TokenizeParams, row_length=st.integers(16, 64), packing=st.sampled_from(Packing), window_pieces=st.integers(1, 40)
)


def _documents(named: dict[str, Shape], order: list[str], has_groups: bool = False) -> Documents:
    """The documents in the given order; the reading order is that of their names, with ties."""
    return Documents(
        document_ids=order,
        num_tokens=np.array([named[name][0] for name in order], dtype=np.int64),
        chunk_starts=ListColumn.of([named[name][1] for name in order], np.dtype(np.uint32)),
        line_starts=ListColumn.of([named[name][2] for name in order], np.dtype(np.uint32)),
        order=np.array([int(name) // 2 for name in order], dtype=np.int64),
        groups=[_group(name) for name in order] if has_groups else [],
    )


def _group(name: str) -> str:
    """Return what the documents of a row have in common: of twelve there are some of each, in no order."""
    return "ab"[int(name) * 7 % 11 % 2]


def _named(rows: Rows, order: list[str]) -> list[list[tuple[str, int, int, int, bool]]]:
    return [
        [(order[piece.document], piece.index, piece.start, piece.end, piece.is_last) for piece in row] for row in rows
    ]


@given(st.lists(shapes(), max_size=12), PARAMS)
@settings(max_examples=150)
def test_every_token_is_packed_once_and_every_row_fits(documents: list[Shape], params: TokenizeParams) -> None:
    named = {str(number): shape for number, shape in enumerate(documents)}
    rows = pack(_documents(named, list(named), has_groups=True), params)
    for row in rows:
        assert sum(piece.num_slots + NUM_SENTINELS for piece in row) <= params.row_length
        assert len({_group(str(piece.document)) for piece in row}) == 1
    firsts = [(row[0].document // 2, str(row[0].document), row[0].index) for row in rows]
    assert firsts == sorted(firsts)
    pieces = sorted(
        (piece.document, piece.index, piece.start, piece.end, piece.is_last) for row in rows for piece in row
    )
    for number, (num_tokens, _, _) in enumerate(documents):
        mine = [piece for piece in pieces if piece[0] == number]
        assert [piece[1] for piece in mine] == list(range(len(mine)))
        assert [token for piece in mine for token in range(piece[2], piece[3])] == list(range(num_tokens))
        assert [piece[4] for piece in mine] == [False] * (len(mine) - 1) + [True]


@given(st.lists(shapes(), max_size=12), PARAMS, st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_the_order_of_the_input_moves_no_row(
    documents: list[Shape], params: TokenizeParams, shuffle: random.Random
) -> None:
    named = {str(number): shape for number, shape in enumerate(documents)}
    order = list(named)
    shuffle.shuffle(order)
    assert _named(pack(_documents(named, order, has_groups=True), params), order) == _named(
        pack(_documents(named, list(named), has_groups=True), params), list(named)
    )


def _cuts(chunks: list[int], lines: list[int]) -> Cuts:
    return Cuts(np.array(chunks, np.uint32), np.array(lines, np.uint32))


@given(shapes(), st.integers(16, 64), st.integers(0, 70))
def test_a_document_is_cut_at_a_chunk_unless_a_line_wastes_less(shape: Shape, row_length: int, max_waste: int) -> None:
    num_tokens, chunks, lines = shape
    for begin, end in cut(num_tokens, _cuts(chunks, lines), row_length, max_waste)[:-1]:
        limit = min(begin + row_length - 4, num_tokens - 1)
        at_chunk, at_line = (
            max((start for start in starts if begin < start <= limit), default=begin) for starts in (chunks, lines)
        )
        near_enough = at_chunk > begin and limit - at_chunk <= max_waste
        best = at_chunk if near_enough else max(at_chunk, at_line)
        assert end == (best if best > begin else limit)


def test_an_over_long_line_is_cut_hard_and_eos_is_never_alone() -> None:
    assert cut(24, _cuts([0], []), 16) == [(0, 12), (12, 23), (23, 24)]
    assert cut(12, _cuts([0], [0]), 16) == [(0, 11), (11, 12)]
    assert cut(11, _cuts([0], []), 16) == [(0, 11)]
    assert cut(24, _cuts([0, 4], [8, 12]), 16, max_waste=3) == [(0, 12), (12, 23), (23, 24)]
    assert cut(24, _cuts([0, 9], [8, 12]), 16, max_waste=3) == [(0, 9), (9, 12), (12, 23), (23, 24)]


@given(st.lists(st.integers(1, 20), max_size=60))
def test_best_fit_takes_the_fullest_bin_that_has_room(lengths: list[int]) -> None:
    rooms: list[int] = []
    for length in lengths:
        fitting = [room for room in rooms if room >= length]
        if fitting:
            rooms.remove(min(fitting))
        rooms.append((min(fitting) if fitting else 20) - length)
    bins = best_fit(lengths, 20)
    assert sorted(20 - sum(lengths[index] for index in members) for members in bins) == sorted(rooms)
    assert sorted(index for members in bins for index in members) == list(range(len(lengths)))


def test_single_doc_gives_each_piece_a_row() -> None:
    named = {"0": (5, [0], []), "1": (40, [0, 9, 18, 30], [])}
    rows = pack(_documents(named, ["1", "0"]), TokenizeParams(row_length=16, packing=Packing.SINGLE_DOC))
    assert [len(row) for row in rows] == [1] * len(rows)
    assert len(rows) == 5


def test_a_window_keeps_its_pieces_together() -> None:
    named = {str(number): (3, [0], []) for number in range(10)}
    order = sorted(named)
    rows = pack(_documents(named, order), TokenizeParams(row_length=64, window_pieces=4))
    assert [len(row) for row in rows] == [4, 4, 2]
    assert [piece.document for row in rows for piece in row] == list(range(10))


@pytest.mark.parametrize("other", [("a", 1), ("b", 0), ("a:1", 0)])
def test_a_piece_has_an_identity_of_its_own(other: tuple[str, int]) -> None:
    assert piece_identity("a", 0) != piece_identity(*other)
    assert 0 <= piece_identity(*other) < 2**64
