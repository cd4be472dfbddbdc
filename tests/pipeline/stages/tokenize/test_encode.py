"""Encoding: the ids of the tokenizer, and texts that decode to the same bytes."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.stages.tokenize.encode import Encoder, token_starts
from pipeline.stages.tokenize.vocabulary import Vocabulary, load_vocabulary

VOCABULARY = load_vocabulary("tiny-1024")
ENCODER = Encoder(VOCABULARY)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=300)
def test_any_text_comes_back(text: str) -> None:
    assert VOCABULARY.decode(ENCODER.encode(text).tolist()) == text


def test_the_ids_are_those_of_the_tokenizer(enriched: pa.Table, vocabulary: Vocabulary) -> None:
    texts = enriched["text"].to_pylist()
    expected = [encoding.ids for encoding in vocabulary.tokenizer.encode_batch(texts)]
    column = Encoder(vocabulary).encode_all(texts)
    assert [column[index].tolist() for index in range(len(column))] == expected


def test_token_starts_are_the_byte_lengths_of_the_text_before(enriched: pa.Table, vocabulary: Vocabulary) -> None:
    text = enriched["text"][11].as_py()
    ids = ENCODER.encode(text)
    expected = [len(vocabulary.decode_bytes(ids[:index].tolist())) for index in range(len(ids))]
    assert token_starts(ids, vocabulary.token_num_bytes).tolist() == expected
    assert text.encode().startswith(vocabulary.decode_bytes(ids[:3].tolist()))


def test_an_empty_text_has_no_tokens() -> None:
    assert len(ENCODER.encode("")) == 0
