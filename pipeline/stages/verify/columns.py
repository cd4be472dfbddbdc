"""Proof that the columns of tokens hold the structure of their documents, by painting it on bytes.

Each byte gets the value that the document's structure gives it, and a token has the value of its first byte. It shares no code with
the alignment, which searches ranges. Shapes: N tokens, B bytes, C chunks, E extents of one document.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Tokenizer

from pipeline.contracts.training_row import ROW_GROUP
from pipeline.core.records import CHRONOLOGY
from pipeline.stages.verify.list_values import IntArray, lists

AnyArray = npt.NDArray[Any]
COPIED = ("source", "path", "split", "text_sha256", *ROW_GROUP, *CHRONOLOGY)
"""Columns that a document keeps when it is encoded."""
BYTE_RUNS = {
    "structure_kinds": ("chunk_kinds", "chunk_starts"),
    "structure_levels": ("chunk_levels", "chunk_starts"),
    "depths": ("node_depths", "node_starts"),
    "sibling_indices": ("node_siblings", "node_starts"),
    "node_types": ("node_types", "node_starts"),
    "provenances": ("provenance_codes", "provenance_starts"),
}
"""Column of tokens -> values and where each begins: it is that of all bytes until the next begins."""
BYTE_EXTENTS = {
    "symbols": "symbols",
    "call_targets": "calls",
    "type_references": "type_references",
    "definitions_and_uses": "definitions_and_uses",
}
"""Column of tokens -> values of the bytes from `symbol_starts` to `symbol_ends`."""
EDGES = ("symbol_starts", "symbol_ends")
PROVED_FROM = tuple(
    dict.fromkeys(("document_id", "text", *COPIED, *sum(BYTE_RUNS.values(), ()), *BYTE_EXTENTS.values(), *EDGES))
)
"""The columns of EnrichedDocument that the proof reads."""


def count_documents_with_other_columns(tokens: pa.Table, enriched: pa.Table, tokenizer: Tokenizer) -> int:
    """Count documents one of whose columns of tokens is not what the enriched document's own columns give its tokens."""
    size_of_id = num_bytes_of_id(tokenizer)
    place = {name: index for index, name in enumerate(enriched["document_id"].to_pylist())}
    found, expected = (
        {name: _values(table[name]) for name in table.column_names if name != "text"} for table in (tokens, enriched)
    )
    texts = enriched["text"]
    num_wrong = 0
    for index, document_id in enumerate(found["document_id"]):
        if document_id not in place:
            num_wrong += 1
            continue
        at = place[document_id]
        num_bytes = len(texts[at].as_buffer())
        sizes_N = size_of_id[np.minimum(found["input_ids"][index], len(size_of_id) - 1)]
        row, document = (
            {name: values[i] for name, values in table.items()} for table, i in ((found, index), (expected, at))
        )
        num_wrong += not _agree(row, document, np.cumsum(sizes_N) - sizes_N, num_bytes)
    return num_wrong


@lru_cache(maxsize=2)
def num_bytes_of_id(tokenizer: Tokenizer) -> IntArray:
    """Return the length of each id in bytes: its spelling has one character for each."""
    return np.array([len(tokenizer.id_to_token(i) or "") for i in range(tokenizer.get_vocab_size())])


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column: arrays for lists, None for a null."""
    if not pa.types.is_large_list(column.type) or pa.types.is_large_string(column.type.value_type):
        return list(column.to_pylist())
    if column.null_count == len(column):
        return [None] * len(column)
    is_null = column.is_null().to_pylist()
    return [None if null else values for null, values in zip(is_null, lists(column), strict=True)]


def _agree(row: Mapping[str, Any], document: Mapping[str, Any], starts_N: IntArray, num_bytes: int) -> bool:
    if any(row[name] != document[name] for name in COPIED) or row["num_bytes"] != num_bytes:
        return False
    if (starts_N >= num_bytes).any():
        return False
    painted = {
        name: _runs(document[values], document[starts], num_bytes) for name, (values, starts) in BYTE_RUNS.items()
    }
    edges = [document[name] for name in EDGES]
    painted |= {name: _extents(document[values], edges, num_bytes) for name, values in BYTE_EXTENTS.items()}
    if not all(_is_painted(row[name], painted_B, starts_N) for name, painted_B in painted.items()):
        return False
    chunks_B = _runs(np.arange(1, len(document["chunk_starts"]) + 1), document["chunk_starts"], num_bytes)
    assert chunks_B is not None  # chunk starts are never null
    chunks_N = chunks_B[starts_N]
    is_first_N = (np.diff(chunks_N, prepend=0) != 0) & (chunks_N > 0)
    return np.array_equal(row["chunk_starts"], np.flatnonzero(is_first_N))


def _is_painted(found_N: AnyArray | None, painted_B: AnyArray | None, starts_N: IntArray) -> bool:
    if found_N is None or painted_B is None:
        return found_N is None and painted_B is None
    return np.array_equal(found_N, painted_B[starts_N])


def _runs(values_C: AnyArray | None, starts_C: AnyArray | None, num_bytes: int) -> AnyArray | None:
    """Return the value of each byte: zero before the first run. None for a column that the document lacks."""
    if values_C is None or starts_C is None:
        return None
    edges = np.clip(np.append(starts_C.astype(np.int64), num_bytes), 0, num_bytes)
    before = np.zeros(edges[0], values_C.dtype)
    return np.concatenate([before, np.repeat(values_C, np.maximum(np.diff(edges), 0))])


def _extents(values_E: AnyArray | None, edges: list[AnyArray | None], num_bytes: int) -> AnyArray | None:
    """Return the value of each byte: zero outside of all extents."""
    if values_E is None:
        return None
    painted_B = np.zeros(num_bytes, values_E.dtype)
    starts_E, ends_E = edges
    if starts_E is not None and ends_E is not None:
        for value, start, end in zip(values_E, starts_E, ends_E, strict=True):
            painted_B[start:end] = value
    return painted_B
