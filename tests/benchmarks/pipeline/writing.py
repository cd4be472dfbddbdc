"""Encoding beside the library whose ids it must give, and packing.

Times are of the processor, on one core, so that a busy machine changes them little.
"""

import time
from contextlib import suppress

import numpy as np

from pipeline.build.stage_objects import parts_of
from pipeline.contracts.training_row import NUM_SENTINELS
from pipeline.stages.tokenize.columns.list_column import ListColumn
from pipeline.stages.tokenize.encode import Encoder
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.tokenize.rows.pack import Documents, pack
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import collected

NUM_DOCUMENTS = 1_000_000
MEAN_TOKENS = 400
ROW_LENGTH = 2048
_TEXTS_AT_ONCE = 256


def encode() -> list[Figure]:
    """Every file of the full slice that is text: our encoder, and `encode_batch_fast` of the library.

    The slice is collected and no more, so that the figure is had in minutes; files that the rules would drop are encoded too.
    """
    return encode_texts(collected_texts(Store(collected("full")), "full"))


def collected_texts(store: Store, corpus: str) -> list[str]:
    """The files of a collected corpus that are UTF-8, by source and path, line ends unified."""
    texts: list[str] = []
    for _, part in sorted(parts_of(store.read(store.ref(corpus, "collect") or "")).items()):
        table = store.read(part).table("files.parquet", ["content", "is_evidence"])
        for content, is_evidence in zip(table["content"].to_pylist(), table["is_evidence"].to_pylist(), strict=True):
            with suppress(UnicodeDecodeError):
                texts += [] if is_evidence else [content.decode().replace("\r\n", "\n")]
    return texts


def encode_texts(texts: list[str]) -> list[Figure]:
    """Both encoders over the same texts, in one run, each from nothing."""
    vocabulary = load_vocabulary("cpp-32768")
    num_bytes = sum(len(text.encode()) for text in texts)
    encoder, ours, peer, differing = Encoder(vocabulary), 0.0, 0.0, 0
    # In turn and a few at a time: the library keeps an object a token.
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[first : first + _TEXTS_AT_ONCE]
        started = time.process_time()
        mine = encoder.encode_all(some)
        ours += time.process_time() - started
        started = time.process_time()
        theirs = vocabulary.tokenizer.encode_batch_fast(some, add_special_tokens=False)
        peer += time.process_time() - started
        differing += sum(mine[index].tolist() != encoding.ids for index, encoding in enumerate(theirs))
    speed, peer_speed = num_bytes / 1e6 / ours, num_bytes / 1e6 / peer
    ratio = round(speed / peer_speed, 2)
    name = "tokenizers encode_batch_fast, MB a processor second"
    return [
        Figure("encode", round(speed, 2), "MB/s", ">= 6 MB/s", speed >= 6, name, round(peer_speed, 2), ratio),
        Figure("encode/ratio", ratio, "x", ">= 3 x", ratio >= 3),
        Figure("encode/text", round(num_bytes / 1e6, 1), "MB", "reported", True),
        Figure("encode/documents-that-differ", differing, "documents", "0", differing == 0),
    ]


def packing() -> list[Figure]:
    """A million documents of lengths as skewed as real ones into rows of 2,048; which tokens they are plays no part."""
    random = np.random.default_rng(7)
    lengths = np.maximum(1, random.lognormal(np.log(MEAN_TOKENS) - 0.72, 1.2, NUM_DOCUMENTS)).astype(np.int64)
    starts = _every(lengths, 80)
    names = [f"{number:08d}" for number in range(NUM_DOCUMENTS)]
    documents = Documents(names, lengths, starts, _every(lengths, 10), np.arange(NUM_DOCUMENTS))
    started = time.process_time()
    rows = pack(documents, TokenizeParams(row_length=ROW_LENGTH))
    seconds = time.process_time() - started
    num_tokens = int(lengths.sum())
    num_valid = sum(piece.num_slots for row in rows for piece in row)
    num_pieces = sum(map(len, rows))
    speed = num_tokens / 1e6 / seconds
    padding = 1 - num_valid / (len(rows) * ROW_LENGTH)
    spare = NUM_SENTINELS * num_pieces / (len(rows) * ROW_LENGTH)
    return [
        Figure("packing", round(speed, 1), "M tokens/s", ">= 50 M tokens/s", speed >= 50),
        Figure("packing/padding-made", round(padding, 4), "share of slots", "reported", True),
        Figure("packing/spare-for-infilling", round(spare, 4), "share of slots, within the padding", "reported", True),
    ]


def _every(lengths: np.ndarray, step: int) -> ListColumn:
    """Starts at every `step` tokens of each document."""
    counts = -(-lengths // step)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ListColumn(((np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)) * step).astype(np.uint32), offsets)
