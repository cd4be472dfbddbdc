"""Fresh encoding of stretches of documents by the stored tokenizer: ids can decode to the text and be none that it gives.

The library splits and merges the text itself; the encoder of the stage tokenize is not used.
"""

import hashlib

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from pipeline.stages.verify.columns import num_bytes_of_id
from pipeline.stages.verify.list_values import IntArray, lists

NUM_SAMPLED = 16
"""Documents of each source of which a stretch is encoded again: all, where there are fewer."""
_NUM_BYTES = 2_000


def count_documents_encoded_otherwise(tokens: pa.Table, texts: pa.Table, tokenizer: Tokenizer, key: str) -> int:
    """Count sampled documents of which a stretch of the text has other ids than the tokenizer gives it.

    `key` chooses documents and stretches. A document without a stored text is left to the round trip.
    """
    expected = dict(zip(texts["document_id"].to_pylist(), texts["text"], strict=True))
    found = [(_draw(key, name), index, name) for index, name in enumerate(tokens["document_id"].to_pylist())]
    ids, sizes = lists(tokens["input_ids"]), num_bytes_of_id(tokenizer)
    return sum(
        not _is_own(ids[index], expected[name].as_py().encode(), (tokenizer, sizes), draw)
        for draw, index, name in sorted(found)[:NUM_SAMPLED]
        if name in expected
    )


def _draw(key: str, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{key} {name}".encode()).digest()[:8])


def _is_own(ids_N: IntArray, text: bytes, by: tuple[Tokenizer, IntArray], draw: int) -> bool:
    """Return whether the ids of a stretch are those of its encoding. It begins with a line, where no pre-token goes on; a short
    text is one stretch.
    """
    tokenizer, sizes = by
    begin = text.rfind(b"\n", 0, draw % max(1, len(text) - _NUM_BYTES + 1)) + 1
    begin += len(text[begin:]) - len(text[begin:].lstrip(b"\n"))
    end = begin + _NUM_BYTES
    encoded = tokenizer.encode(text[begin:end].decode(errors="ignore"), add_special_tokens=False)
    wanted, words = encoded.ids, encoded.word_ids
    if end < len(text):  # the last pre-token may go on behind the end
        wanted = wanted[: words.index(words[-1])]
    ends_N = np.cumsum(sizes[np.minimum(ids_N, len(sizes) - 1)])
    first = int(np.searchsorted(ends_N, begin, side="right")) if begin else 0
    last = first + len(wanted) if end < len(text) else len(ids_N)
    is_aligned = begin == (ends_N[first - 1] if first else 0)
    return bool(is_aligned) and ids_N[first:last].tolist() == wanted
