"""A round trip that is not exact is counted, and so is a tokenizer that turns text into control ids."""

import hashlib

import pyarrow as pa
import pytest
from tokenizers import AddedToken, Tokenizer

from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.stages.verify.tokens import count_round_trip_failures, count_specials_as_control

VOCABULARY = load_vocabulary("tiny-1024")
TEXT = 'int main() { return "<|eos|>"[0]; } // caf\u00e9\n'


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.from_str(VOCABULARY.tokenizer_json.decode())


def tables(ids: list[int], text: str, digest: str | None = None) -> tuple[pa.Table, pa.Table]:
    digest = digest or hashlib.sha256(text.encode()).hexdigest()
    columns = {
        "document_id": pa.array(["a"], pa.large_string()),
        "input_ids": pa.array([ids], pa.large_list(pa.uint16())),
        "text_sha256": pa.array([digest], pa.large_string()),
    }
    return pa.table(columns), pa.table({"document_id": pa.array(["a"], pa.large_string()), "text": [text]})


def test_an_exact_round_trip_passes(tokenizer: Tokenizer) -> None:
    tokens, texts = tables(tokenizer.encode(TEXT).ids, TEXT)

    assert count_round_trip_failures(tokens, texts, tokenizer) == 0


def test_a_changed_token_a_wrong_digest_and_a_missing_text_are_counted(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT).ids
    tokens, texts = tables([*ids[:-1], ids[0]], TEXT)
    assert count_round_trip_failures(tokens, texts, tokenizer) == 1

    tokens, texts = tables(ids, TEXT, digest="0" * 64)
    assert count_round_trip_failures(tokens, texts, tokenizer) == 1

    assert count_round_trip_failures(tokens, texts.slice(0, 0), tokenizer) == 1


def test_special_spellings_are_text_to_the_shipped_tokenizer(tokenizer: Tokenizer) -> None:
    assert count_specials_as_control(tokenizer, dict(VOCABULARY.specials)) == 0


def test_a_tokenizer_with_added_tokens_is_caught(tokenizer: Tokenizer) -> None:
    tokenizer.add_special_tokens([AddedToken("<|eos|>", special=True)])

    assert count_specials_as_control(tokenizer, dict(VOCABULARY.specials)) == 3
