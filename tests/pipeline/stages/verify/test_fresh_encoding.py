"""Stretches of documents that are encoded again have the ids of our encoder, and no others."""

import random

import pyarrow as pa
import pytest

from pipeline.stages.tokenize.encode import Encoder
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.stages.verify.fresh_encoding import NUM_SAMPLED, count_documents_encoded_otherwise

VOCABULARY = load_vocabulary("tiny-1024")
WORDS = ("int value", "\n", "\n\n\n", "  \n", " \t", "\r\n", "{};", "größe", "π", "0x12345", "<|bos|>", "// more\n")


def made_texts(seed: int, num_words: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices(WORDS, k=num_words)) for _ in range(NUM_SAMPLED)]


def count(texts: list[str], ids: list[list[int]], key: str = "key") -> int:
    names = [f"{index:064x}" for index in range(len(texts))]
    tokens = pa.table({"document_id": names, "input_ids": pa.array(ids, pa.large_list(pa.uint16()))})
    stored = pa.table({"document_id": names, "text": texts})
    return count_documents_encoded_otherwise(tokens, stored, VOCABULARY.tokenizer, key)


def encoded(texts: list[str]) -> list[list[int]]:
    encoder = Encoder(VOCABULARY)
    return [encoder.encode(text).tolist() for text in texts]


def spelled(ids: list[int]) -> list[int]:
    single = {value: number for number, value in enumerate(VOCABULARY.token_bytes) if len(value) == 1}
    return [single[bytes([byte])] for number in ids for byte in VOCABULARY.token_bytes[number]]


@pytest.mark.parametrize("num_words", [0, 3, 200, 4_000])
def test_what_the_encoder_gives_is_what_the_tokenizer_gives(num_words: int) -> None:
    # Wherever a stretch of a long text begins, be it among empty lines.
    texts = made_texts(num_words, num_words)
    ids = encoded(texts)

    assert [count(texts, ids, f"{key}") for key in range(4)] == [0] * 4


@pytest.mark.parametrize("num_words", [3, 200, 4_000])
def test_ids_that_decode_to_the_text_and_are_others_are_counted(num_words: int) -> None:
    texts = [f"int value = {text}" for text in made_texts(num_words, num_words)]

    assert count(texts, [spelled(ids) for ids in encoded(texts)]) == NUM_SAMPLED
    assert count(texts, [ids[:-1] for ids in encoded(texts)]) == (NUM_SAMPLED if num_words < 4_000 else 0)


def test_of_many_documents_some_are_encoded_again() -> None:
    texts = ["int main() { return 0; }\n"] * 100

    assert count(texts, [spelled(ids) for ids in encoded(texts)]) == NUM_SAMPLED
