"""Alignment of structure: from byte ranges of a document to its tokens. A token belongs to the chunk that owns its first byte.

Merges can run across a chunk's edge; one rule decides, so that every column agrees about such a token. A family of columns
that a document lacks stays null as a whole; a value that is missing inside of a family is zero.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.stages.tokenize.columns.list_column import ListColumn

_RUNS = {
    "structure_kinds": ("chunk_kinds", "chunk_starts"),
    "structure_levels": ("chunk_levels", "chunk_starts"),
    "depths": ("node_depths", "node_starts"),
    "sibling_indices": ("node_siblings", "node_starts"),
    "node_types": ("node_types", "node_starts"),
    "provenances": ("provenance_codes", "provenance_starts"),
}
"""Column of tokens -> column of values, and the column of bytes at which each value begins; it ends at the next."""
_EXTENTS = {
    "symbols": "symbols",
    "call_targets": "calls",
    "type_references": "type_references",
    "definitions_and_uses": "definitions_and_uses",
}
"""Column of tokens -> column of values, each valid from its `symbol_starts` to its `symbol_ends`."""
_EXTENT_EDGES = ("symbol_starts", "symbol_ends")
BYTE_STRUCTURE = (*sorted({name for pair in _RUNS.values() for name in pair}), *_EXTENTS.values(), *_EXTENT_EDGES)
"""The columns of EnrichedDocument that are read."""


def aligned_columns(
    enriched: pa.Table, token_starts: Sequence[npt.NDArray[np.int64]], schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return the token-aligned columns of documents whose tokens start at these bytes, and the first tokens of chunks."""
    columns = {name: ListColumn.from_arrow(enriched[name]) for name in BYTE_STRUCTURE}
    chunk_starts = [align_starts(columns["chunk_starts"][index], starts) for index, starts in enumerate(token_starts)]
    aligned = {"chunk_starts": _column(chunk_starts, schema.field("chunk_starts"), None)}
    for name, (values, runs) in _RUNS.items():
        lists = [
            align_values(columns[values][index], columns[runs][index], starts)
            for index, starts in enumerate(token_starts)
        ]
        aligned[name] = _column(lists, schema.field(name), _is_absent(enriched, values))
    for name, values in _EXTENTS.items():
        aligned[name] = _column(
            [_over_extents(columns, values, index, starts) for index, starts in enumerate(token_starts)],
            schema.field(name),
            _is_absent(enriched, values),
        )
    return aligned


def align_values(
    values_C: npt.NDArray[Any], chunk_starts_C: npt.NDArray[Any], token_starts_N: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Return for each token the value of its chunk; zero if it has none.

    Starts are ascending byte offsets; empty chunks own nothing.
    """
    if len(chunk_starts_C) == 0:
        return np.zeros(len(token_starts_N), dtype=values_C.dtype)
    owner_N = np.searchsorted(chunk_starts_C, token_starts_N, side="right") - 1
    return np.where(owner_N >= 0, values_C[np.maximum(owner_N, 0)], 0).astype(values_C.dtype)


def align_extents(
    values_E: npt.NDArray[Any],
    extents: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    token_starts_N: npt.NDArray[np.int64],
) -> npt.NDArray[Any]:
    """Return for each token the value of the extent that its first byte is in; zero outside of all.

    `extents` are the starts, ascending, and the ends of disjoint byte ranges.
    """
    starts_E, ends_E = extents
    if len(starts_E) == 0:
        return np.zeros(len(token_starts_N), dtype=values_E.dtype)
    owner_N = np.searchsorted(starts_E, token_starts_N, side="right") - 1
    is_inside_N = (owner_N >= 0) & (token_starts_N < ends_E[owner_N])
    return np.where(is_inside_N, values_E[owner_N], 0).astype(values_E.dtype)


def align_starts(chunk_starts_C: npt.NDArray[Any], token_starts_N: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return for each chunk that owns a token the index of its first token. Ascending, each at most once."""
    first_C = np.searchsorted(token_starts_N, chunk_starts_C, side="left")
    return np.unique(first_C[first_C < len(token_starts_N)]).astype(np.uint32)


def line_starts(ids: ListColumn, ends_line: npt.NDArray[np.bool_]) -> ListColumn:
    """Return for each document the token indices where a line starts, without the first token's.

    `ends_line` is true for ids whose bytes end a line. Exact, because a token ends with the line ends in it.
    """
    ends = np.flatnonzero(ends_line[ids.values]) + 1
    document = np.searchsorted(ids.offsets, ends, side="left") - 1
    offsets = np.searchsorted(document, np.arange(len(ids) + 1))
    return ListColumn((ends - ids.offsets[document]).astype(np.uint32), offsets.astype(np.int64))


def _over_extents(
    columns: Mapping[str, ListColumn], values: str, index: int, starts: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    extents = (columns["symbol_starts"][index], columns["symbol_ends"][index])
    return align_extents(columns[values][index], extents, starts)


def _is_absent(enriched: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    absent: npt.NDArray[np.bool_] = enriched[name].is_null().to_numpy()
    return absent


def _column(lists: Sequence[Any], field: pa.Field, is_absent: npt.NDArray[np.bool_] | None) -> pa.Array:
    if is_absent is not None and is_absent.any():
        lists = [values[:0] if absent else values for values, absent in zip(lists, is_absent, strict=True)]
    column = ListColumn.of(lists, field.type.value_type.to_pandas_dtype())
    return column.to_arrow(field.type, is_absent if field.nullable else None)
