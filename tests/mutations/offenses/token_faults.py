"""Faults of the encoder, whose ids decode to the text and are not those that the tokenizer gives it, and of the packer."""

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


def cut_short(bench: Bench, num_tokens: int = 100) -> None:
    """Cut documents into pieces of so many tokens, wherever lines end."""
    bench.since = "tokenize"

    def make(cut: Any) -> Any:
        def shortened(total: int, *given: Any) -> Any:
            if not plant.is_corpus():
                return cut(total, *given)
            return [(start, min(start + num_tokens, total)) for start in range(0, total, num_tokens)]

        return shortened

    plant.wrap("pipeline.stages.tokenize.rows.pack:cut", make)


def give_each_piece_a_row(bench: Bench) -> None:
    """Pack one piece into each row."""
    bench.since = "tokenize"

    def make(fit: Any) -> Any:
        return lambda sizes, room: [[place] for place in range(len(sizes))] if plant.is_corpus() else fit(sizes, room)

    plant.wrap("pipeline.stages.tokenize.rows.pack:best_fit", make)
