"""Proofs about the tokens of documents, from the stored tables and the stored tokenizer alone.

Shapes: N documents, S chunk starts of all documents, one document after the other.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from pipeline.stages.verify.list_values import IntArray, flat_values, lengths, lists

_DOCUMENTS_IN_BATCH = 256


def count_round_trip_failures(tokens: pa.Table, texts: pa.Table, tokenizer: Tokenizer) -> int:
    """Count documents whose ids do not decode to their stored text, by SHA-256, or that have no stored text.

    `tokens` is a table of TokenizedDocument, `texts` has `document_id` and `text`. A document in one of them only is a failure.
    """
    expected = dict(zip(texts["document_id"].to_pylist(), texts["text"].to_pylist(), strict=True))
    ids, digests = tokens["document_id"].to_pylist(), tokens["text_sha256"].to_pylist()
    return len(expected.keys() ^ set(ids)) + sum(
        1
        for document_id, digest, text in zip(ids, digests, _decoded(tokens, tokenizer), strict=True)
        if document_id in expected
        and (text != expected[document_id] or hashlib.sha256(text.encode()).hexdigest() != digest)
    )


def count_specials_as_control(tokenizer: Tokenizer, specials: Mapping[str, int]) -> int:
    """Count special spellings, alone or inside code, that a plain tokenizer turns into a special id."""
    return _num_as_control(tokenizer, tuple(sorted(specials.items())))


@lru_cache(maxsize=2)
def _num_as_control(tokenizer: Tokenizer, specials: tuple[tuple[str, int], ...]) -> int:
    """Count once what all sources of a build, and all offenses in other columns, have in common."""
    control = {number for _, number in specials}
    spellings = [text for special, _ in specials for text in (special, f'auto s = "{special}";', f"//{special}\n")]
    return sum(bool(control & set(tokenizer.encode(text).ids)) for text in spellings)


def count_misaligned_columns(tokens: pa.Table) -> int:
    """Count lists beside the ids that are not as long as they are, and chunk starts that are not ascending token indices."""
    lengths_N = lengths(tokens["input_ids"])
    beside = [field.name for field in tokens.schema if pa.types.is_large_list(field.type)]
    num_wrong = 0
    for name in sorted(set(beside) - {"input_ids", "chunk_starts"}):
        is_present_N = np.asarray(pc.is_valid(tokens[name]))
        num_wrong += int(((lengths(tokens[name]) != lengths_N) & is_present_N).sum())
    return num_wrong + _count_bad_chunk_starts(tokens["chunk_starts"], lengths_N)


def count_ids_out_of_range(table: pa.Table, vocabulary_size: int) -> int:
    """Count ids in the column `input_ids` at or above the vocabulary's size."""
    return int((flat_values(table["input_ids"]) >= vocabulary_size).sum())


def count_special_ids(tokens: pa.Table, special_ids: Iterable[int]) -> int:
    """Count special ids among the ids of documents, which have none: a special token's spelling in a text is text."""
    return int(np.isin(flat_values(tokens["input_ids"]), sorted(special_ids)).sum())


def count_ids(table: pa.Table, vocabulary_size: int) -> IntArray:
    """Count how often each id of the vocabulary occurs in the column `input_ids`, without ids out of range."""
    ids = flat_values(table["input_ids"])
    return np.bincount(ids[ids < vocabulary_size], minlength=vocabulary_size).astype(np.int64)


def _decoded(tokens: pa.Table, tokenizer: Tokenizer) -> Iterator[str]:
    ids = lists(tokens["input_ids"])
    for start in range(0, len(ids), _DOCUMENTS_IN_BATCH):
        batch = [ids_N.tolist() for ids_N in ids[start : start + _DOCUMENTS_IN_BATCH]]
        yield from tokenizer.decode_batch(batch, skip_special_tokens=False)


def _count_bad_chunk_starts(column: pa.ChunkedArray, lengths_N: IntArray) -> int:
    """Count documents with a chunk start outside of their tokens or not after the one before."""
    starts_S, document_S = flat_values(column), np.repeat(np.arange(len(lengths_N)), lengths(column))
    is_bad_S = starts_S >= lengths_N[document_S]
    is_bad_S[1:] |= (np.diff(starts_S) <= 0) & (np.diff(document_S) == 0)
    return len(np.unique(document_S[is_bad_S]))
