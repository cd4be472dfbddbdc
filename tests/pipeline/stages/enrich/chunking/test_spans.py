"""Spans: the chunks made of them are those that a plain list of objects gives."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.records import ChunkKind
from pipeline.stages.enrich.chunking.spans import Spans

TEXTS = st.text(alphabet="ab;/ \t\r\n\v", max_size=40)
KINDS = list(ChunkKind)
NEVER_JOINED = (ChunkKind.FUNC_SIG, ChunkKind.FUNC_BODY, ChunkKind.CLASS_DECL)


@dataclass
class Piece:
    start: int
    end: int
    kind: ChunkKind
    level: int
    has_comment: bool = False


def num_lines(text: str, start: int, end: int) -> int:
    return text[start:end].count("\n")


def put(text: str, pieces: list[Piece], blanked: list[tuple[int, int]], piece: Piece) -> None:
    """Add a piece, after those that were blanked before it."""
    while blanked and blanked[0][1] <= piece.start:
        put(text, pieces, [], Piece(*blanked.pop(0), ChunkKind.PREAMBLE, piece.level))
    last = pieces[-1] if pieces else Piece(0, 0, ChunkKind.OTHER, -1)
    piece.start = max(piece.start, last.end)
    piece.end = piece.start + len(text[piece.start : piece.end].rstrip(" \t\r\n\v\f"))
    if piece.end <= piece.start:
        return
    is_like = (piece.kind, piece.level) == (last.kind, last.level) and piece.kind not in NEVER_JOINED
    if is_like and not piece.has_comment and num_lines(text, last.end, piece.start) <= 1:
        last.end = piece.end
    else:
        pieces.append(piece)


def plain_pieces(text: str, found: list[tuple[str, Piece]], blanked: list[tuple[int, int]]) -> list[Piece]:
    """Join what was found, each comment with its owner, by the rules of the module that cuts texts into chunks."""
    pieces: list[Piece] = []
    comments: list[Piece] = []  # the one that waits for its owner, or none
    for what, piece in [*found, ("plain", Piece(len(text), len(text), ChunkKind.OTHER, 0))]:
        if what == "punctuation":
            if pieces and not comments:
                pieces[-1].end = max(pieces[-1].end, piece.end)
            continue
        is_near = bool(comments) and num_lines(text, comments[0].end, piece.start) <= 1
        if is_near and what == "comment":
            comments[0].end = piece.end
            continue
        if is_near and what == "documented":
            piece.start, piece.has_comment = comments.pop().start, True
        elif comments:
            put(text, pieces, blanked, comments.pop())
        if what != "comment":
            put(text, pieces, blanked, piece)
        elif pieces and num_lines(text, pieces[-1].end, piece.start) == 0:
            pieces[-1].end = piece.end
        else:
            comments.append(Piece(piece.start, piece.end, ChunkKind.COMMENT, piece.level, has_comment=True))
    return pieces


def start_of_line(text: str, before: Piece, piece: Piece) -> int:
    line = before.end + len(text[before.end : piece.start].rstrip(" \t"))
    return line if text[line - 1] == "\n" else piece.start


@st.composite
def findings(draw: st.DrawFn) -> tuple[str, list[tuple[str, Piece]], list[tuple[int, int]]]:
    """Draw a text, what a walk over it could find, and ranges of it that were blanked."""
    text = draw(TEXTS)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=24)))
    reach = draw(st.sampled_from([1, 2]))  # with two, each overlaps the next
    found = []
    for start, end in zip(places, places[reach:], strict=False):
        what = draw(st.sampled_from(["plain", "documented", "documented", "comment", "comment", "punctuation"]))
        found.append((what, Piece(start, end, draw(st.sampled_from(KINDS)), draw(st.sampled_from([0, 1, 300])))))
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return text, found, list(zip(edges[::2], edges[1::2], strict=False))


@settings(max_examples=600)
@given(findings())
def test_chunks_are_those_of_a_plain_list(case: tuple[str, list[tuple[str, Piece]], list[tuple[int, int]]]) -> None:
    text, found, blanked = case
    spans = Spans()
    for what, piece in found:
        if what == "punctuation":
            spans.absorb(piece.end)
        elif what == "comment":
            spans.add_comment(piece.start, piece.end, piece.level)
        else:
            spans.add(piece.start, piece.end, piece.kind, piece.level, takes_comment=what == "documented")
    chunks = spans.chunks(text.encode(), blanked)

    pieces = plain_pieces(text, found, list(blanked))
    starts = [0, *(start_of_line(text, *pair) for pair in pairwise(pieces))]
    wanted = [
        (start, end, piece.kind, min(piece.level, 255))
        for start, end, piece in zip(starts, [*starts[1:], len(text)], pieces, strict=False)
    ]
    assert [tuple(chunk) for chunk in chunks] == (wanted or [(0, len(text), ChunkKind.OTHER, 0)] * bool(text))


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_a_text_in_which_nothing_is_found_is_one_chunk_if_it_has_bytes(content: bytes) -> None:
    assert [chunk.end for chunk in Spans().chunks(content, ())] == [len(content)] * bool(content)
