"""Vocabulary report: bytes per token of a corpus by kind of chunk, and the share of entries that never occur."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.core.records import ChunkKind
from pipeline.tokenize.columns.align import align_values
from pipeline.tokenize.encode import Encoder, token_starts
from pipeline.tokenize.vocabulary import Vocabulary

_BLANKS = b" \t\n\x0b\x0c\r"

Chunks = Sequence[tuple[Sequence[int], Sequence[int]]]


def vocabulary_report(vocabulary: Vocabulary, texts: Sequence[str], chunks: Chunks) -> dict[str, Any]:
    """Measure bytes per token in all and by kind of chunk, the share of unused entries, and tokens of blanks alone."""
    encoder = Encoder(vocabulary)
    usage = np.zeros(vocabulary.size, np.int64)
    num_tokens, num_bytes = (np.zeros(len(ChunkKind), np.int64) for _ in range(2))
    for text, (starts, kinds) in zip(texts, chunks, strict=True):
        ids = encoder.encode(text)
        usage += np.bincount(ids, minlength=vocabulary.size)
        kinds_N = align_values(
            np.array(kinds, np.uint8), np.array(starts, np.int64), token_starts(ids, vocabulary.token_num_bytes)
        )
        num_tokens += np.bincount(kinds_N, minlength=len(ChunkKind))
        num_bytes += np.bincount(kinds_N, vocabulary.token_num_bytes[ids], len(ChunkKind)).astype(np.int64)
    plain = usage[len(vocabulary.specials) :]
    return {
        "vocabulary": vocabulary.name,
        "num_documents": len(texts),
        "num_tokens": int(num_tokens.sum()),
        "bytes_per_token": round(int(num_bytes.sum()) / max(1, int(num_tokens.sum())), 4),
        "unused_fraction": round(float((plain == 0).mean()), 4),
        **_blank_runs(vocabulary, usage),
        "kinds": [
            {"kind": kind.name.lower(), "num_tokens": int(count), "bytes_per_token": round(int(size) / int(count), 3)}
            for kind, count, size in zip(ChunkKind, num_tokens, num_bytes, strict=True)
            if count
        ],
    }


def _blank_runs(vocabulary: Vocabulary, usage: np.ndarray) -> dict[str, Any]:
    """Measure entries that are blanks alone: their number, the longest, and their shares of all tokens and bytes."""
    are_blank = np.array([not value.strip(_BLANKS) for value in vocabulary.token_bytes])
    sizes = vocabulary.token_num_bytes
    return {
        "num_blank_entries": int(are_blank.sum()),
        "longest_blank_entry_bytes": int(sizes[are_blank].max(initial=0)),
        "blank_token_fraction": round(float(usage[are_blank].sum() / max(1, usage.sum())), 4),
        "blank_byte_fraction": round(float((usage * sizes)[are_blank].sum() / max(1, (usage * sizes).sum())), 4),
    }
