"""Proof of the round trip: the tokens of every document decode to exactly the stored text, by SHA-256."""

import hashlib

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

_BATCH = 256


def count_round_trip_failures(tokens: pa.Table, texts: pa.Table, tokenizer: Tokenizer) -> int:
    """Count documents whose ids do not decode to their stored text, or that have no stored text.

    `tokens` is a table of TokenizedDocument, `texts` has `document_id` and `text`. A document in one of them only is a failure.
    """
    expected = dict(zip(texts["document_id"].to_pylist(), texts["text"].to_pylist(), strict=True))
    digests = dict(zip(tokens["document_id"].to_pylist(), tokens["text_sha256"].to_pylist(), strict=True))
    failures = len(expected.keys() ^ digests.keys())
    ids, decoded = tokens["document_id"].to_pylist(), _decode_all(tokens, tokenizer)
    for document_id, text in zip(ids, decoded, strict=True):
        if document_id in expected:
            same = text == expected[document_id] and _sha256(text) == digests[document_id]
            failures += not same
    return failures


def count_specials_as_control(tokenizer: Tokenizer, specials: dict[str, int]) -> int:
    """Count special spellings, alone or inside code, that a plain tokenizer turns into a special id."""
    control = set(specials.values())
    spellings = [text for special in sorted(specials) for text in (special, f'auto s = "{special}";', f"//{special}\n")]
    return sum(bool(control & set(tokenizer.encode(text).ids)) for text in spellings)


def _decode_all(tokens: pa.Table, tokenizer: Tokenizer) -> list[str]:
    column = tokens["input_ids"].combine_chunks() if tokens.num_rows else pa.array([], pa.large_list(pa.uint16()))
    documents = [np.asarray(column[index].values).tolist() for index in range(len(column))]
    decoded: list[str] = []
    for start in range(0, len(documents), _BATCH):
        decoded.extend(tokenizer.decode_batch(documents[start : start + _BATCH], skip_special_tokens=False))
    return decoded


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
