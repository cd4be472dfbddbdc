"""Chunks of a size that a row can hold: what is larger is split where its parts begin, and small parts go together.

Size is counted in bytes that are no blanks, so that indentation costs nothing. A chunk is split at the starts of the
nodes in it, the outermost first; a node that is too large itself is opened in turn. Of the pieces, neighbours are put
together as long as they stay within the limit. A leaf, such as a string of a megabyte, is never cut.
"""

from collections.abc import Sequence

from tree_sitter import Node

from pipeline.enrich.chunks import Chunk
from pipeline.enrich.syntax import Syntax

_BLANKS = b" \t\n\r\v\f"


def sized_chunks(syntax: Syntax, chunks: Sequence[Chunk], max_num_bytes: int) -> list[Chunk]:
    """The chunks, each with at most `max_num_bytes` bytes that are no blanks, as far as its leaves allow."""
    if syntax.tree is None:
        return list(chunks)
    sized: list[Chunk] = []
    for chunk in chunks:
        if chunk.end - chunk.start <= max_num_bytes or _size(syntax.content, chunk.start, chunk.end) <= max_num_bytes:
            sized.append(chunk)
            continue
        starts = _merged(syntax.content, _split(syntax, chunk, max_num_bytes), chunk.end, max_num_bytes)
        ends = [*starts[1:], chunk.end]
        sized += [chunk._replace(start=start, end=end) for start, end in zip(starts, ends, strict=True)]
    return sized


def _size(content: bytes, start: int, end: int) -> int:
    return len(content[start:end].translate(None, _BLANKS))


def _split(syntax: Syntax, chunk: Chunk, max_num_bytes: int) -> list[int]:
    """Where the parts of a chunk start, in order: the chunk's own start, and those of the nodes that were not opened."""
    assert syntax.tree is not None  # the caller has looked
    content, starts = syntax.content, [chunk.start]
    root = syntax.tree.root_node
    pending = [root.descendant_for_byte_range(chunk.start, chunk.end) or root]
    while pending:
        node = pending.pop()
        start, end = node.start_byte, node.end_byte
        if end <= chunk.start or start >= chunk.end:
            continue
        is_inside = chunk.start <= start and end <= chunk.end
        if is_inside and (end - start <= max_num_bytes or _size(content, start, end) <= max_num_bytes):
            start = _line_start(content, start, starts[-1])
            if start > starts[-1]:
                starts.append(start)
            continue
        pending.extend(_children_within(node, chunk))
    return starts


def _children_within(node: Node, chunk: Chunk) -> list[Node]:
    """Last first, for a stack."""
    children = node.children[::-1]
    if chunk.start <= node.start_byte and node.end_byte <= chunk.end:
        return children
    return [child for child in children if child.end_byte > chunk.start and child.start_byte < chunk.end]


def _line_start(content: bytes, start: int, least: int) -> int:
    """The start of the line if only blanks stand between; else `start` itself."""
    at = least + len(content[least:start].rstrip(b" \t"))
    return at if content[at - 1 : at] == b"\n" else start


def _merged(content: bytes, starts: Sequence[int], end: int, max_num_bytes: int) -> list[int]:
    merged: list[int] = []
    num_bytes = max_num_bytes + 1
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        size = _size(content, start, stop)
        if num_bytes + size > max_num_bytes:
            merged.append(start)
            num_bytes = 0
        num_bytes += size
    return merged
