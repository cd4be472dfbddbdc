"""Vocabulary report: bytes per token of a corpus by kind of chunk, and the share of entries that never occur.

Also the texts of a corpus that a vocabulary is trained on.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.build.stage_objects import parts_of
from pipeline.build.withdrawal import active_withdrawals
from pipeline.contracts.part import DUPLICATES_PART
from pipeline.core.errors import SnapshotError
from pipeline.core.records import ChunkKind, Split
from pipeline.core.table_names import DOCUMENTS, ENRICHED, KEPT
from pipeline.lineage.stored_build import stored_build
from pipeline.pins.selection import Selectors
from pipeline.stages.stages import stage_with
from pipeline.stages.tokenize.columns.align import align_values
from pipeline.stages.tokenize.encode import Encoder, token_starts
from pipeline.stages.tokenize.vocabulary import TrainedOn, Vocabulary
from pipeline.store.store import Store

_BLANKS = b" \t\n\x0b\x0c\r"

ChunksOfTexts = Sequence[tuple[Sequence[int], Sequence[int]]]
"""The chunks of each text: their starts in bytes, and their kinds."""


def training_texts(store: Store, corpus: str, of: str | None = None) -> tuple[list[str], TrainedOn]:
    """Return the texts of all kept training documents, sorted by document id, and the object that they are from.

    Raises SnapshotError where one of them is withdrawn.
    """
    stage = stored_build(store, corpus, of).stage(stage_with(DOCUMENTS).name)
    parts = parts_of(stage)
    kept = store.read(parts.pop(DUPLICATES_PART)).table(KEPT, ["document_id"])["document_id"]
    tables, withdrawals = [], Selectors(active_withdrawals(store))
    for object_id in parts.values():
        table = store.read(object_id).table(
            DOCUMENTS, ["document_id", "split", "text", "source", "path", "blob_sha256"]
        )
        in_training = pc.and_(
            pc.is_in(table["document_id"], value_set=kept), pc.equal(table["split"], Split.TRAIN.value)
        )
        tables.append(table.filter(in_training))
        _refuse_withdrawn(tables[-1], withdrawals)
    return pa.concat_tables(tables).sort_by("document_id")["text"].to_pylist(), TrainedOn(corpus, stage.object_id)


def _refuse_withdrawn(documents: pa.Table, withdrawals: Selectors) -> None:
    places = documents.select(["source", "path", "blob_sha256"]).to_pylist() if withdrawals.all else []
    for row in places:
        for selector in withdrawals.matching(row["source"], row["path"], row["blob_sha256"]):
            found = f"it is withdrawn by {selector.text}"
            raise SnapshotError(f"document {row['source']}/{row['path']}", found, "none that is", "Build again first.")


def corpus_texts(store: Store, corpus: str, of: str | None = None) -> tuple[list[str], ChunksOfTexts]:
    """Return the texts of the enriched documents, and of each its chunks: their starts in bytes, and their kinds."""
    columns = ["text", "chunk_starts", "chunk_kinds"]
    parts = parts_of(stored_build(store, corpus, of).stage(stage_with(ENRICHED).name))
    table = pa.concat_tables([store.read(part).table(ENRICHED, columns) for part in parts.values()])
    texts, starts, kinds = (table[name].to_pylist() for name in columns)
    return texts, list(zip(starts, kinds, strict=True))


def vocabulary_report(vocabulary: Vocabulary, texts: Sequence[str], chunks: ChunksOfTexts) -> dict[str, Any]:
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
            {"kind": kind.value, "num_tokens": int(count), "bytes_per_token": round(int(size) / int(count), 3)}
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
