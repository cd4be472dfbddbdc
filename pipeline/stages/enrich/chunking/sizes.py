"""Chunks of a size that a row can hold: what is larger is split where its parts begin, and small parts go together.

Size is counted in bytes that are no blanks, so that indentation costs nothing. A chunk is split at the starts of the
nodes in it, the outermost first; a node that is too large itself is opened in turn. Of the pieces, neighbors are put
together as long as they stay within the limit. A leaf, such as a string of a megabyte, is never cut.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.stages.enrich.chunking.spans import Chunk
from pipeline.stages.enrich.syntax.parse import Syntax

_IS_BLANK = np.isin(np.arange(256), [*b" \t\n\r\v\f"])


def sized_chunks(syntax: Syntax, chunks: Sequence[Chunk], max_num_bytes: int) -> list[Chunk]:
    """Return the chunks, each with at most `max_num_bytes` bytes other than blanks, as far as its leaves allow."""
    if syntax.tree is None or all(chunk.end - chunk.start <= max_num_bytes for chunk in chunks):
        return list(chunks)
    sizes = np.zeros(len(syntax.content) + 1, np.int64)  # of the text before each place, without blanks
    np.cumsum(~_IS_BLANK[np.frombuffer(syntax.content, dtype=np.uint8)], out=sizes[1:])
    sized: list[Chunk] = []
    for chunk in chunks:
        if sizes[chunk.end] - sizes[chunk.start] <= max_num_bytes:
            sized.append(chunk)
            continue
        cuts = _cuts(sizes, chunk, _node_starts(syntax, sizes, chunk, max_num_bytes), max_num_bytes)
        edges = [chunk.start, *(_line_start(syntax.content, cut) for cut in cuts), chunk.end]
        sized += [chunk._replace(start=start, end=end) for start, end in pairwise(edges)]
    return sized


def _node_starts(syntax: Syntax, sizes: NDArray[np.int64], chunk: Chunk, max_num_bytes: int) -> list[int]:
    """Return where the nodes in a chunk start that are small enough, in order. Larger ones are opened."""
    assert syntax.tree is not None  # the caller has looked
    starts: list[int] = []
    root = syntax.tree.root_node
    pending = [root.descendant_for_byte_range(chunk.start, chunk.end) or root]
    while pending:
        node = pending.pop()
        start, end = node.start_byte, node.end_byte
        if end <= chunk.start or start >= chunk.end:
            continue
        is_inside = chunk.start <= start and end <= chunk.end
        children = [] if is_inside and end - start <= max_num_bytes else node.children
        if children and not (is_inside and sizes[end] - sizes[start] <= max_num_bytes):
            pending += children[::-1]
        elif is_inside:
            starts.append(start)
    return starts


def _cuts(sizes: NDArray[np.int64], chunk: Chunk, starts: Sequence[int], max_num_bytes: int) -> list[int]:
    """Return the starts at which the chunk is cut: as many parts go together as stay within the limit."""
    if not starts:
        return []
    sizes_before = sizes[starts].tolist()
    cuts: list[int] = []
    size_at_cut = int(sizes[chunk.start])
    ends = [*sizes_before[1:], int(sizes[chunk.end])]
    for start, before, after in zip(starts, sizes_before, ends, strict=True):
        if after - size_at_cut > max_num_bytes and before > size_at_cut:
            cuts.append(start)
            size_at_cut = before
    return cuts


def _line_start(content: bytes, start: int) -> int:
    """Return the start of the line if only blanks are between; else `start` itself."""
    line = content.rfind(b"\n", 0, start) + 1
    return start if content[line:start].strip(b" \t") else line
