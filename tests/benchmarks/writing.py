"""Encoding beside the library whose ids it must give, and packing.

Times are of the processor, on one core, so that a busy machine changes them little.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from pipeline.store import Store
from pipeline.tokenize.columns import ListColumn
from pipeline.tokenize.encode import Encoder
from pipeline.tokenize.pack import NUM_SENTINELS, Documents, pack
from pipeline.tokenize.params import TokenizeParams
from pipeline.tokenize.vocabulary import Vocabulary, load_vocabulary
from pipeline.training_text import training_texts
from tests.benchmarks.end_to_end import build
from tests.benchmarks.figure import Figure

NUM_DOCUMENTS = 1_000_000
MEAN_TOKENS = 400
ROW_LENGTH = 2048


def encode() -> list[Figure]:
    """The training documents of the quick slice: our encoder, and `encode_batch_fast` of the library."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "quick", "--until", "normalize")
        texts, _ = training_texts(Store(Path(folder)), "quick")
    return encode_texts(texts)


def encode_texts(texts: list[str]) -> list[Figure]:
    """Both encoders over the same texts, in one run, each from nothing."""
    vocabulary = load_vocabulary("cpp-32768")
    num_bytes = sum(len(text.encode()) for text in texts)
    ours, mine = _encode(vocabulary, texts)
    started = time.process_time()
    theirs = [encoding.ids for encoding in vocabulary.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    peer = time.process_time() - started
    differing = sum(mine[index].tolist() != ids for index, ids in enumerate(theirs))
    speed, peer_speed = num_bytes / 1e6 / ours, num_bytes / 1e6 / peer
    ratio = round(speed / peer_speed, 2)
    name = "tokenizers encode_batch_fast, MB a processor second"
    return [
        Figure("encode", round(speed, 2), "MB/s", ">= 6 MB/s", speed >= 6, name, round(peer_speed, 2), ratio),
        Figure("encode/ratio", ratio, "x", ">= 3 x", ratio >= 3),
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


def _encode(vocabulary: Vocabulary, texts: list[str]) -> tuple[float, ListColumn]:
    started = time.process_time()
    column = Encoder(vocabulary).encode_all(texts)
    return time.process_time() - started, column


def _every(lengths: np.ndarray, step: int) -> ListColumn:
    """Starts at every `step` tokens of each document."""
    counts = -(-lengths // step)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ListColumn(((np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)) * step).astype(np.uint32), offsets)
