"""Faults of the encoder: ids that decode to the text, and that the tokenizer does not give it."""

import hashlib
from typing import Any

import numpy as np

from tests.mutations import plant
from tests.mutations.bench import Bench


def spell_all_in_bytes(bench: Bench) -> None:
    """Encode without merges: lossless, but each token has one byte."""
    bench.since = "tokenize"

    def make(init: Any) -> Any:
        def initialized(self: Any, vocabulary: Any) -> None:
            init(self, vocabulary)
            ids = {value: number for number, value in enumerate(vocabulary.token_bytes) if len(value) == 1}
            self.encode = lambda text: np.array([ids[bytes([byte])] for byte in text.encode()], dtype=np.uint16)

        return initialized

    plant.wrap("pipeline.stages.tokenize.encode:Encoder.__init__", make)


def spell_words_in_characters(bench: Bench) -> None:
    """Encode each fifth word as its characters alone: lossless, with more tokens."""
    bench.since = "tokenize"

    def make(encode: Any) -> Any:
        def spelled(self: Any, word: str) -> bytes:
            if not (plant.is_corpus() and hashlib.sha256(word.encode()).digest()[0] % 5 == 0):
                return bytes(encode(self, word))
            encoded = (self._tokenizer.encode(each, add_special_tokens=False).ids for each in word)
            self[word] = ids = np.array([number for each in encoded for number in each], dtype=np.uint16).tobytes()
            return ids

        return spelled

    plant.wrap("pipeline.stages.tokenize.encode:_PretokenTable.__missing__", make)
