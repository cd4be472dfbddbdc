"""The structure of documents over their tokens: each column of EnrichedDocument that has one of TokenizedDocument.

A family of columns that a document lacks stays absent, all of it; what is there and says nothing is zero.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.tokenize.columns.align import align_extents, align_starts, align_values
from pipeline.tokenize.columns.list_column import ListColumn

_RUNS = {
    "structure_kinds": ("chunk_kinds", "chunk_starts"),
    "structure_levels": ("chunk_levels", "chunk_starts"),
    "depths": ("node_depths", "node_starts"),
    "sibling_indices": ("node_siblings", "node_starts"),
    "node_types": ("node_types", "node_starts"),
    "provenances": ("provenance_codes", "provenance_starts"),
}
"""Column of tokens -> column of values, and the column of the bytes from which each value holds up to the next."""
_EXTENTS = {
    "symbols": "symbols",
    "call_targets": "calls",
    "type_references": "type_references",
    "definitions_and_uses": "definitions_and_uses",
}
"""Column of tokens -> column of values, each of which holds from its `symbol_starts` to its `symbol_ends`."""
_EXTENT_EDGES = ("symbol_starts", "symbol_ends")
BYTE_STRUCTURE = (*sorted({name for pair in _RUNS.values() for name in pair}), *_EXTENTS.values(), *_EXTENT_EDGES)
"""The columns of EnrichedDocument that are read."""

Starts = Sequence[npt.NDArray[np.int64]]


def aligned_columns(enriched: pa.Table, token_starts: Starts, schema: pa.Schema) -> dict[str, pa.Array]:
    """The token-aligned columns of documents whose tokens begin at these bytes, and the chunks' first tokens."""
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
