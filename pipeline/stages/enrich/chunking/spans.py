"""Spans found in a text, in order, and the chunks that are made of them.

The rules are in `chunks.py` beside it; this is a list of numbers, which `pipeline.stages.enrich.syntax.tree_loops` reads.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.records import ChunkKind
from pipeline.stages.enrich.syntax.branches import ByteRange

MAX_LEVEL = 255
_KINDS = tuple(ChunkKind)
KIND_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_NEVER_JOINED = frozenset({ChunkKind.FUNC_SIG, ChunkKind.FUNC_BODY, ChunkKind.CLASS_DECL})
_RULES = (
    _KINDS.index(ChunkKind.PREAMBLE),
    _KINDS.index(ChunkKind.COMMENT),
    np.array([kind in _NEVER_JOINED for kind in _KINDS]),
)
_NUM_COLUMNS = 5


class Chunk(NamedTuple):
    """A byte range of the UTF-8 text. The first chunk starts at 0, each next one at the end of the one before."""

    start: int
    end: int
    kind: ChunkKind
    level: int


class Spans:
    """List of what is found in a text, in its order: what it is, its start, end, kind and level."""

    def __init__(self) -> None:
        from pipeline.stages.enrich.syntax import tree_loops  # late: numba takes half a second

        self._found: list[int] = []
        self._loops = tree_loops

    def add(self, start: int, end: int, kind: ChunkKind, level: int, takes_comment: bool = True) -> None:
        """Add what was found at [start, end); `takes_comment` if a comment right before it belongs to it."""
        what = self._loops.DOCUMENTED if takes_comment else self._loops.PLAIN
        self._found.extend((what, start, end, KIND_CODES[kind], level))

    def add_comment(self, start: int, end: int, level: int) -> None:
        """Add a comment. It belongs to the line that it ends, the comment that it continues, or the span that follows."""
        self._found.extend((self._loops.COMMENT, start, end, 0, level))

    def absorb(self, end: int) -> None:
        """Add punctuation up to `end`, which belongs to the last span."""
        self._found.extend((self._loops.PUNCTUATION, end, end, 0, 0))

    def chunks(self, content: bytes, blanked: Sequence[ByteRange]) -> list[Chunk]:
        """Return the chunks of the whole text. An empty text has none."""
        end = len(content)
        self._found.extend((self._loops.PLAIN, end, end, 0, 0))
        found = np.frombuffer(array("q", self._found), dtype=np.int64).reshape(-1, _NUM_COLUMNS)
        edges = np.array(blanked, dtype=np.int64).reshape(-1, 2)
        text = np.frombuffer(content, np.uint8)
        starts, kinds, levels = self._loops.joined_spans(text, found, edges, _RULES, MAX_LEVEL)
        if not len(starts):
            return [Chunk(0, end, ChunkKind.OTHER, 0)] if content else []
        first, *rest = starts.tolist()
        columns = ([first, *rest], [*rest, end], map(_KINDS.__getitem__, kinds.tolist()), levels.tolist())
        return list(map(Chunk._make, zip(*columns, strict=True)))
